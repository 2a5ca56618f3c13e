"""How each run ended, as ``ktriage journal`` tells whoever comes later: with what status, and how many rows how."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import ALL, CLUSTER_ID, cluster_of, log, offline
from tests.unit.cli.planned_orders import ANY, planned, tp

AGREED = ("--yes", "--reason", "a test")
LOOK = ("ktriage", "journal", "--cluster-id", CLUSTER_ID)
DISK = ("--simulate", "controller-disk-failure")


def last(call: Caller) -> dict[str, Any]:
    runs: list[dict[str, Any]] = json.loads(call(*LOOK, "--output", "json").out)["runs"]
    return runs[-1]


def test_a_plan_of_which_nothing_held_was_not_simply_ended(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.logs = {1: log(101), 2: log(100), 3: log(90)}
    assert call("ktriage", "apply", *ANY, plan, *AGREED).status == 4
    assert "ended with status 4: 2 stale\n" in call(*LOOK).out
    assert "nothing was sent" in call(*LOOK).out
    assert (last(call)["status"], last(call)["counts"]) == (4, {"stale": 2})


def test_what_was_elected_what_was_stale_and_what_was_online_is_counted(call: Caller) -> None:
    backend = cluster_of(4)
    plan = planned(call, backend)
    backend.states[tp(1)] = offline("orders", 1)._replace(leader_epoch=9)
    backend.states[tp(2)] = offline("orders", 2)._replace(leader=1, isr=ALL)
    backend.fails = {tp(3): "NOT_CONTROLLER"}
    assert call("ktriage", "apply", *ANY, plan, *AGREED).status == 1
    assert last(call)["counts"] == {"stale": 1, "already online": 1, "elected": 1, "failed": 1}
    assert last(call)["status"] == 1


@pytest.mark.parametrize(("fails", "status"), [({}, 0), ({tp(1): "NOT_CONTROLLER"}, 1)])
def test_a_recovery_in_one_go_says_so_too(call: Caller, fails: dict[Any, str], status: int) -> None:
    backend = cluster_of(2)
    backend.fails = fails
    ended = call.on(backend)("ktriage", "recover", *ANY, "--all-offline-partitions", "--automated-recovery")
    assert ended.status == last(call)["status"] == status, str(ended)
    assert last(call)["counts"] == ({"elected": 2} if not fails else {"elected": 1, "failed": 1})


def test_a_run_that_was_refused_has_the_status_of_its_refusal(call: Caller) -> None:
    call.on(cluster_of(2))
    row = {"topic": "none", "partition": 0, "designatedLeader": 1}
    (call.home / "bare.json").write_text(json.dumps({"partitions": [row]}))
    words = ("elect", "--election-type", "designated", "--path-to-json-file", "bare.json")
    ended = call("ktriage", *words, *ANY)
    assert ended.status == last(call)["status"] == 2, str(ended)
    assert last(call)["counts"] == {}


def test_a_change_of_the_voters_that_was_refused_did_not_end_well(call: Caller) -> None:
    ended = call("ktriage", "quorum", "remove", "101", *AGREED, *DISK)
    told = call("ktriage", "journal", *DISK)
    assert ended.status == 1
    assert "ended with status 1\n" in told.out
    assert call("ktriage", "resume", *DISK).status == 0
    # Nothing was sent, so that there is nothing to finish, and nothing to record of it.
    assert call("ktriage", "journal", *DISK).out == told.out
