"""The compared command lines: ktriage as installed, Kafka's Java tools with their fastest JVM flags."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from testbed.kafka.jars import kafka_jars
from testbed.kafka.java import java
from testbed.kafka.java_tools import MAIN_CLASSES

JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""The fastest start that we found for Kafka's tools; without these flags they take longer."""

ENTRY_POINTS = {
    "ktriage": "console.cli.main:main",
    "kafka-unclean-recovery": "console.cli.main:kafka_unclean_recovery",
}


def ours(name: str, *arguments: str) -> tuple[str, ...]:
    """The installed command, or the same entry point where the tree is not installed."""
    script = Path(sys.executable).with_name(name)
    if script.exists():
        return str(script), *arguments
    module, function = ENTRY_POINTS[name].split(":")
    start = f"import sys; sys.argv[0] = {name!r}; from {module} import {function} as run; run()"
    return sys.executable, "-c", start, *arguments


def javas(name: str, version: str, *arguments: str, heap: str = "256m") -> tuple[str, ...]:
    """One of Kafka's own tools, with at most ``heap``."""
    path = os.pathsep.join(str(jar) for jar in kafka_jars(version))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return java(), *JVM_FLAGS, f"-Xmx{heap}", quiet, "-cp", path, MAIN_CLASSES[name], *arguments
