"""Runs the commands in forked processes, so that their modules are loaded once for thousands of runs.

``python -m tests.wire.fork_server FD`` waits at the other end of that socket. It serves no cluster itself, so
that no run keeps a dead broker's port.
"""

from __future__ import annotations

import asyncio
import atexit
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

BROKEN = 70
"""The status of a run that left neither by its own way out nor by a signal."""


class ForkedRunResult(NamedTuple):
    """``status`` is negative where a signal ended it."""

    status: int
    out: str
    err: str


class ForkedRun:
    """One run of the tool. ``kill`` may be called at any time, and twice."""

    def __init__(self, ready: ForkServer, pid: int, out: Path, err: Path) -> None:
        self._ready = ready
        self.pid = pid
        self._process = os.pidfd_open(
            pid
        )  # a file that stands for the process, so that no other is ever meant
        self._out, self._err = out, err

    def kill(self) -> None:
        """SIGKILL."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    async def ended(self) -> ForkedRunResult:
        """Once it has ended; waits for as long as that takes."""
        try:
            told = await self._ready.hear()
        finally:
            os.close(self._process)
        return ForkedRunResult(
            told["status"], self._out.read_text(errors="replace"), self._err.read_text(errors="replace")
        )


class ForkServer:
    """Starts runs, one at a time."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        argv = (sys.executable, "-m", "tests.wire.fork_server", str(theirs.fileno()))
        with theirs:
            self._process = subprocess.Popen(argv, pass_fds=(theirs.fileno(),), cwd=ROOT)
        self._socket.setblocking(False)
        self._heard = b""

    async def run(self, name: str, *words: str, env: Mapping[str, str], directory: Path) -> ForkedRun:
        """Begin ``name`` with ``words``; what it says is kept in ``directory``."""
        out, err = directory / "stdout", directory / "stderr"
        asked = {"name": name, "words": words, "env": dict(env), "out": str(out), "err": str(err)}
        await asyncio.get_running_loop().sock_sendall(self._socket, json.dumps(asked).encode() + b"\n")
        return ForkedRun(self, (await self.hear())["pid"], out, err)

    async def hear(self) -> Any:
        """The next line of what it tells. Raises EOFError where it is gone."""
        while b"\n" not in self._heard:
            more = await asyncio.get_running_loop().sock_recv(self._socket, 65_536)
            if not more:
                raise EOFError("the process that starts the runs is gone")
            self._heard += more
        line, self._heard = self._heard.split(b"\n", 1)
        return json.loads(line)

    def close(self) -> None:
        """It leaves when nobody talks to it any more."""
        self._socket.close()
        self._process.wait()


def wait(number: int) -> None:
    """Forks a run for every line that comes."""
    import console.cli.main  # noqa: F401  # loaded by nobody who only starts this

    ours = socket.socket(fileno=number)
    modules, theirs = os.pipe()
    loaded = False
    with ours, ours.makefile("r") as lines:
        for line in lines:
            child = os.fork()
            if not child:
                if not loaded:
                    atexit.register(_tell_modules, theirs)
                _become(json.loads(line), ours)
            ours.sendall(json.dumps({"pid": child}).encode() + b"\n")
            _, status = os.waitpid(child, 0)
            if not loaded:
                _load(modules, theirs)
                loaded = True
            ours.sendall(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode() + b"\n")


def _become(asked: Mapping[str, Any], ours: socket.socket) -> None:
    """The tool, from its entry point on; does not come back."""
    status = BROKEN
    try:
        ours.close()
        for number, path in ((1, asked["out"]), (2, asked["err"])):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(made, number)
            os.close(made)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.environ.clear()
        os.environ.update(asked["env"])
        sys.argv = [asked["name"], *asked["words"]]
        from console.cli import main

        getattr(main, ENTRY_POINTS[asked["name"]])()
    except BaseException as error:  # the tool leaves by itself: this is a defect, whatever it is
        os.write(2, f"Traceback: {error!r}\n".encode())
    finally:
        os._exit(status)


def _tell_modules(theirs: int) -> None:
    os.write(theirs, "\n".join(sys.modules).encode()[:60_000])


def _load(modules: int, theirs: int) -> None:
    """What the first run has loaded besides, for all that follow."""
    os.set_blocking(modules, False)
    told = b""
    with suppress(BlockingIOError):  # a run that was killed tells nothing
        told = os.read(modules, 65_536)
    os.close(modules)
    os.close(theirs)
    for name in told.decode().splitlines():
        if name != "__main__":
            with suppress(ImportError):
                importlib.import_module(name)


if __name__ == "__main__":
    wait(int(sys.argv[1]))
