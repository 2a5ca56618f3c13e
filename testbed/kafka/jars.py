"""Kafka's own jars, from Maven Central, as the lock files beside this module name them.

A lock is the runtime closure of ``kafka_2.13`` and ``kafka-tools`` as Maven resolves it. A lock for another version
is made with Maven: a project with ``kafka_2.13`` and ``kafka-tools`` (without ``connect-runtime``,
``connect-transforms`` and ``connect-json``; and ``slf4j-simple`` where no log provider comes along) as
dependencies, then ``dependency:list`` and ``dependency:copy-dependencies`` with the scope runtime.
"""

from __future__ import annotations

from pathlib import Path

from locked_jars import jars
from locked_jars.jars import Fetch, Jar, JarError, MissingLibrary, Say, to_stderr
from testbed.kafka.errors import TestbedError

DEFAULT_VERSION = "4.3.1"


def read_lock(version: str) -> tuple[Jar, ...]:
    """The jars of one Kafka version. Raises TestbedError when there is no lock for it or a line is malformed."""
    path = Path(__file__).with_name(f"kafka-{version}.lock")
    if not path.is_file():
        known = ", ".join(sorted(p.stem.removeprefix("kafka-") for p in path.parent.glob("kafka-*.lock")))
        raise TestbedError(f"no lock file for Kafka {version}; there is one for {known}")
    try:
        return jars.read_lock(path)
    except JarError as error:
        raise TestbedError(str(error)) from None


def cache_directory(version: str) -> Path:
    """The cache directory for the jars of that version."""
    return jars.cache_directory("Kafka", version)


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
    locked = read_lock(version)
    try:
        return jars.fetched(
            locked, directory or cache_directory(version), f"Kafka {version}", fetch, say or to_stderr
        )
    except MissingLibrary as missing:
        raise TestbedError(
            f"Kafka's jars are not here yet, and fetching them needs {missing}: install ktriage[testbed]"
        ) from None
    except JarError as error:
        raise TestbedError(str(error)) from None
