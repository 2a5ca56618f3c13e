"""A write of an order without an answer: it may be carried out after the original order was restored."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from backends.base.answers import Outcome
from backends.base.errors import BackendError
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections import designate as attempts_module
from backends.live.elections import sent_elections as module
from recovery.model import TopicPartition
from tests.unit.live.one_partition import BEHIND, NEWEST, STALE, TP, Cluster, Journal, elect, planned

ORIGINAL, WRITTEN = (1, 2, 3), (2, 3, 1)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts_module, "BACKOFF", 0.0)


class LateWrite(Cluster):
    """Its controller does not answer the first write of an order, and carries it out when ``late`` is called."""

    def __init__(self) -> None:
        super().__init__(ORIGINAL, ORIGINAL, {2: NEWEST, 3: BEHIND, 1: STALE})

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        if "write_orders" in self.calls:
            return await super().write_orders(orders)
        self.called("write_orders")
        raise BackendError("no answer within 10 s")

    def late(self) -> None:
        self.replicas = WRITTEN


def test_an_unanswered_write_that_never_came_leaves_the_order_open_although_the_leader_is_elected() -> None:
    cluster, journal = LateWrite(), Journal()
    election = elect(cluster, planned(cluster, WRITTEN), journal)
    assert (election.outcome, election.leader, cluster.replicas) == (Outcome.ELECTED, 2, ORIGINAL)
    assert not election.restored
    assert "that write may still be carried out for up to 150 s" in election.detail
    assert journal.told[0] == ("reorder", {"applied": [], "unknown": {TP: "no answer within 10 s"}})


def test_carried_out_before_the_next_attempt_it_is_our_order_and_is_put_back() -> None:
    """Not somebody else's change: the election goes on with it, and no second write is needed."""
    cluster, journal = LateWrite(), Journal()

    def after_the_restore() -> None:
        if cluster.calls.count("write_orders") == 2 and cluster.leader < 0:
            cluster.late()

    for call in range(1, 20):
        cluster.at["states", call] = after_the_restore
    election = elect(cluster, planned(cluster, WRITTEN), journal)
    assert (election.outcome, election.leader, election.restored) == (Outcome.ELECTED, 2, True)
    assert cluster.replicas == ORIGINAL
    assert ("reorder", {"applied": [TP]}) in journal.told, "nothing is left for resume to wait for"
    assert cluster.calls.count("write_orders") == 3, "unanswered, restored, restored after the election"


def test_carried_out_at_once_only_its_answer_was_lost() -> None:
    cluster, journal = LateWrite(), Journal()
    cluster.at["write_orders", 1] = cluster.late
    election = elect(cluster, planned(cluster, WRITTEN), journal)
    assert (election.outcome, election.restored, cluster.replicas) == (Outcome.ELECTED, True, ORIGINAL)
    assert journal.told[0] == ("reorder", {"applied": [TP], "unknown": {}})


def test_once_it_is_certainly_dead_nothing_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ELECTION_ALIVE_FOR", 0.0)
    cluster = LateWrite()
    election = elect(cluster, planned(cluster, WRITTEN))
    assert (election.outcome, election.restored, cluster.replicas) == (Outcome.ELECTED, True, ORIGINAL)
