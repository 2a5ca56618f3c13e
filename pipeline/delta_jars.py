"""Delta Lake's connector for Spark: two jars from Maven Central, exactly as the lock file beside this module
names them.

A lock line is ``group:artifact:version sha256``. A jar is fetched, compared with its SHA-256 and only then renamed
to its final name, so several processes may do this at once: all of them write the same bytes.
``python -m pipeline.delta_jars`` fetches what is missing.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import NotInstalled, PipelineError

VERSION = "4.2.0"
_LOCK = Path(__file__).with_name(f"delta-{VERSION}.lock")
_ATTEMPTS = 4
_TIMEOUT_SECONDS = (10.0, 60.0)


class DeltaJar(NamedTuple):
    """One line of the lock file; ``sha256`` is 64 hexadecimal digits."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


Fetch = Callable[[DeltaJar, Path], None]


def locked_jars() -> tuple[DeltaJar, ...]:
    """The jars of the lock file."""
    return tuple(DeltaJar(*line.replace(" ", ":").split(":")) for line in _LOCK.read_text().splitlines())


def cache_directory() -> Path:
    """The directory of the jars, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "ktriage" / "delta" / VERSION


def delta_jars(directory: Path | None = None, fetch: Fetch | None = None) -> tuple[Path, ...]:
    """The paths of the jars, fetched if they are missing or damaged. Raises PipelineError, one line, if one
    cannot be fetched.
    """
    directory = directory or cache_directory()
    for jar in locked_jars():
        if _digest(directory / jar.filename) != jar.sha256:
            print(
                f"Delta Lake {VERSION}: fetching {jar.filename} into {directory}", file=sys.stderr, flush=True
            )
            _fetch_verified(jar, directory, fetch or from_maven_central)
    return tuple(directory / jar.filename for jar in locked_jars())


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _fetch_verified(jar: DeltaJar, directory: Path, fetch: Fetch) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=directory, prefix=f".{jar.filename}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        fetch(jar, part)
        found = _digest(part)
        if found != jar.sha256:
            raise PipelineError(
                f"{jar.filename}: SHA-256 is {found}, the lock file says {jar.sha256}; not used"
            )
        part.chmod(0o644)
        part.replace(directory / jar.filename)
    finally:
        part.unlink(missing_ok=True)


def from_maven_central(jar: DeltaJar, target: Path, pause: Callable[[float], None] = time.sleep) -> None:
    """Writes the jar's bytes to ``target``; a network failure is retried three times. Raises PipelineError."""
    # Imported late: only a machine without the jars needs these libraries.
    try:
        import requests  # noqa: PLC0415
        from maven_artifact.artifact import Artifact  # noqa: PLC0415
        from maven_artifact.downloader import Downloader  # noqa: PLC0415
    except ImportError as error:
        raise NotInstalled(
            f"Delta Lake's jars are not here yet, and fetching them needs {error.name}: make pipeline-setup"
        ) from None
    central = Downloader()
    url = central.resolver.uri_for_artifact(Artifact(jar.group, jar.artifact, jar.version))
    # requests reads the first two itself; most other programs use the third.
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    verify: str | bool = next((value for name in names if (value := os.environ.get(name))), True)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with (
                central.requestor.request(
                    url, None, stream=True, timeout=_TIMEOUT_SECONDS, verify=verify
                ) as response,
                target.open("wb") as file,
            ):
                for block in response.iter_content(1 << 16):
                    file.write(block)
        except requests.RequestException as error:
            if attempt == _ATTEMPTS:
                raise PipelineError(f"cannot fetch {jar.filename} from Maven Central: {error}") from None
            pause(2.0 ** (attempt - 1))
        else:
            return


if __name__ == "__main__":
    try:
        delta_jars()
    except PipelineError as failed:
        sys.exit(f"ktriage: {failed}")
