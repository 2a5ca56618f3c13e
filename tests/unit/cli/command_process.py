"""Commands as a shell runs them, and the same in this process where a fault must be handed in."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from backends.base.protocol import Backend
from console import backends
from console.cli.command_tree import single, tree
from console.cli.main import run
from console.output.screen import Screen
from console.program import Program
from console.signals import Supervisor
from tests.command_server import ENTRY_POINTS, ROOT, Ended, run_command

LIMIT = 120.0
"""Seconds after which a command that does not end is killed."""


def command_line(name: str, *arguments: str) -> list[str]:
    """The entry point ``name`` with its arguments, by this interpreter."""
    function = ENTRY_POINTS[name]
    start = f"import sys; sys.argv[0] = {name!r}; from console.cli.main import {function} as run; run()"
    return [sys.executable, "-c", start, *arguments]


def environment(home: Path, **more: str) -> dict[str, str]:
    """An environment whose settings and records are in ``home``, and nowhere else."""
    ours = ("XDG_", "_KTRIAGE", "COLUMNS")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {
        **inherited,
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PYTHONPATH": str(ROOT),
        **more,
    }


def invoke(home: Path, name: str, *arguments: str, **more: str) -> Ended:
    """Runs the command in a process of its own; ``more`` are environment variables."""
    return run_command(name, arguments, environment(home, **more), home, LIMIT)


def started(home: Path, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """``ktriage`` with these words as a process that nobody listens to, to be killed; ``before`` stands in front of
    the command.
    """
    line = [*before, *command_line("ktriage", *words)]
    silent = subprocess.DEVNULL
    return subprocess.Popen(line, env=environment(home), cwd=home, stdout=silent, stderr=silent)


def typing(home: Path, line: Sequence[str], answer: str) -> Ended:
    """Runs the command line on a terminal where ``answer`` is typed when it asks; what it says is in ``err``."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        line,
        env=environment(home),
        cwd=home,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        said = b""
        while b":\r\n" not in said and (more := _read(ours)):
            said += more
        with contextlib.suppress(OSError):
            os.write(ours, answer.encode() + b"\n")
        out, _ = process.communicate(timeout=LIMIT)
        while more := _read(ours):
            said += more
    os.close(ours)
    return Ended(process.returncode, out, said.decode())


def _read(terminal: int) -> bytes:
    """What the other end has written; nothing once it is closed, which Linux tells by an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


class Caller:
    """Runs commands in this process: the very objects that the entry points run, without their start-up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
        self.home = home
        self._patch = monkeypatch
        monkeypatch.delenv("COLUMNS", raising=False)
        for key, value in environment(home).items():
            monkeypatch.setenv(key, value)
        monkeypatch.chdir(home)

    def on(self, backend: Backend) -> Caller:
        """From now on every cluster named is ``backend``: for faults that no real cluster can be made to show."""
        self._patch.setattr(backends, "backend", lambda _target, _say: backend)
        return self

    def __call__(self, name: str, *arguments: str) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        program = Program(
            name, (name, *arguments), Screen(time.monotonic, out, err), Supervisor(lambda _signum: "")
        )
        only = {"kafka-unclean-recovery": "recover", "kafka-elect-leaders": "elect"}.get(name)
        with contextlib.redirect_stdout(out):  # help is echoed by typer itself
            status = run(single(only) if only else tree(), program)
        return Ended(status, out.getvalue(), err.getvalue())
