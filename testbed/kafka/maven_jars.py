"""Jars from Maven Central, exactly as a lock file names them.

A lock line is ``group:artifact:version[:classifier] sha256``. Each jar is fetched, compared with its SHA-256 and
only then renamed to its final name, so several processes may do this at once: all of them write the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from testbed.kafka.errors import TestbedError

if TYPE_CHECKING:
    from requests import Response

_PARALLEL = 8
_ATTEMPTS = 4
_TIMEOUT_SECONDS = (10.0, 60.0)
_RETRIABLE_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class Jar(NamedTuple):
    """One line of a lock file; ``sha256`` is 64 hexadecimal digits."""

    group: str
    artifact: str
    version: str
    classifier: str | None
    sha256: str

    @property
    def filename(self) -> str:
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{tail}.jar"


Fetch = Callable[[Jar, Path], None]
Say = Callable[[str], None]


def read_lock(path: Path) -> tuple[Jar, ...]:
    """The jars of a lock file. Raises TestbedError for a malformed line."""
    return tuple(_parse(line, path) for line in path.read_text().splitlines() if line and line[0] != "#")


def _parse(line: str, path: Path) -> Jar:
    coordinate, _, sha256 = line.partition(" ")
    parts = coordinate.split(":")
    if len(parts) not in (3, 4) or len(sha256) != 64:
        raise TestbedError(f"{path.name}: not 'group:artifact:version[:classifier] sha256': {line!r}")
    return Jar(parts[0], parts[1], parts[2], parts[3] if len(parts) == 4 else None, sha256)


def to_stderr(line: str) -> None:
    """Prints progress to stderr, apart from a command's output."""
    print(line, file=sys.stderr, flush=True)


def fetched(
    jars: Iterable[Jar], directory: Path, title: str, fetch: Fetch | None = None, say: Say = to_stderr
) -> tuple[Path, ...]:
    """Paths of all jars in their order, fetched if they are missing or damaged; ``title`` stands in the progress.

    Raises TestbedError, one line, if a jar cannot be fetched; those that were fetched stay.
    """
    jars = tuple(jars)
    missing = [jar for jar in jars if _digest(directory / jar.filename) != jar.sha256]
    if missing:
        directory.mkdir(parents=True, exist_ok=True)
        _fetch_all(missing, directory, title, fetch or from_maven_central, say)
    return tuple(directory / jar.filename for jar in jars)


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _fetch_all(jars: list[Jar], directory: Path, title: str, fetch: Fetch, say: Say) -> None:
    say(f"{title}: fetching {len(jars)} jars into {directory}")
    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="jar") as pool:
        futures = [pool.submit(_fetch_one, jar, directory, fetch) for jar in jars]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                name, size = future.result()
                say(f"{title}: {done}/{len(jars)} {name} ({size / 1e6:.1f} MB)")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_one(jar: Jar, directory: Path, fetch: Fetch) -> tuple[str, int]:
    handle, name = tempfile.mkstemp(dir=directory, prefix=f".{jar.filename}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        fetch(jar, part)
        if (found := _digest(part)) != jar.sha256:
            raise TestbedError(
                f"{jar.filename}: SHA-256 is {found}, the lock file says {jar.sha256}; not used"
            )
        part.chmod(0o644)
        size = part.stat().st_size
        part.replace(directory / jar.filename)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    return jar.filename, size


def from_maven_central(jar: Jar, target: Path, pause: Callable[[float], None] = time.sleep) -> None:
    """Writes the jar's bytes to ``target``; a temporary network failure is retried three times.

    Raises TestbedError if the jar does not exist, the network does not come back, or a library is missing.
    """
    # Imported late: only a machine without the jars needs these libraries.
    try:
        import requests  # noqa: PLC0415  # only where something is fetched
    except ImportError as error:
        raise _missing(error.name) from None
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _download(jar, target)
        except requests.RequestException as error:
            if attempt == _ATTEMPTS or not _is_retriable(error.response):
                raise TestbedError(f"cannot fetch {jar.filename} from Maven Central: {error}") from None
            pause(2.0 ** (attempt - 1))
        else:
            return


def _download(jar: Jar, target: Path) -> None:
    try:
        from maven_artifact.artifact import Artifact  # noqa: PLC0415  # only where something is fetched
        from maven_artifact.downloader import Downloader  # noqa: PLC0415
    except ImportError as error:
        raise _missing(error.name) from None
    central = Downloader()
    url = central.resolver.uri_for_artifact(Artifact(jar.group, jar.artifact, jar.version, jar.classifier))
    with (
        central.requestor.request(
            url, None, stream=True, timeout=_TIMEOUT_SECONDS, verify=_certificates()
        ) as response,
        target.open("wb") as file,
    ):
        for block in response.iter_content(1 << 16):
            file.write(block)


def _missing(library: str | None) -> TestbedError:
    return TestbedError(
        f"Kafka's jars are not here yet, and fetching them needs {library}: install ktriage[testbed]"
    )


def _is_retriable(response: Response | None) -> bool:
    return response is None or response.status_code in _RETRIABLE_STATUS


def _certificates() -> str | bool:
    # requests reads the first two itself; most other programs use the third.
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    return next((value for name in names if (value := os.environ.get(name))), True)
