"""Opens the console for ``ktriage`` without a command. Imported only if a console is opened."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.errors import InputError
from console.program import Program
from console.target import Target
from recovery.wording.missing_extra import missing_extra

if TYPE_CHECKING:
    from backends.metadata_log.copied_log import CopiedMetadataLog

LOOPBACK = "127.0.0.1"
LOWEST_PORT, HIGHEST_PORT = 1024, 65_535


def served() -> bool:
    """Whether this console runs in a browser (textual-serve starts it with its own driver)."""
    return "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")


def has_terminal() -> bool:
    """Whether there is a terminal for output and input."""
    streams = (sys.__stdin__, sys.__stderr__)
    return all(stream is not None and stream.isatty() for stream in streams)


def open_console(
    program: Program,
    target: Target | None,
    *,
    read_only: bool,
    guide: bool,
    metadata_dir: Path | None,
) -> int:
    """Opens it and returns the exit status. Raises InputError: no terminal, or no log in that directory."""
    in_browser = served()
    if not in_browser and not has_terminal():
        raise InputError("the console needs a terminal; ktriage status prints the same for a pipe")
    if not in_browser and os.environ.get("TERM") == "dumb":
        raise InputError(
            "this terminal (TERM=dumb) cannot show a screen; ktriage status prints the same. If it can, set TERM"
        )
    if program.logs_to_stderr:
        raise InputError("-v and --debug would write over the console: give --log-file FILE instead")
    copy = None if metadata_dir is None else _read_copy(metadata_dir)
    options = {"read_only": read_only, "guide": guide, "served": in_browser, "copy": copy}
    return int(_screens("start").start(program, target, **options))


def _read_copy(metadata_dir: Path) -> CopiedMetadataLog | None:
    from console.reading.copied_log import (  # noqa: PLC0415  # seldom needed
        read_metadata_dir,
    )

    return read_metadata_dir(metadata_dir)


def serve(arguments: Sequence[str], port: int) -> int:
    """Serves the console on loopback until it is interrupted. Raises InputError for an invalid port, and where
    the library that serves is missing.
    """
    if not LOWEST_PORT <= port <= HIGHEST_PORT:
        raise InputError(f"--port {port}: give one from {LOWEST_PORT} to {HIGHEST_PORT}")
    if find_spec("textual_serve") is None:
        raise InputError(missing_extra("--serve needs", "textual-serve", "serve"))
    # ktriage may lie where only this process looks for modules (ktriage.pyz).
    here = str(Path(__file__).parents[__name__.count(".")])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", __package__, *arguments]
    return int(_screens("browser").serve(shlex.join(command), LOOPBACK, port))


def _screens(module: str) -> Any:
    """Imports a module of the screens by name: commands do not depend on the screens, and only the console
    loads Textual.
    """
    return import_module(f"..app.{module}", __package__)
