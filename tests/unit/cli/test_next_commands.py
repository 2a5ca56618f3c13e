"""Every next command that is printed can be carried out in the state in which it is printed.

``python -m benchmarks.soak printed_commands`` does the same with faults, on served clusters.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backends.simulator.scenario.files import names
from tests.unit.cli.command_process import Caller
from tests.unit.cli.command_walk import CommandWalk

OWN = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
LARGE = {"offline-2000", "partitions-200000"}
"""More partitions, and no other commands."""
QUICK = {"broker-gone-for-good", "controller-disk-failure", "disk-failure", "stale-long-tail"}
INCIDENTS = [*(name for name in names() if name not in LARGE), *map(str, OWN)]
FIRST = (
    ("status",),
    ("check",),
    ("readiness",),
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


@pytest.mark.parametrize(
    "incident",
    [
        pytest.param(name, id=Path(name).stem, marks=() if Path(name).stem in QUICK else pytest.mark.long)
        for name in INCIDENTS
    ],
)
def test_no_printed_command_is_refused_or_leads_to_itself(
    incident: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    call = Caller(monkeypatch, home)
    where = ("--simulate", incident, "--state", str(home / "cluster.json"))
    gone = GONE.get(Path(incident).stem)
    heal = () if gone is None else (("heal", "show", "--broker-id", str(gone), "--gone-for-good"),)
    walk = CommandWalk(lambda words: call("ktriage", *words), home, tmp_path / "copies", where)
    assert not list(walk.troubles((*FIRST, *heal)))


TO_START = re.compile(r"(?:Start|[Bb]ring) (?:broker|brokers) ([\d, and or]+)")
NOT_TO_START = re.compile(r"[Dd]o not start (?:broker|brokers) ([\d, and or]+)")
STEPS = re.compile(r"(?=Do first|Only then[ :(]|Then[ :(])")


@pytest.mark.long
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
