"""Every next command that is printed can be carried out in the state in which it is printed.

A tree is walked: each command runs on a copy of the state that the command before it left, simulated time included.
What a terminal would ask is agreed to.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections import deque
from pathlib import Path
from typing import NamedTuple

import pytest

from backends.simulator.scenario.files import names
from console.errors import Status
from tests.command_server import Ended
from tests.unit.cli.command_process import Caller

OWN = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
LARGE = {"offline-2000", "partitions-200000"}
"""More partitions, and no other commands."""
INCIDENTS = [*(name for name in names() if name not in LARGE), *map(str, OWN)]
FIRST = (
    ("status",),
    ("check",),
    ("log-dirs",),
    ("plan", "--all-offline-partitions", "--strategy", "aggressive", "recovery.json"),
)
GONE = {
    "broker-gone-for-good": 3,
    "hanging-transactions": 3,
    "last-replica-standing": 2,
    "reassignment-to-an-empty-broker": 1,
    "stale-long-tail": 3,
}
"""Brokers that are down and may be gone for good."""
PRINTED = re.compile(r"^(?:next: +| {2})(ktriage [^<>|\n]+)$", re.MULTILINE)
"""``next: COMMAND``, and the lines of a hand-over."""
NAMED_ONLY = re.compile(r"\b(?:DIR|LOG_DIR|HOST:PORT)\b")
"""Arguments that only the operator knows: paths of another host."""
AGREED = ("--yes", "--reason", "drill")
WAITS = ("check again when it is:", "plan again when what stands above is done:")
"""What is missing is done by others, on hosts or by time: only then a command may be its own next one."""
MOST = 60


class Step(NamedTuple):
    """A command, the copy of the state that it runs on, the changes before it, and the command that printed it."""

    words: tuple[str, ...]
    state: Path
    changes: tuple[str, ...] = ()
    printed_by: str = "the operator"


class Walk:
    """Runs commands on copies of one directory, which always lies at the same path: commands name files by it."""

    def __init__(self, call: Caller, root: Path, scenario: str) -> None:
        self._call = call
        self._root = root
        self._copies = 0
        self.here = call.home
        self.where = ("--simulate", scenario, "--state", str(call.home / "cluster.json"))

    def copied(self) -> Path:
        self._copies += 1
        return Path(shutil.copytree(self.here, self._root / str(self._copies)))

    def run(self, step: Step) -> tuple[Ended, bool]:
        """The result, and whether it was asked and agreed to."""
        for old in self.here.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        shutil.copytree(step.state, self.here, dirs_exist_ok=True)
        ended = self._call("ktriage", *step.words)
        if ended.status != Status.USAGE or "there is no terminal to ask on" not in ended.err:
            return ended, False
        agreed = AGREED if "--reason" in ended.err else AGREED[:1]
        return self._call("ktriage", *step.words, *agreed), True


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda name: Path(name).stem)
def test_no_printed_command_is_refused_or_leads_to_itself(
    incident: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home, copies = tmp_path / "home", tmp_path / "copies"
    home.mkdir()
    walk = Walk(Caller(monkeypatch, home), copies, incident)
    untouched = walk.copied()
    gone = GONE.get(Path(incident).stem)
    heal = () if gone is None else (("heal", "show", "--broker-id", str(gone), "--gone-for-good"),)
    steps = deque(Step((*words, *walk.where), untouched) for words in (*FIRST, *heal))
    done: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    while steps:
        step = steps.popleft()
        if (step.words, step.changes) in done:
            continue
        done.add((step.words, step.changes))
        assert len(done) < MOST, f"printed commands lead to ever more commands: {sorted(done)[-3:]}"
        ended, agreed = walk.run(step)
        line = shlex.join(word for word in step.words if word not in walk.where)
        after = f"{line}, printed by {step.printed_by} after {step.changes}:\n{ended.err}"
        assert ended.status != Status.USAGE, after
        changes = (*step.changes, line) if agreed else step.changes
        state = walk.copied()
        printed = PRINTED.findall(f"{ended.out}\n{ended.err}")
        following = [tuple(shlex.split(text)[1:]) for text in printed if not NAMED_ONLY.search(text)]
        for words in following:
            assert words != step.words or any(wait in ended.err for wait in WAITS), (
                f"it is its own next command: {after}"
            )
            steps.append(Step(words, state, changes, line))
        if agreed:
            steps.append(Step(("handover", *walk.where), state, changes, "the operator"))


TO_START = re.compile(r"(?:Start|[Bb]ring) (?:broker|brokers) ([\d, and or]+)")
NOT_TO_START = re.compile(r"[Dd]o not start (?:broker|brokers) ([\d, and or]+)")
STEPS = re.compile(r"(?=Do first|Only then[ :(]|Then[ :(])")


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda name: Path(name).stem)
def test_no_broker_is_to_be_started_and_not_to_be_started(incident: str, call: Caller) -> None:
    """Unless the one stands expressly after the other."""
    for command in ("status", "handover"):
        shown = " ".join(call("ktriage", command, "--simulate", incident).out.split())
        now = [step for step in STEPS.split(shown) if not step.startswith("Only then")]
        assert not _brokers(NOT_TO_START, [shown]) & _brokers(TO_START, now), f"{command}: {shown}"


def _brokers(pattern: re.Pattern[str], steps: list[str]) -> set[str]:
    return {
        number for step in steps for named in pattern.findall(step) for number in re.findall(r"\d+", named)
    }
