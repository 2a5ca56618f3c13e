"""Kafka's own jars, from Maven Central, exactly as the lock file beside this module names them.

A lock line is ``group:artifact:version[:classifier] sha256``. The lock is the runtime closure of ``kafka_2.13``
and ``kafka-tools`` as Maven resolves it. Each jar is fetched, compared with its SHA-256 and only then renamed to
its final name, so several processes may do this at once: all of them write the same bytes.

A lock for another version is made with Maven: a project with ``kafka_2.13`` and ``kafka-tools`` (without
``connect-runtime``, ``connect-transforms`` and ``connect-json``; and ``slf4j-simple`` where no log provider comes
along) as dependencies, then ``dependency:list`` and ``dependency:copy-dependencies`` with the scope runtime.
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

DEFAULT_VERSION = "4.3.1"
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


def read_lock(version: str) -> tuple[Jar, ...]:
    """The jars of one Kafka version. Raises TestbedError when there is no lock for it or a line is malformed."""
    path = Path(__file__).with_name(f"kafka-{version}.lock")
    if not path.is_file():
        known = ", ".join(sorted(p.stem.removeprefix("kafka-") for p in path.parent.glob("kafka-*.lock")))
        raise TestbedError(f"no lock file for Kafka {version}; there is one for {known}")
    return tuple(_parse(line, path) for line in path.read_text().splitlines() if line and line[0] != "#")


def _parse(line: str, path: Path) -> Jar:
    coordinate, _, sha256 = line.partition(" ")
    parts = coordinate.split(":")
    if len(parts) not in (3, 4) or len(sha256) != 64:
        raise TestbedError(f"{path.name}: not 'group:artifact:version[:classifier] sha256': {line!r}")
    return Jar(parts[0], parts[1], parts[2], parts[3] if len(parts) == 4 else None, sha256)


def cache_directory(version: str) -> Path:
    """The cache directory for the jars of that version, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "ktriage" / "kafka" / version


def kafka_jars(
    version: str = DEFAULT_VERSION,
    *,
    directory: Path | None = None,
    fetch: Fetch | None = None,
    say: Say | None = None,
) -> tuple[Path, ...]:
    """Paths of all jars of that Kafka version, in the lock's order, fetched if they are missing or damaged.

    Raises TestbedError, one line, if a jar cannot be fetched; those that were fetched stay.
    """
    say = say or to_stderr
    directory = directory or cache_directory(version)
    jars = read_lock(version)
    missing = [jar for jar in jars if _digest(directory / jar.filename) != jar.sha256]
    if missing:
        directory.mkdir(parents=True, exist_ok=True)
        _fetch_all(missing, directory, fetch or from_maven_central, say, version)
    return tuple(directory / jar.filename for jar in jars)


def to_stderr(line: str) -> None:
    """Prints progress to stderr, apart from a command's output."""
    print(line, file=sys.stderr, flush=True)


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _fetch_all(missing: Iterable[Jar], directory: Path, fetch: Fetch, say: Say, version: str) -> None:
    jars = list(missing)
    say(f"Kafka {version}: fetching {len(jars)} jars into {directory}")
    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="jar") as pool:
        futures = [pool.submit(_fetch_one, jar, directory, fetch) for jar in jars]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                name, size = future.result()
                say(f"Kafka {version}: {done}/{len(jars)} {name} ({size / 1e6:.1f} MB)")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_one(jar: Jar, directory: Path, fetch: Fetch) -> tuple[str, int]:
    handle, name = tempfile.mkstemp(dir=directory, prefix=f".{jar.filename}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        fetch(jar, part)
        if (got := _digest(part)) != jar.sha256:
            raise TestbedError(f"{jar.filename}: SHA-256 is {got}, the lock file says {jar.sha256}; not used")
        part.chmod(0o644)
        size = part.stat().st_size
        part.replace(directory / jar.filename)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    return jar.filename, size


def from_maven_central(jar: Jar, target: Path, pause: Callable[[float], None] = time.sleep) -> None:
    """Writes the jar's bytes to ``target``; a temporary network failure is retried three times.

    Raises TestbedError if the jar does not exist or the network does not come back.
    """
    # Imported late: only a machine without the jars needs these libraries.
    try:
        import requests  # noqa: PLC0415
    except ImportError as error:
        raise TestbedError(_missing_library(error)) from None
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _download(jar, target)
        except requests.RequestException as error:
            if attempt == _ATTEMPTS or not _is_retriable(error.response):
                raise TestbedError(f"cannot fetch {jar.filename} from Maven Central: {error}") from None
            pause(2.0 ** (attempt - 1))
        else:
            return


def _missing_library(error: ImportError) -> str:
    return f"Kafka's jars are not here yet, and fetching them needs {error.name}: install ktriage[testbed]"


def _download(jar: Jar, target: Path) -> None:
    try:
        from maven_artifact.artifact import Artifact  # noqa: PLC0415
        from maven_artifact.downloader import Downloader  # noqa: PLC0415
    except ImportError as error:
        raise TestbedError(_missing_library(error)) from None
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


def _is_retriable(response: Response | None) -> bool:
    return response is None or response.status_code in _RETRIABLE_STATUS


def _certificates() -> str | bool:
    # requests reads the first two itself; most other programs use the third.
    names = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    return next((value for name in names if (value := os.environ.get(name))), True)
