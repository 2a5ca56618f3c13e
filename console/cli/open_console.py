"""From ``ktriage`` without a command to the console: imported where one is opened, and nowhere else."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from console.errors import InputError
from console.program import Program
from console.target import Target

LOOPBACK = "127.0.0.1"
LOWEST_PORT, HIGHEST_PORT = 1024, 65_535


def served() -> bool:
    """Whether this console is drawn in a browser (textual-serve starts it with a driver of its own)."""
    return "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")


def has_terminal() -> bool:
    """Whether there is a terminal to draw on and to type at."""
    streams = (sys.__stdin__, sys.__stderr__)
    return all(stream is not None and stream.isatty() for stream in streams)


def open_console(program: Program, target: Target | None, *, read_only: bool, guide: bool) -> int:
    """Opens it and returns the exit status. Raises InputError where there is no terminal."""
    in_browser = served()
    if not in_browser and not has_terminal():
        raise InputError("the console needs a terminal; ktriage status prints the same for a pipe")
    return int(_screens("start").start(program, target, read_only=read_only, guide=guide, served=in_browser))


def serve(arguments: Sequence[str], port: int) -> int:
    """Serves the console on loopback until it is interrupted. Raises InputError for a port that cannot be."""
    if not LOWEST_PORT <= port <= HIGHEST_PORT:
        raise InputError(f"--port {port}: give one from {LOWEST_PORT} to {HIGHEST_PORT}")
    command = [sys.executable, "-m", "console.cli", *arguments]
    return int(_screens("browser").serve(shlex.join(command), LOOPBACK, port))


def _screens(module: str) -> Any:
    """A module of the screens, by name: no command knows them, and Textual is loaded where they open."""
    return import_module(f"console.app.{module}")
