"""Runs commands in forked processes: their modules are loaded once for all runs, not once for each.

Starting Python and loading the modules is most of a short command's time. ``python -m tests.command_server FD``
waits at the other end of that socket and forks a process for every run: it has its own environment, directory and
output, and starts at the entry point like the installed command. The server serves no cluster itself, so that no
run keeps a dead broker's port.
"""

from __future__ import annotations

import atexit
import errno
import importlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tests import kept_runs

ENTRY_POINTS = {
    "ktriage": "main",
    "kafka-unclean-recovery": "kafka_unclean_recovery",
    "kafka-elect-leaders": "kafka_elect_leaders",
}
ROOT = Path(__file__).resolve().parents[1]
DISK_FULL = signal.SIGUSR1
"""A run that gets it can write nothing more to its journal."""
BROKEN = 70
"""The status of a run that ended neither by its own exit nor by a signal."""
_NOT_SHARED = frozenset({"__main__", "numpy", "pandas", "pyarrow", "pyspark", "textual"})
"""Each run loads these itself: they start threads, or most commands must do without them."""


class Ended(NamedTuple):
    """What a command came to; ``status`` is negative if a signal ended it."""

    status: int
    out: str
    err: str


class CommandServer:
    """The server of this process, for one command after another."""

    def __init__(self) -> None:
        self._socket, self._process = start_server()
        self._lines = self._socket.makefile("r")
        self._outputs = tempfile.TemporaryDirectory(prefix="ktriage-commands-")
        atexit.register(self.close)

    def run(
        self, name: str, words: Sequence[str], env: Mapping[str, str], directory: Path, timeout: float
    ) -> Ended:
        """Runs ``name`` to its end. Raises TimeoutExpired after ``timeout`` seconds, with the run killed."""
        out, err = (Path(self._outputs.name) / stream for stream in ("stdout", "stderr"))
        self._socket.sendall(request(name, words, env, directory, (out, err)))
        pid = json.loads(self._lines.readline())["pid"]
        process = os.pidfd_open(pid)
        self._socket.settimeout(timeout)
        try:
            status = json.loads(self._lines.readline())["status"]
        except TimeoutError:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            _server.cache_clear()
            raise subprocess.TimeoutExpired([name, *words], timeout, err.read_bytes()) from None
        finally:
            os.close(process)
            self._socket.settimeout(None)
        return Ended(status, out.read_text(), err.read_text())

    def close(self) -> None:
        """Ends the server: it stops when its socket is closed."""
        self._lines.close()
        self._socket.close()
        self._process.wait()
        self._outputs.cleanup()


@cache
def _server() -> CommandServer:
    return CommandServer()


def run_command(
    name: str, words: Sequence[str], env: Mapping[str, str], directory: Path, timeout: float
) -> Ended:
    """As :meth:`CommandServer.run`, with the one server of this process."""
    return _server().run(name, words, env, directory, timeout)


def start_server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A new server and our end of its socket, on which one JSON line asks for a run (``request``).

    It answers with two lines: ``{"pid": …}`` when the run has started, ``{"status": …}`` when it has ended.
    """
    ours, theirs = socket.socketpair()
    argv = (sys.executable, "-m", "tests.command_server", str(theirs.fileno()), str(kept_runs.directory()))
    with theirs:
        server = subprocess.Popen(argv, pass_fds=(theirs.fileno(),), cwd=ROOT, stdout=subprocess.DEVNULL)
    return ours, server


def request(
    name: str, words: Sequence[str], env: Mapping[str, str], directory: Path, outputs: tuple[Path, Path]
) -> bytes:
    """The line that asks for a run in ``directory``; ``outputs`` are the files of its stdout and stderr."""
    files = tuple(map(str, outputs))
    asked = {"name": name, "words": words, "env": dict(env), "directory": str(directory), "outputs": files}
    return json.dumps(asked).encode() + b"\n"


def serve(number: int, runs_directory: Path) -> None:
    """Forks a run for every line that arrives."""
    import console.cli.main  # noqa: F401  # loaded only in the server

    # As the entry points have it: no library adds lines of its own.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    kept_runs.keep(runs_directory)
    ours = socket.socket(fileno=number)
    with ours, ours.makefile("r") as lines:
        child = 0
        for line in lines:
            if child:
                os.waitpid(child, 0)
            modules, theirs = os.pipe()
            child = os.fork()
            if not child:
                atexit.register(_report_modules, theirs, frozenset(sys.modules))
                _run(json.loads(line), ours)
            os.close(theirs)
            ours.sendall(json.dumps({"pid": child}).encode() + b"\n")
            ours.sendall(json.dumps({"status": _status_of(child)}).encode() + b"\n")
            _load(modules)


def _status_of(child: int) -> int:
    """The status of ``child`` when it has ended, negative if a signal ended it.

    The ended process is kept until the next run is asked for: on a busy machine a short run can end before its
    asker has opened it by its id, and an id that is free again may be another process.
    """
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert ended
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _run(asked: Mapping[str, Any], ours: socket.socket) -> NoReturn:
    """Runs the command from its entry point."""
    try:
        ours.close()
        for number, path in enumerate(asked["outputs"], 1):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(made, number)
            os.close(made)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.chdir(asked["directory"])
        os.environ.clear()
        os.environ.update(asked["env"])
        sys.argv = [asked["name"], *asked["words"]]
        sys.modules["__main__"] = types.ModuleType("__main__")
        signal.signal(DISK_FULL, _refuse_journal_writes)
        from console.cli import main

        getattr(main, ENTRY_POINTS[asked["name"]])()
    except BaseException as error:  # the command calls exit itself, so this is a defect
        os.write(2, f"Traceback: {error!r}\n".encode())
    finally:
        os._exit(BROKEN)


def _refuse_journal_writes(_number: int, _frame: object) -> None:
    """Every further write to a journal fails, as on a full disk."""
    write = os.write

    def refused(descriptor: int, data: Any) -> int:
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".jsonl":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    os.write = refused


def _report_modules(theirs: int, loaded: frozenset[str]) -> None:
    os.write(theirs, "\n".join(name for name in sys.modules if name not in loaded).encode()[:60_000])


def _load(modules: int) -> None:
    """Imports what a run has imported, for all later runs."""
    os.set_blocking(modules, False)
    names = b""
    with suppress(BlockingIOError):  # a process that the run has left behind still has the other end
        names = os.read(modules, 65_536)
    os.close(modules)
    for name in names.decode().splitlines():
        if name.partition(".")[0] not in _NOT_SHARED:
            with suppress(ImportError):
                importlib.import_module(name)


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
