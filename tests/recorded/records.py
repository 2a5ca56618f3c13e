"""Records: a directory for each incident, a file for each command and each size of the panes."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from backends.simulator.scenario.files import names
from tests.recorded.commands import AFTERWARDS, READING, recorded_commands, simulated
from tests.recorded.panes import SIZES, recorded_panes
from tests.recorded.real import INCIDENTS, TAPED, tape_of, taped

DIRECTORY = Path(__file__).parent / "records"
TOO_LARGE = frozenset({"partitions-200000"})
"""A command takes half a minute here, and shows nothing that ``offline-2000`` does not."""
QUICK = ("stale-long-tail",)
"""What the fast tests compare."""


def incidents() -> tuple[str, ...]:
    """Every incident that can be recorded: simulated ones, and real ones whose tapes are there."""
    others = [name for name in names() if name not in (*TOO_LARGE, *QUICK)]
    return (*QUICK, *others, *(name for name in INCIDENTS if tape_of(name).exists()))


def recorded_incidents() -> tuple[str, ...]:
    """Those that have a record."""
    return tuple(name for name in incidents() if (DIRECTORY / name).is_dir())


def records_of(incident: str) -> Iterator[tuple[str, str]]:
    """What is recorded of the incident now: the file's name and its text."""
    # Lines are folded by the length of its name.
    with tempfile.TemporaryDirectory(prefix="ktriage-recorded-", dir="/tmp") as directory:
        home = Path(directory)
        if incident in INCIDENTS:
            commands = recorded_commands(TAPED, taped(incident, home), home, "")
        else:
            today = datetime.now(UTC).isoformat()[:10]
            commands = recorded_commands((*READING, *AFTERWARDS), simulated(incident, home), home, today)
        for name, text in commands:
            yield f"{name}.txt", text
    for width, height in SIZES if incident not in INCIDENTS else ():
        yield f"panes-{width}x{height}.txt", recorded_panes(incident, (width, height))


def differences(incident: str) -> Iterator[str]:
    """Unified differences between the record of the incident and what is shown now; none where they are equal."""
    seen = set()
    for name, now in records_of(incident):
        seen.add(name)
        file = DIRECTORY / incident / name
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        yield from _unified(f"{incident}/{name}", before, now)
    for file in sorted((DIRECTORY / incident).glob("*.txt")):
        if file.name not in seen:
            yield from _unified(f"{incident}/{file.name}", file.read_text(encoding="utf-8"), "")


def write(incident: str) -> None:
    """Replaces the incident's record."""
    directory = DIRECTORY / incident
    directory.mkdir(parents=True, exist_ok=True)
    written = set()
    for name, text in records_of(incident):
        (directory / name).write_text(text, encoding="utf-8")
        written.add(name)
    for file in directory.glob("*.txt"):
        if file.name not in written:
            file.unlink()


def _unified(name: str, before: str, now: str) -> Iterator[str]:
    lines = (before.splitlines(), now.splitlines())
    return difflib.unified_diff(*lines, f"recorded/{name}", f"now/{name}", lineterm="", n=1)
