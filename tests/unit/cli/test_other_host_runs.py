"""A run on another host was left unfinished: what resume finishes by its plan alone, and when."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from console.journal.unfinished_entries import unfinished
from recovery import requests_in_doubt
from recovery.requests_in_doubt import ELECTION_ALIVE_FOR
from tests.unit.cli.command_process import Caller
from tests.unit.cli.conftest import SteadyTime
from tests.unit.cli.memory_backend import CLUSTER_ID, MemoryBackend, cluster_of, log, offline
from tests.unit.cli.planned_orders import ANY, planned, tp
from tests.unit.cli.test_unanswered_requests import LeaderLater, actions, interrupt_waiting


def other_host(call: Caller, backend: MemoryBackend) -> str:
    """A run on another host left orders-1 in the order of its plan, which is returned, and orders-0 in no order of
    its.
    """
    backend.logs = {1: log(90), 2: log(100), 3: log(80)}
    plan = planned(call, backend)
    order = json.loads(Path(plan).read_text())["partitions"][1]["order"]
    assert order == [2, 1, 3]
    backend.states[tp(0)] = offline("orders", 0, (3, 2, 1))
    backend.states[tp(1)] = offline("orders", 1, tuple(order))
    return plan


def two_offline() -> LeaderLater:
    return LeaderLater(cluster_of(2).states)


@pytest.mark.usefixtures("no_pauses")
def test_another_hosts_run_is_finished_by_its_plan_once_its_election_is_certainly_dead(
    call: Caller, short_doubt: SteadyTime
) -> None:
    backend = cluster_of(2)
    plan = other_host(call, backend)
    ended = call("ktriage", "resume", *ANY, "--plan", plan)
    assert short_doubt.seconds >= ELECTION_ALIVE_FOR, "counted from when the order was first seen"
    assert "1 partition (orders-1): a request of the earlier run may still be carried out" in ended.err
    assert ended.status == 1, "orders-0 was changed by somebody else"
    assert backend.states[tp(0)].replicas == (3, 2, 1)
    assert backend.states[tp(1)].replicas == (1, 2, 3)


def test_another_hosts_plan_for_a_topic_that_was_made_again_finds_no_order_of_its_own(call: Caller) -> None:
    backend = cluster_of(2)
    plan = other_host(call, backend)
    backend.states[tp(1)] = backend.states[tp(1)]._replace(topic_id="another")
    ended = call("ktriage", "resume", *ANY, "--plan", plan)
    assert ended.status == 1 and "deleted and created again" in ended.err
    assert actions() == [] and backend.reverted == []


@pytest.mark.usefixtures("no_pauses")
def test_another_hosts_order_is_reverted_as_soon_as_somebody_leads(call: Caller) -> None:
    backend = two_offline()
    plan = other_host(call, backend)
    backend.readings = 0
    call("ktriage", "resume", *ANY, "--plan", plan)
    assert backend.readings > 3
    assert {row.tp for row in backend.reverted} == {tp(1)}
    assert unfinished(CLUSTER_ID).nothing


def test_another_hosts_order_that_stays_is_finished_without_the_plan_and_without_waiting_anew(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(call, cluster_of(3))
    document = json.loads(Path(plan).read_text())
    for row in document["partitions"]:
        row["replicas"], row["order"] = [3, 1, 2], [1, 2, 3]
    Path(plan).write_text(json.dumps(document))
    stopped = interrupt_waiting(call, "--plan", plan)
    assert stopped.status == 128 + signal.SIGINT, stopped
    assert stopped.err.splitlines()[-1].strip() == "ktriage resume --bootstrap-server kafka:9092"
    assert actions() == ["found-order"], "nothing was written to the cluster"
    first_seen = {order.election_at for order in unfinished(CLUSTER_ID).orders}

    again = interrupt_waiting(call, "--plan", plan)
    assert again.status == 128 + signal.SIGINT, again
    assert {order.election_at for order in unfinished(CLUSTER_ID).orders} == first_seen

    backend = cluster_of(3)
    monkeypatch.setattr(requests_in_doubt, "ELECTION_ALIVE_FOR", 0.0)
    assert call.on(backend)("ktriage", "resume", *ANY).status == 0
    assert {row.tp for row in backend.reverted} == {tp(0), tp(1), tp(2)}
    assert unfinished(CLUSTER_ID).nothing
