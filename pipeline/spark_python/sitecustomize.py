"""Python runs this first in every process that Spark starts for a local session.

Spark puts the archives of its own directory first on the path, and PySpark is in one of them. Python keeps no
compiled code of an archive, so that each process would compile PySpark again: 1.2 s of CPU time, and a stream waits
for several of them, one after the other. Where that directory is the installed PySpark, its modules are used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

_ARCHIVES = (".zip", ".jar")


def without_archives(path: Sequence[str]) -> list[str]:
    """The path without the archives that are in an installed PySpark, which is on the path too."""
    places = [Path(entry).resolve() for entry in path if not entry.endswith(_ARCHIVES)]
    homes = {
        place / "pyspark"
        for place in places
        if (place / "pyspark" / "__init__.py").is_file() and (place / "py4j").is_dir()
    }
    return [
        entry
        for entry in path
        if not (entry.endswith(_ARCHIVES) and homes.intersection(Path(entry).resolve().parents))
    ]


def _run_next() -> None:
    """The module of the same name that the installation has, if it has one: this one is found in its place."""
    here = Path(__file__).parent
    sys.path[:] = [entry for entry in sys.path if Path(entry) != here]
    ours = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ModuleNotFoundError:
        sys.modules[__name__] = ours


if __name__ == "sitecustomize":
    sys.path[:] = without_archives(sys.path)
    _run_next()
