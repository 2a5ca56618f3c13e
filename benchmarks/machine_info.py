"""Versions and machine of a measurement: without them a figure means nothing."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata

from testbed.kafka.java import java_version

LIBRARIES = ("kio", "aiokafka", "confluent-kafka", "typer")


def described(kafka: str) -> Iterator[str]:
    """The lines of a Markdown list."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    yield f"- Apache Kafka {kafka}, Java {java_version()}, Python {platform.python_version()}"
    yield f"- {', '.join(f'{name} {metadata.version(name)}' for name in LIBRARIES)}"
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield f"- {system}, {_cores()} cores, {memory:.0f} GiB of memory"
    yield f"- load average when it began: {load} (the cluster that is measured shares the cores)"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
