"""Files that do not fit the cluster: refused before anything is sent, with a next command that is possible."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import MemoryBackend, cluster_of, offline
from tests.unit.cli.planned_orders import AGREED, ANY, planned, sent, tp


@pytest.mark.parametrize(
    "command",
    [
        ("ktriage", "apply", *ANY, "leaders.json", *AGREED),
        ("kafka-elect-leaders", *ANY, "--election-type", "designated", "--path-to-json-file", "leaders.json"),
    ],
    ids=["apply", "elect"],
)
@pytest.mark.parametrize("leader", [-1, 1], ids=["offline", "with a leader"])
def test_a_row_of_leaders_with_a_broker_that_has_no_replica_is_refused_and_the_others_are_elected(
    call: Caller, command: tuple[str, ...], leader: int
) -> None:
    backend = cluster_of(2)
    leaders_file(call, backend, leader)
    ended = call.on(backend)(*command)
    assert ended.status == 1
    assert "broker 7 has no replica; the replicas are on [1, 2, 3]" in ended.out + ended.err
    assert sent(backend) == 1


@pytest.mark.parametrize("leader", [-1, 1], ids=["offline", "with a leader"])
def test_a_file_of_leaders_with_a_broker_that_has_no_replica_cannot_be_verified(
    call: Caller, leader: int
) -> None:
    backend = cluster_of(2)
    leaders_file(call, backend, leader)
    ended = call.on(backend)("ktriage", "verify", *ANY, "leaders.json")
    assert ended.status == 2
    assert "leaders.json: orders-1: broker 7 has no replica; the replicas are on [1, 2, 3]" in ended.err


def leaders_file(call: Caller, backend: MemoryBackend, leader: int) -> None:
    """leaders.json: 2 for the first partition; for the second, which is led by ``leader``, a broker without it."""
    backend.states[tp(1)] = backend.states[tp(1)]._replace(leader=leader)
    rows = [{**tp(number)._asdict(), "designatedLeader": broker} for number, broker in ((0, 2), (1, 7))]
    (call.home / "leaders.json").write_text(json.dumps({"partitions": rows}))


def test_a_plan_whose_topic_was_deleted_leads_to_the_status_and_to_no_plan_of_that_topic(
    call: Caller,
) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.states = {tp(0, "other"): offline("other", 0)}
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 4 and sent(backend) == 0
    assert "next: ktriage status" in ended.err and "--topic orders" not in ended.err
    resumed = call("ktriage", "resume", *ANY, "--plan", plan)
    assert f"next: ktriage verify {plan}" in resumed.err


def test_a_partition_that_has_another_leader_than_a_file_of_leaders_says_is_named(call: Caller) -> None:
    backend = cluster_of(3)
    for number in (1, 2):
        backend.states[tp(number)] = backend.states[tp(number)]._replace(leader=1)
    rows = [{**tp(number)._asdict(), "designatedLeader": leader} for number, leader in enumerate((1, 2, 1))]
    (call.home / "leaders.json").write_text(json.dumps({"partitions": rows}))
    ended = call.on(backend)("ktriage", "apply", *ANY, "leaders.json", *AGREED)
    assert ended.status == 0 and sent(backend) == 1
    assert [line for line in ended.out.splitlines() if line.startswith("note:")] == [
        "note: orders-1: led by 1, not by 2 as the file says; nothing is sent for it"
    ]


def test_a_partition_of_a_file_that_does_not_exist_refuses_no_other_one(call: Caller) -> None:
    backend = cluster_of(1)
    rows = [{"topic": "orders", "partitions": [0]}, {"topic": "deleted", "partitions": [0]}]
    (call.home / "wanted.json").write_text(json.dumps({"partitions": rows}))
    ended = call.on(backend)("ktriage", "plan", *ANY, "--path-to-json-file", "wanted.json", "plan.json")
    assert ended.status == 1, ended
    assert "deleted-0" in ended.out + ended.err
    plan = json.loads((call.home / "plan.json").read_text())
    assert [(row["topic"], row["partition"]) for row in plan["partitions"]] == [("orders", 0)]
    assert sent(backend) == 0
