"""Delta Lake's connector for Spark: two jars from Maven Central, as the lock file beside this module names them.
``python -m pipeline.delta_jars`` fetches what is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from locked_jars import jars
from locked_jars.jars import Fetch, Jar, JarError, MissingLibrary
from pipeline.errors import NotInstalled, PipelineError

VERSION = "4.2.0"
_LOCK = Path(__file__).with_name(f"delta-{VERSION}.lock")


def locked_delta_jars() -> tuple[Jar, ...]:
    """The jars of the lock file."""
    return jars.read_lock(_LOCK)


def cache_directory() -> Path:
    """The cache directory for the jars."""
    return jars.cache_directory("delta", VERSION)


def delta_jars(directory: Path | None = None, fetch: Fetch | None = None) -> tuple[Path, ...]:
    """The paths of the jars, fetched if they are missing or damaged. Raises PipelineError, one line, if one
    cannot be fetched.
    """
    try:
        return jars.fetched(
            locked_delta_jars(), directory or cache_directory(), f"Delta Lake {VERSION}", fetch
        )
    except MissingLibrary as missing:
        raise NotInstalled(
            f"Delta Lake's jars are not here yet, and fetching them needs {missing}: make pipeline-setup"
        ) from None
    except JarError as error:
        raise PipelineError(str(error)) from None


if __name__ == "__main__":
    try:
        delta_jars()
    except PipelineError as failed:
        sys.exit(f"ktriage: {failed}")
