"""One Java process that runs Kafka's tools one after the other: a tool costs a tenth of a start of its own.

The tools are called as ``java`` calls them, by ``main``; only the exit of the process is replaced, by an error.
py4j, which comes with Spark, is the way in.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError
from py4j.version import __version__ as py4j_version

from testbed.kafka import ToolFailed, wait_until
from testbed.kafka.java import spawn
from testbed.kafka.java_tools import JavaRunner, ToolResult

_SERVER = "py4j.GatewayServer"
_JAR = Path(sys.prefix) / "share" / "py4j" / f"py4j{py4j_version}.jar"
_ANSWER_SECONDS = 180.0


class ResidentJava:
    """A connection to the process, with what it prints kept in two buffers. One tool runs at a time."""

    def __init__(self, port: int, token: str) -> None:
        # With memory management Python tells of each object that it drops, even after the process's end.
        parameters = GatewayParameters(
            port=port, auth_token=token, read_timeout=_ANSWER_SECONDS, enable_memory_management=False
        )
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self._one_at_a_time = threading.Lock()
        java = self._gateway.jvm.java
        # Scala keeps the stream that it finds first, so the two are never replaced by others.
        self._streams = (java.io.ByteArrayOutputStream(), java.io.ByteArrayOutputStream())
        java.lang.System.setOut(java.io.PrintStream(self._streams[0], True))
        java.lang.System.setErr(java.io.PrintStream(self._streams[1], True))
        self._exits = java.util.ArrayDeque()
        self._exit = self._exit_class()
        procedure = self._exit_procedure()
        exits = getattr(self._gateway.jvm, self._exit)
        exits.setExitProcedure(procedure)
        exits.setHaltProcedure(procedure)

    def run(self, main_class: str, *args: str) -> tuple[int, str, str]:
        """The status with which the tool's process would have ended, and what it would have printed."""
        with self._one_at_a_time:
            self._exits.clear()
            for stream in self._streams:
                stream.reset()
            failed = self._call(main_class, args)
            if self._exits.size():
                # A tool may catch what stands for its exit, and go on; its process would not.
                printed, complained, status = (self._exits.poll() for _ in range(3))
                return int(status), str(printed), str(complained)
            printed, complained = (str(stream.toString()) for stream in self._streams)
            return int(failed), printed, complained

    def _call(self, main_class: str, args: tuple[str, ...]) -> bool:
        """Whether it ended by an exception; that is printed as Java does."""
        java = self._gateway.jvm.java
        words = self._gateway.new_array(java.lang.String, len(args))
        for index, word in enumerate(args):
            words[index] = word
        try:
            getattr(self._gateway.jvm, main_class).main(words)
        except Py4JJavaError as thrown:
            if not self._exits.size():
                java.lang.System.err.print('Exception in thread "main" ')
                thrown.java_exception.printStackTrace()
            return True
        return False

    def _exit_class(self) -> str:
        """Kafka 4.4 moved it."""
        moved = "org.apache.kafka.common.utils.internals.Exit"
        try:
            self._gateway.jvm.java.lang.Class.forName(moved)
        except Py4JJavaError:
            return "org.apache.kafka.common.utils.Exit"
        return moved

    def _exit_procedure(self) -> Any:
        """A ``Exit.Procedure`` of method handles, as no class of ours is in the process.

        It adds to the exits what was printed until now and the status, and throws an error to end the tool.
        """
        java = self._gateway.jvm.java
        handles, lang = java.lang.invoke.MethodHandles, java.lang
        typed = java.lang.invoke.MethodType.methodType
        anything, text = lang.Class.forName("java.lang.Object"), lang.Class.forName("java.lang.String")
        number, nothing, truth = lang.Integer.TYPE, lang.Void.TYPE, lang.Boolean.TYPE
        lookup = handles.publicLookup()
        add = lookup.findVirtual(self._exits.getClass(), "add", typed(truth, anything))
        add = handles.insertArguments(add, 0, self._objects(self._exits))
        add = handles.explicitCastArguments(add, typed(nothing, anything))
        error = handles.throwException(nothing, lang.Class.forName("java.lang.InternalError"))
        error = handles.insertArguments(error, 0, self._objects(lang.InternalError("the tool's exit")))
        procedure = handles.foldArguments(
            handles.dropArguments(error, 0, self._list(number)),
            handles.explicitCastArguments(add, typed(nothing, number)),
        )
        for stream in reversed(self._streams):
            shown = lookup.findVirtual(stream.getClass(), "toString", typed(text))
            shown = handles.insertArguments(shown, 0, self._objects(stream))
            shown = handles.explicitCastArguments(shown, typed(anything))
            procedure = handles.foldArguments(procedure, handles.collectArguments(add, 0, shown))
        return lang.invoke.MethodHandleProxies.asInterfaceInstance(
            lang.Class.forName(f"{self._exit}$Procedure"),
            handles.dropArguments(procedure, 1, self._list(text)),
        )

    def _objects(self, only: Any) -> Any:
        array = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 1)
        array[0] = only
        return array

    def _list(self, only: Any) -> Any:
        return self._gateway.jvm.java.util.List.of(only)


@dataclass(frozen=True, slots=True)
class ResidentRunner(JavaRunner):
    """As JavaRunner, but tools run in the resident process; nodes still have processes of their own."""

    resident: ResidentJava | None = None

    def run(self, main_class: str, *args: str, timeout: float = 60.0, check: bool = True) -> ToolResult:  # noqa: ARG002
        """``timeout`` is the resident's own, for all tools the same."""
        assert self.resident is not None
        status, out, err = self.resident.run(main_class, *args)
        if check and status != 0:
            raise ToolFailed(f"{main_class} {' '.join(args)} ended with status {status}\n{out}{err}".rstrip())
        return ToolResult((main_class, *args), status, out, err)


class ResidentJavas:
    """A process for each set of jars that is asked for, started when it is; they end after the block."""

    def __init__(self) -> None:
        self._started: dict[tuple[Path, ...], tuple[ResidentJava, subprocess.Popen[bytes]]] = {}
        self._end = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    def runner(self, runner: JavaRunner) -> ResidentRunner:
        """Runs tools as ``runner`` does, in the resident process of its jars.

        A tool that does not understand its arguments may end the process: then the next cluster gets a new one.
        """
        if runner.jars not in self._started or self._started[runner.jars][1].poll() is not None:
            self._started[runner.jars] = self._end.enter_context(_running(runner))
        resident, _ = self._started[runner.jars]
        return ResidentRunner(runner.jars, runner.jvm, runner.directory, runner.archive, resident)


@contextmanager
def _running(runner: JavaRunner) -> Iterator[tuple[ResidentJava, subprocess.Popen[bytes]]]:
    with tempfile.TemporaryDirectory(prefix="ktriage-java-") as scratch:
        directory = Path(scratch)
        output = directory / "output"
        # The server's jar comes last: the archive of classes fits only a class path that begins as it did.
        serving = replace(runner, jars=(*runner.jars, _JAR), directory=directory)
        with output.open("wb") as log:
            process = spawn(serving.argv(_SERVER, "--enable-auth", "0"), cwd=directory, output=log)
        try:
            wait_until(lambda: output.read_text().count("\n") >= 2, f"{_SERVER} to listen", 120.0)
            port, token = output.read_text().split()[:2]
            yield ResidentJava(int(port), token), process
        finally:
            process.kill()
            process.wait()
