"""``ktriage resume`` where orders of an election stand and a controller replacement is half done: orders first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.journal.change_kinds import REPLACE
from console.journal.journal import Journal
from console.journal.unfinished_entries import unfinished
from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition
from tests.unit.cli.command_process import Caller
from tests.unit.journal.runs import Clock, run

DISK = ("--simulate", "controller-disk-failure")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


@pytest.fixture
def cluster_id(call: Caller, tmp_path: Path) -> str:
    """Of a cluster where an earlier run left both."""
    call("ktriage", "quorum", "replace", "102", "--why", "disk", "--dry-run", "--plan", "r.json", *DISK)
    plan = tmp_path / "r.json"
    found: str = json.loads(plan.read_text())["clusterId"]
    first = json.loads(call("ktriage", "status", "--output", "json", *DISK).out)["partitions"][0]
    one, two, three = first["replicas"]
    # The assignment has neither of these orders any more.
    row = WrittenOrder(
        TopicPartition(first["topic"], first["partition"]),
        first["topicId"],
        (three, two, one),
        (two, one, three),
    )
    with Journal.open(found, run("killed"), Clock()) as journal:
        journal.before("reorder", {"rows": (row,)})
        journal.before(REPLACE, {"file": str(plan), "planId": json.loads(plan.read_text())["planId"]})
    return found


def test_orders_are_settled_before_a_replacement_that_cannot_be_gone_on_with(
    call: Caller, cluster_id: str
) -> None:
    ended = call("ktriage", "resume", *DISK)
    assert ended.status == 1
    assert "1 assignment: 1 changed by somebody else" in ended.out
    assert "there is no terminal to ask on" in ended.err
    left = unfinished(cluster_id)
    assert left.orders == ()
    assert left.of(REPLACE)


def test_orders_are_settled_where_the_plan_of_the_replacement_is_gone(call: Caller, cluster_id: str) -> None:
    Path("r.json").unlink()
    ended = call("ktriage", "resume", *DISK)
    assert ended.status == 2
    assert "resume --give-up" in ended.err
    assert unfinished(cluster_id).orders == ()


def test_with_json_there_is_one_document(call: Caller, cluster_id: str) -> None:
    ended = call("ktriage", "resume", "--output", "json", *DISK)
    assert json.loads(ended.out)["course"] == "nobody can be asked"
    assert "1 assignment: 1 changed by somebody else" in ended.err
    assert unfinished(cluster_id).orders == ()


def test_what_could_not_be_put_back_keeps_the_status(call: Caller, cluster_id: str) -> None:
    """The replacement itself is done to its end."""
    ended = call("ktriage", "resume", "--yes", "--reason", "a test", *DISK)
    assert "the replacement is done" in ended.out
    assert "not reverted: " in ended.err
    assert ended.status == 1
    assert unfinished(cluster_id).nothing
