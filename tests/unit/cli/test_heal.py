"""``ktriage heal``: what it asks for, and that nothing half done is left on disk."""

from __future__ import annotations

import json

from tests.unit.cli.command_process import Caller

TAIL = ("--simulate", "stale-long-tail", "--seed", "2")
GONE = ("heal", "show", "--broker-id", "3", "--gone-for-good", *TAIL)


def test_without_saying_that_it_is_gone_for_good_nothing_is_planned(call: Caller) -> None:
    ended = call("ktriage", "heal", "--broker-id", "3", *TAIL)
    assert (ended.status, ended.out) == (2, "")
    assert "give --gone-for-good if broker 3 and its disks do not come back" in ended.err


def test_a_broker_that_is_up_is_not_gone(call: Caller) -> None:
    ended = call("ktriage", "heal", "--broker-id", "2", "--gone-for-good", *TAIL)
    assert (ended.status, ended.out) == (2, "")
    assert "broker 2 is up (not fenced), so it is not gone" in ended.err


def test_neither_a_plan_nor_a_broker(call: Caller) -> None:
    ended = call("ktriage", "heal", "--gone-for-good", *TAIL)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "give a plan file, or --broker-id" in ended.err


def test_a_partition_without_a_leader_is_left_as_it_is(call: Caller) -> None:
    ended = call("ktriage", *GONE, "--export", "heal.json")
    assert ended.status == 1, str(ended)
    assert "elect one first (ktriage plan)" in ended.out
    assert not list(call.home.glob("heal*.json")), "no empty reassignment"


def test_a_broker_that_nobody_knows_has_nothing_to_heal(call: Caller) -> None:
    words = ("heal", "--broker-id", "5", "--gone-for-good", *TAIL)
    told = json.loads(call("ktriage", *words, "--output", "json").out)
    assert (told["moves"], told["registered"], told["files"]) == ([], [], [])
