"""Runs the commands in forked processes, so that their modules are loaded once for thousands of runs.

``python -m tests.wire.fork_server FD`` waits at the other end of that socket. It serves no cluster itself, so
that no run keeps a dead broker's port.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.unit.cli.command_process import ENTRY_POINTS, ROOT

DISK_FULL = signal.SIGUSR1
BROKEN = 70
"""The status of a run that ended neither by its own exit nor by a signal."""


class ForkedRunResult(NamedTuple):
    """``status`` is negative if a signal ended it."""

    status: int
    out: str
    err: str


class ForkedRun:
    """One run of a command. ``kill`` may be called at any time, also twice."""

    def __init__(self, server: ForkServer, pid: int, out: Path, err: Path) -> None:
        self._server = server
        self.pid = pid
        self._process = os.pidfd_open(pid)  # refers to this process even if its id is reused
        self._out, self._err = out, err

    def kill(self) -> None:
        """SIGKILL."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def fill_disk(self) -> None:
        """From now on the disk of its journal is full."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, DISK_FULL)

    async def ended(self) -> ForkedRunResult:
        """Waits for its end, without a limit."""
        try:
            line = await self._server.next_line()
        finally:
            os.close(self._process)
        return ForkedRunResult(
            line["status"], self._out.read_text(errors="replace"), self._err.read_text(errors="replace")
        )


class ForkServer:
    """Starts runs, one at a time."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        argv = (sys.executable, "-m", "tests.wire.fork_server", str(theirs.fileno()))
        with theirs:
            self._process = subprocess.Popen(argv, pass_fds=(theirs.fileno(),), cwd=ROOT)
        self._socket.setblocking(False)
        self._buffer = b""

    async def run(self, name: str, *words: str, env: Mapping[str, str], directory: Path) -> ForkedRun:
        """Starts ``name`` with ``words``; its output goes to files in ``directory``."""
        out, err = directory / "stdout", directory / "stderr"
        request = {"name": name, "words": words, "env": dict(env), "out": str(out), "err": str(err)}
        await asyncio.get_running_loop().sock_sendall(self._socket, json.dumps(request).encode() + b"\n")
        return ForkedRun(self, (await self.next_line())["pid"], out, err)

    async def next_line(self) -> Any:
        """The server's next line. Raises EOFError if it has ended."""
        while b"\n" not in self._buffer:
            more = await asyncio.get_running_loop().sock_recv(self._socket, 65_536)
            if not more:
                raise EOFError("the fork server has ended")
            self._buffer += more
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def close(self) -> None:
        """Ends the server: it stops when its socket is closed."""
        self._socket.close()
        self._process.wait()


def wait(number: int) -> None:
    """Forks a run for every line that arrives."""
    import console.cli.main  # noqa: F401  # loaded only in the server

    ours = socket.socket(fileno=number)
    modules, theirs = os.pipe()
    loaded = False
    with ours, ours.makefile("r") as lines:
        for line in lines:
            child = os.fork()
            if not child:
                if not loaded:
                    atexit.register(_report_modules, theirs)
                _run_command(json.loads(line), ours)
            ours.sendall(json.dumps({"pid": child}).encode() + b"\n")
            _, status = os.waitpid(child, 0)
            if not loaded:
                _load(modules, theirs)
                loaded = True
            ours.sendall(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode() + b"\n")


def _run_command(request: Mapping[str, Any], ours: socket.socket) -> None:
    """Runs the command from its entry point; does not return."""
    status = BROKEN
    try:
        ours.close()
        for number, path in ((1, request["out"]), (2, request["err"])):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(made, number)
            os.close(made)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.environ.clear()
        os.environ.update(request["env"])
        sys.argv = [request["name"], *request["words"]]
        signal.signal(DISK_FULL, _refuse_journal_writes)
        from console.cli import main

        getattr(main, ENTRY_POINTS[request["name"]])()
    except BaseException as error:  # the command calls exit itself, so this is a defect
        os.write(2, f"Traceback: {error!r}\n".encode())
    finally:
        os._exit(status)


def _refuse_journal_writes(_number: int, _frame: object) -> None:
    """Every further write to a journal fails, as on a full disk."""
    write = os.write

    def refused(descriptor: int, data: Any) -> int:
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".jsonl":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    os.write = refused


def _report_modules(theirs: int) -> None:
    os.write(theirs, "\n".join(sys.modules).encode()[:60_000])


def _load(modules: int, theirs: int) -> None:
    """Imports what the first run has imported, for all later runs."""
    os.set_blocking(modules, False)
    names = b""
    with suppress(BlockingIOError):  # a killed run reports nothing
        names = os.read(modules, 65_536)
    os.close(modules)
    os.close(theirs)
    for name in names.decode().splitlines():
        if name != "__main__":
            with suppress(ImportError):
                importlib.import_module(name)


if __name__ == "__main__":
    wait(int(sys.argv[1]))
