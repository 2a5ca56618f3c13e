"""A class data sharing archive (JEP 350) of Kafka's classes: it saves a third of the CPU time of each start.

Measured on two cores: 2.6 to 1.6 CPU seconds for a broker, 0.8 to 0.5 for a tool, and 50 MB less memory a node.
Java checks the archive against the jars and itself, and runs without it when they do not fit.
"""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from testbed.kafka.errors import TestbedError
from testbed.kafka.format_storage import new_uuid
from testbed.kafka.java import java_version
from testbed.kafka.java_tools import MAIN_CLASSES, JavaRunner
from testbed.kafka.node import Node
from testbed.kafka.ports import PortReservation
from testbed.kafka.wait import wait_until

_UP = "Kafka Server started"


def class_archive(jars: tuple[Path, ...], jvm: tuple[str, ...], say: Callable[[str], None]) -> Path | None:
    """The archive for these jars and this Java; created if it is missing (about 8 s, once).

    If it cannot be created: None, and one line to ``say``; everything works without it.
    """
    directory = jars[0].parent
    archive = directory / f"classes-java-{java_version()}.jsa"
    with (directory / ".archive.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _fits(archive, jars):
            return archive
        say(f"archiving Kafka's classes in {archive}")
        try:
            _make(archive, jars, jvm)
        except (TestbedError, OSError) as error:
            say(f"Kafka's classes are not archived, so nodes start more slowly: {str(error).splitlines()[0]}")
            return None
    return archive


def _fits(archive: Path, jars: tuple[Path, ...]) -> bool:
    with suppress(FileNotFoundError):
        made = archive.stat().st_mtime
        return all(jar.stat().st_mtime <= made for jar in jars)
    return False


def _make(archive: Path, jars: tuple[Path, ...], jvm: tuple[str, ...]) -> None:
    """Runs one node that is broker and controller and stops it cleanly: then Java archives the loaded classes."""
    ports = PortReservation(2)
    with tempfile.TemporaryDirectory(prefix="ktriage-archive-") as scratch:
        directory = Path(scratch)
        part = archive.with_suffix(".part")
        runner = JavaRunner(jars, jvm, directory)
        node = Node(
            1,
            role="broker",
            directory=directory,
            log_dirs=(directory / "data",),
            port=ports.ports[0],
            runner=runner,
        )
        try:
            node.write_properties(_properties(ports.ports, node.log_dirs[0]))
            own = ["format", "-t", new_uuid(), "-c", str(node.properties_file)]
            runner.run(MAIN_CLASSES["kafka-storage"], *own)
            node.start((f"-XX:ArchiveClassesAtExit={part}",))
            wait_until(lambda: _is_up(node), "a node whose classes are archived to start", 60.0)
            node.stop(60.0)
            if not part.exists():
                raise TestbedError("Java wrote no archive")
            part.replace(archive)
        finally:
            node.kill()
            part.unlink(missing_ok=True)
            ports.release()


def _is_up(node: Node) -> bool:
    node.check_alive()
    return _UP in node.log_file.read_text(errors="replace")


def _properties(ports: tuple[int, ...], log_dir: Path) -> dict[str, str]:
    broker, controller = (f"127.0.0.1:{port}" for port in ports)
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(log_dir),
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
