"""Kafka's own Java tools against a test cluster, and the Java command line of tools and nodes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from testbed.kafka.errors import TestbedError, ToolFailed
from testbed.kafka.java import java

MAIN_CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
"""The tools by the names that an operator types, without ``.sh``, and their main classes in 4.0 to 4.3."""

_BEFORE_4 = {"kafka-acls": "kafka.admin.AclCommand", "kafka-dump-log": "kafka.tools.DumpLogSegments"}
_SINCE_4_4 = {"kafka-configs": "org.apache.kafka.tools.ConfigCommand"}

_OFFLINE = frozenset({"kafka-storage", "kafka-dump-log"})
_TOOL_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# The JVM must not print into a tool's output. Without -XX:-UsePerfData it warns about its counter files in /tmp
# whenever another JVM starts at the same moment.
_JVM_LOG = ("-Xlog:disable", "-Xlog:all=warning:stderr", "-XX:-UsePerfData")
_LOG4J = """\
log4j.rootLogger={level}, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class ToolResult(NamedTuple):
    """A tool's command line, exit status and output."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class JavaRunner:
    """Runs classes of Kafka's jars: nodes with the flags ``jvm``, tools with few.

    ``directory`` gets the logging settings that 3.x reads; ``archive`` is the class data sharing archive.
    """

    jars: tuple[Path, ...]
    jvm: tuple[str, ...]
    directory: Path
    archive: Path | None = None

    def argv(self, main_class: str, *args: str, jvm: tuple[str, ...] = (), node: bool = False) -> list[str]:
        shared = (f"-XX:SharedArchiveFile={self.archive}",) if self.archive else ()
        log = self._logging("INFO" if node else "WARN")
        flags = (*_JVM_LOG, *shared, *log, *(self.jvm if node else _TOOL_JVM), *jvm)
        return [java(), *flags, "-cp", os.pathsep.join(map(str, self.jars)), main_class, *args]

    def _logging(self, level: str) -> tuple[str, ...]:
        # 4.x logs with slf4j-simple to stderr; 3.x uses reload4j, which logs nothing without settings.
        settings = self.directory / f"log4j-{level.lower()}.properties"
        if not settings.exists():
            settings.write_text(_LOG4J.format(level=level))
        return (
            f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level.lower()}",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
            f"-Dlog4j.configuration=file:{settings}",
        )

    def run(self, main_class: str, *args: str, timeout: float = 60.0, check: bool = True) -> ToolResult:
        """Runs to the end. Raises ToolFailed on a status other than 0 (unless ``check`` is off) or on a timeout."""
        argv = self.argv(main_class, *args)
        shown = f"{main_class.rsplit('.', 1)[-1]} {' '.join(args)}"
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise ToolFailed(f"{shown} did not end within {timeout:g} s") from None
        if check and done.returncode != 0:
            raise ToolFailed(
                f"{shown} ended with status {done.returncode}\n{done.stdout}{done.stderr}".rstrip()
            )
        return ToolResult(tuple(argv), done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class Tools:
    """Java's admin tools against one cluster: ``cluster.tools("kafka-topics", "--describe")``."""

    runner: JavaRunner
    bootstrap: str
    client_properties: Path | None
    version: str

    def __call__(self, name: str, *args: str, timeout: float = 60.0, check: bool = True) -> ToolResult:
        """Runs the tool, with bootstrap servers and the superuser's client properties if it takes them."""
        if name not in MAIN_CLASSES:
            raise TestbedError(f"no such tool: {name}; there are {', '.join(MAIN_CLASSES)}")
        main_class = MAIN_CLASSES[name]
        release = tuple(map(int, self.version.split(".")[:2]))
        if release < (4, 0):
            main_class = _BEFORE_4.get(name, main_class)
        elif release >= (4, 4):
            main_class = _SINCE_4_4.get(name, main_class)
        return self.runner.run(main_class, *self._connection(name, args), *args, timeout=timeout, check=check)

    def _connection(self, name: str, args: tuple[str, ...]) -> tuple[str, ...]:
        if name in _OFFLINE:
            return ()
        given: tuple[str, ...] = ()
        if not any(arg.startswith("--bootstrap-") for arg in args):
            given = ("--bootstrap-server", self.bootstrap)
        if self.client_properties is not None and not _has_config(args):
            option = {"kafka-leader-election": "--admin.config"}.get(name, "--command-config")
            given += (option, str(self.client_properties))
        return given


def _has_config(args: tuple[str, ...]) -> bool:
    return bool({"--command-config", "--admin.config", "--config"} & set(args))
