"""The process: what was run, its streams and its signals."""

from __future__ import annotations

from dataclasses import dataclass

from console.output.screen import Screen
from console.signals import Supervisor


@dataclass(slots=True)
class Program:
    """The process: its name and arguments, its streams, its signals.

    ``resume`` is the command that a second signal prints before the process leaves at once. ``logs_to_stderr``:
    connections or requests are said there.
    """

    name: str
    argv: tuple[str, ...]
    screen: Screen
    supervisor: Supervisor
    resume: str = ""
    logs_to_stderr: bool = False
