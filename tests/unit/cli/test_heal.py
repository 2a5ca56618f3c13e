"""``ktriage heal``: what it asks for, and that nothing half done is left on disk."""

from __future__ import annotations

import json

from tests.unit.cli.command_process import Caller

AGREED = ("--yes", "--reason", "a test")
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
    ended = call("ktriage", *words)
    assert ended.status == 1 and "no broker 5 is registered, or has a replica: check the number" in ended.out
    applied = call("ktriage", "heal", "apply", *words[1:], "--dry-run")
    assert applied.status == 1 and "check the number" in applied.out, applied


GONE_FOR_GOOD = ("--broker-id", "3", "--gone-for-good", "--simulate", "broker-gone-for-good")


def test_a_rehearsal_heals_every_partition(call: Caller) -> None:
    ended = call("ktriage", "heal", "apply", *GONE_FOR_GOOD, "--batch-size", "2", *AGREED)
    assert (ended.status, ended.out.splitlines()[-1]) == (0, "6 partitions: 6 moved"), str(ended)
    recorded = call("ktriage", "journal", *GONE_FOR_GOOD[3:]).out
    assert "    orders-0: replicas 1,2,3 -> 1,2,5 (moved)" in recorded, recorded
    after = call("ktriage", "heal", *GONE_FOR_GOOD)
    assert "no partition that may be seen has a replica on broker 3" in after.out
    # No next command: a simulated cluster does not unregister brokers.
    assert "on a real cluster its registration is removed next" in after.err and "next:" not in after.err


def test_what_is_to_be_done_first_is_a_command_for_this_cluster(call: Caller) -> None:
    ended = call("ktriage", "heal", "unregister", *GONE_FOR_GOOD, *AGREED)
    first = "(ktriage heal show --broker-id 3 --gone-for-good --simulate broker-gone-for-good)"
    assert ended.status != 0 and first in ended.err, ended


def test_a_plan_file_names_the_partitions_and_by_them_the_broker(call: Caller) -> None:
    rows = [{"topic": "orders", "partition": 1, "designatedLeader": 1}]
    (call.home / "recovery.json").write_text(json.dumps({"partitions": rows}))
    words = ("heal", "recovery.json", "--gone-for-good", "--simulate", "broker-gone-for-good")
    told = json.loads(call("ktriage", *words, "--output", "json").out)
    assert (told["gone"], [move["partition"] for move in told["moves"]]) == ([3], [1])
    assert told["moves"][0]["added"] == [5], "rack c has no replica left"


def test_the_file_for_kafkas_tool_has_one_batch_each(call: Caller) -> None:
    ended = call("ktriage", "heal", *GONE_FOR_GOOD, "--export", "heal.json", "--batch-size", "4")
    assert "Leave --throttle out" in ended.err
    first, second = (json.loads((call.home / f"heal-{number}.json").read_text()) for number in (1, 2))
    assert (first["version"], len(first["partitions"]), len(second["partitions"])) == (1, 4, 2)
    assert first["partitions"][0] == {"topic": "orders", "partition": 0, "replicas": [1, 2, 5]}
    again = call("ktriage", "heal", *GONE_FOR_GOOD, "--export", "heal.json", "--batch-size", "4")
    assert (again.status, "is never overwritten" in again.err) == (2, True)
