"""Kafka's own jars, from Maven Central, as the lock files beside this module name them.

A lock is the runtime closure of ``kafka_2.13`` and ``kafka-tools`` as Maven resolves it. A lock for another version
is made with Maven: a project with ``kafka_2.13`` and ``kafka-tools`` (without ``connect-runtime``,
``connect-transforms`` and ``connect-json``; and ``slf4j-simple`` where no log provider comes along) as
dependencies, then ``dependency:list`` and ``dependency:copy-dependencies`` with the scope runtime.
"""

from __future__ import annotations

import os
from pathlib import Path

from testbed.kafka import maven_jars
from testbed.kafka.errors import TestbedError
from testbed.kafka.maven_jars import Fetch, Jar, Say, to_stderr

DEFAULT_VERSION = "4.3.1"


def read_lock(version: str) -> tuple[Jar, ...]:
    """The jars of one Kafka version. Raises TestbedError when there is no lock for it or a line is malformed."""
    path = Path(__file__).with_name(f"kafka-{version}.lock")
    if not path.is_file():
        known = ", ".join(sorted(p.stem.removeprefix("kafka-") for p in path.parent.glob("kafka-*.lock")))
        raise TestbedError(f"no lock file for Kafka {version}; there is one for {known}")
    return maven_jars.read_lock(path)


def read_clients_lock() -> tuple[Jar, ...]:
    """``kafka-clients`` of each minor release, from 3.9 on. Raises TestbedError when a line is malformed."""
    return maven_jars.read_lock(Path(__file__).with_name("clients.lock"))


def clients_jar(jar: Jar) -> Path:
    """Where that jar of :func:`read_clients_lock` is, fetched if it is missing or damaged. Raises TestbedError."""
    place = cache_directory(jar.version)
    (path,) = maven_jars.fetched((jar,), place, f"Kafka's messages {jar.version}")
    return path


TIERED_STORAGE = "local-tiered-storage"
"""The name of the cache directory with Kafka's remote storage for tests (LocalTieredStorage)."""


def fetch_tiered_storage() -> None:
    """Its jars, for remote.log.storage.manager.class.path. Raises TestbedError if a jar cannot be fetched."""
    jars = maven_jars.read_lock(Path(__file__).with_name(f"{TIERED_STORAGE}.lock"))
    maven_jars.fetched(jars, cache_directory(TIERED_STORAGE), "Kafka's remote storage for tests")


def delta_jars() -> tuple[Path, ...]:
    """Delta's connector for Spark, fetched if it is missing or damaged. Raises TestbedError."""
    jars = maven_jars.read_lock(Path(__file__).with_name("delta.lock"))
    return maven_jars.fetched(jars, cache_directory(f"delta-{jars[0].version}"), "Delta's connector")


def cache_directory(version: str) -> Path:
    """The cache directory for the jars of that version or name, by the XDG base directory specification."""
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
    place = directory or cache_directory(version)
    return maven_jars.fetched(read_lock(version), place, f"Kafka {version}", fetch, say or to_stderr)
