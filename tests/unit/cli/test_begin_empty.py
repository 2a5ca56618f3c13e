"""``heal begin-empty``: every replica was on brokers that do not come back."""

from __future__ import annotations

import json
import re

import pytest

from backends.base.errors import Unreachable
from backends.simulator.adapter import SimulatorBackend
from tests.unit.cli.command_process import Caller
from tests.unit.recovery.short_sentences import too_much

SCENARIO = """
title: Every replica of a topic is on brokers that do not come back
about: archive had its replicas on 3 and 4, which are killed; orders has one left.
cluster:
  brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 4}]
  controllers: [100, 101, 102]
topics:
  - {name: orders, replicas: [[1, 3]], records: 10}
  - {name: archive, replicas: [[3, 4]], partitions: 2, records: 10}
faults:
  - {at: 5, do: kill, nodes: [broker-3, broker-4], note: "both are killed"}
operator: {at: 30}
expect: {offline: 2}
"""
BOTH = ("--broker-id", "3", "--broker-id", "4", "--gone-for-good")
AGREED = ("--yes", "--reason", "burned")
LOST = re.compile("EVERY record of|What a disk of|Offsets begin at 0")


@pytest.fixture
def cluster(call: Caller) -> tuple[str, str]:
    (call.home / "gone.yaml").write_text(SCENARIO)
    return ("--simulate", str(call.home / "gone.yaml"))


def test_what_is_lost_is_said_and_nothing_else_is_moved(call: Caller, cluster: tuple[str, str]) -> None:
    shown = call("ktriage", "heal", "show", *BOTH, *cluster)
    assert "only if no disk of theirs ever comes back" in shown.err and "heal begin-empty" in shown.err, shown
    one = call("ktriage", "heal", "begin-empty", "--broker-id", "3", "--gone-for-good", "--dry-run", *cluster)
    assert "0 partitions without any replica left" in one.out, "4 was not said to be gone"
    begun = call("ktriage", "heal", "begin-empty", *BOTH, *AGREED, *cluster)
    assert "EVERY record of archive-0, archive-1 is lost." in begun.out and "2 moved" in begun.out, begun
    lost = [line.strip(" -!") for line in begun.out.splitlines() if LOST.search(line)]
    assert len(lost) == len(LOST.pattern.split("|")), begun
    assert not list(filter(None, (too_much(line, 120) for line in lost)))
    told = json.loads(call("ktriage", "replicas", "--topic", "archive", *cluster, "--output", "json").out)
    assert all(p["leader"] in p["isr"] and sorted(p["isr"]) == [1, 2] for p in told["partitions"]), told
    assert {log["logEndOffset"] for p in told["partitions"] for log in p["logs"]} == {0}, told
    orders = json.loads(call("ktriage", "replicas", "--topic", "orders", *cluster, "--output", "json").out)
    assert {log["broker"] for p in orders["partitions"] for log in p["logs"]} == {1, 3}, "not moved"


def test_a_run_that_was_killed_before_the_election_is_finished_by_resume(
    call: Caller, cluster: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(*_: object) -> None:
        raise Unreachable("killed")

    with monkeypatch.context() as dying:
        dying.setattr(SimulatorBackend, "elect", killed)
        assert call("ktriage", "heal", "begin-empty", *BOTH, *AGREED, *cluster).status != 0
    status = call("ktriage", "status", *cluster)
    assert "2 offline" in status.out and "next: ktriage resume" in status.err, status
    resumed = call("ktriage", "resume", *cluster)
    assert "2 partitions moved" in resumed.err + resumed.out, resumed
    assert "0 offline" in call("ktriage", "status", *cluster).out
