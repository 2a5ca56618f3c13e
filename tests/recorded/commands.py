"""What the commands print on a cluster: at 80 columns, at 160 and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.command_server import Ended, run_command
from tests.recorded.masks import masked, shortened
from tests.unit.cli.command_process import LIMIT, environment

WIDTHS = (80, 160)
PLAN = "recovery.json"


class Recorded(NamedTuple):
    """A command that is run at every width and with every output in ``forms``; ``once``: at the last width only,
    because it changes the cluster or writes a file.
    """

    name: str
    words: tuple[str, ...]
    forms: tuple[str, ...] = ("json",)
    once: bool = False


READING = (
    Recorded("check", ("check",)),
    Recorded("status", ("status",)),
    Recorded("quorum-status", ("quorum", "status")),
    Recorded("quorum-replication", ("quorum", "replication")),
    Recorded("log-dirs", ("log-dirs",)),
    Recorded("log-dirs-if-fails", ("log-dirs", "--if-fails", "1")),
    Recorded("replicas", ("replicas", "--all-offline-partitions", "--rows", "5")),
    Recorded("plan-balanced", ("plan", "balanced.json", "--rows", "5"), forms=(), once=True),
    Recorded("plan", ("plan", PLAN, "--strategy", "aggressive", "--rows", "5"), forms=(), once=True),
    Recorded("review", ("review", PLAN, "--rows", "5"), forms=("json", "markdown")),
    Recorded("recover", ("recover", "--dry-run", "--all-offline-partitions", "--rows", "5")),
    Recorded("groups", ("groups", "show", "--all")),
    Recorded("transactions", ("transactions", "show")),
    Recorded("heal", ("heal", "show", "--broker-id", "2", "--gone-for-good")),
    Recorded("timeline", ("timeline",)),
    Recorded("handover", ("handover",)),
)
"""What changes no cluster."""
AFTERWARDS = (
    Recorded("apply", ("apply", PLAN, "--yes", "--no-rescue", "--reason", "rehearsal"), forms=(), once=True),
    Recorded("verify", ("verify", PLAN)),
    Recorded("status-after", ("status",)),
    Recorded("journal", ("journal",)),
    Recorded("report", ("report",), forms=("html", "json")),
    Recorded("handover-after", ("handover",)),
)


Run = Callable[[tuple[str, ...], Mapping[str, str]], Ended]
"""Runs ``ktriage`` with these words, and these environment variables beside those of a home of its own."""


def recorded_commands(
    commands: tuple[Recorded, ...], run: Run, home: Path, today: str
) -> Iterator[tuple[str, str]]:
    """The name of each command and what it printed, one after the other. ``home`` and ``today`` as for
    :func:`masked`.
    """
    for command in commands:
        texts = [f"$ {' '.join(('ktriage', *command.words))}"]
        shown = {}
        for width in WIDTHS[-1:] if command.once else WIDTHS:
            shown[f"{width} columns"] = run(command.words, {"KTRIAGE_WIDTH": str(width)})
        for form in command.forms:
            shown[form] = run((*command.words, "--output", form), {})
        before = ""
        for title, ended in shown.items():
            text = shortened(masked(_both(ended), home, today))
            texts.append(f"== {title}, status {ended.status}")
            texts.append("(as above)\n" if text == before else text)
            before = text
        yield command.name, "\n".join(texts)


def simulated(scenario: str, home: Path) -> Run:
    """Runs commands on a scenario, which goes on from command to command."""

    def run(words: tuple[str, ...], more: Mapping[str, str]) -> Ended:
        cluster = ("--simulate", scenario)
        return run_command("ktriage", (*words, *cluster), environment(home, **more), home, LIMIT)

    return run


def _both(ended: Ended) -> str:
    return f"{ended.out}-- stderr\n{ended.err}" if ended.err else ended.out
