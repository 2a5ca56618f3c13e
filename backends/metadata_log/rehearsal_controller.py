"""One real Kafka controller on a copy of a metadata log, for a rehearsal: on loopback, on a port that nobody was
told, in a directory that is removed afterwards. It ends with this process, whatever ends that.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from backends.log_segments.segment_source import reason_of

LISTENER_HOST = "127.0.0.1"
_HEAP = "-Xmx1g"
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_TROUBLE = re.compile(r"\b(ERROR|FATAL|Exception|Error)\b")
_THROWN = re.compile(
    r"(?:Caused by: |Exception in thread \S+ )?(?:[a-z][\w$]*\.)+[\w$]*(?:Exception|Error)\b.*"
)
"""The first line of an exception; its frames begin with a tab."""
_CAUSE = "Caused by: "
_SHOWN = 8
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_LOG4J2 = """\
<Configuration status="OFF">
  <Appenders><Console name="out"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""
"""3.x logs with log4j or reload4j, 4.x with log4j2; neither logs much without settings."""


class RehearsalError(Exception):
    """No controller could be started; one line for a person."""


def kafka_jars(directory: Path) -> tuple[Path, str]:
    """The folder of Kafka's jars (an installation, or its ``libs``), and the version. Raises RehearsalError."""
    for folder in (directory / "libs", directory):
        for jar in sorted(folder.glob("kafka_2.1*-*.jar")):
            found = re.fullmatch(r"kafka_2\.1\d-(\d[\w.-]*?)", jar.stem)
            if found is not None and found[1].replace(".", "").isdigit():
                return folder, found[1]
    raise RehearsalError(f"{directory}: holds no Kafka: neither kafka_2.13-VERSION.jar nor libs with it")


def free_port(taken: Collection[int]) -> int:
    """A port of loopback at which nothing listens, and that no voter of the plan names."""
    while True:
        with socket.socket() as probe:
            probe.bind((LISTENER_HOST, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port


def controller_properties(node: int, listener: str, port: int, log_dir: Path) -> dict[str, str]:
    """The server.properties of a controller that is alone. It writes what it makes of the log to a snapshot soon
    after it began to lead, and declares no broker dead meanwhile.
    """
    address = f"{LISTENER_HOST}:{port}"
    return {
        "process.roles": "controller",
        "node.id": str(node),
        "controller.listener.names": listener,
        "listeners": f"{listener}://{address}",
        "listener.security.protocol.map": f"{listener}:PLAINTEXT",
        "log.dirs": str(log_dir),
        "controller.quorum.bootstrap.servers": address,
        "metadata.log.max.record.bytes.between.snapshots": "1",
        "broker.session.timeout.ms": "86400000",
        "auto.leader.rebalance.enable": "false",
    }


class RehearsalController:
    """The process. ``directory`` gets its settings and its output."""

    def __init__(self, jars: Path, directory: Path, properties: Mapping[str, str]) -> None:
        self._log = directory / "server.log"
        settings = directory / "server.properties"
        settings.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        (directory / "log4j.properties").write_text(_LOG4J)
        (directory / "log4j2.xml").write_text(_LOG4J2)
        self._argv = [
            _java(),
            *(shlex.split(os.environ.get("KAFKA_HEAP_OPTS", "")) or [_HEAP]),
            *_FLAGS,
            f"-Dlog4j.configuration=file:{directory / 'log4j.properties'}",
            f"-Dlog4j2.configurationFile={directory / 'log4j2.xml'}",
            "-cp",
            f"{jars}/*",
            "kafka.Kafka",
            str(settings),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The controller runs until the end of the block. Call it in the main thread: Linux ends a child with the
        *thread* that started it. Raises RehearsalError.
        """
        parent = os.getpid()

        def end_with_parent() -> None:
            if _LIBC is not None:
                _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)

        try:
            with self._log.open("wb") as output:
                self._process = subprocess.Popen(
                    self._argv,
                    cwd=self._log.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=end_with_parent,  # noqa: PLW1509  # only calls into libc, which is loaded already
                )
        except OSError as error:
            raise RehearsalError(f"{self._argv[0]}: cannot be started: {reason_of(error)}") from None
        try:
            yield
        finally:
            self._process.kill()
            self._process.wait()

    @property
    def has_ended(self) -> bool:
        """Whether it ended on its own."""
        return self._process is not None and self._process.poll() is not None

    def last_errors(self) -> tuple[str, ...]:
        """The last lines of its own log that tell of an error, before them the deepest cause of the last one;
        without any, its last lines.
        """
        last: deque[str] = deque(maxlen=_SHOWN)
        trouble: deque[str] = deque(maxlen=_SHOWN)
        cause = ""
        with contextlib.suppress(OSError), self._log.open(errors="replace") as log:
            for line in log:
                text = line.rstrip()
                last.append(text)
                if _THROWN.fullmatch(text):
                    cause = text.removeprefix(_CAUSE)
                elif _TROUBLE.search(text):
                    trouble.append(text)
        return (*([cause] if cause else []), *(trouble or last))


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None:
        raise RehearsalError("there is no java: set JAVA_HOME, or put java into the PATH")
    return found
