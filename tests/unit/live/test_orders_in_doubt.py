"""A write of an order without an answer: it may be carried out after the original order was reverted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from backends.base.answers import Outcome
from backends.base.errors import BackendError
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections import designate as attempts_module
from backends.live.elections import election_batch
from backends.live.elections import sent_elections as module
from recovery import requests_in_doubt
from recovery.model import TopicPartition
from recovery.ranking import Ranking
from tests.unit.live.one_partition import (
    BEHIND,
    NEWEST,
    STALE,
    TP,
    Cluster,
    Journal,
    NeverStop,
    elect,
    planned,
)

ORIGINAL, WRITTEN = (1, 2, 3), (2, 3, 1)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts_module, "BACKOFF", 0.0)
    monkeypatch.setattr(module, "ORDER_VISIBLE_WITHIN", 0.0)


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
    assert not election.reverted
    assert "that write may still be carried out for up to 150 s" in election.detail
    assert journal.ended[0] == ("reorder", {"applied": [], "unknown": {TP: "no answer within 10 s"}})


def test_carried_out_before_the_next_attempt_it_is_our_order_and_is_put_back() -> None:
    """Not somebody else's change: the election goes on with it, and no second write is needed."""
    cluster, journal = LateWrite(), Journal()

    def after_the_revert() -> None:
        if cluster.calls.count("write_orders") == 2 and cluster.leader < 0:
            cluster.late()

    for call in range(1, 20):
        cluster.at["states", call] = after_the_revert
    election = elect(cluster, planned(cluster, WRITTEN), journal)
    assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 2, True)
    assert cluster.replicas == ORIGINAL
    assert ("reorder", {"applied": [TP]}) in journal.ended, "nothing is left for resume to wait for"
    assert cluster.calls.count("write_orders") == 3, "unanswered, reverted, reverted after the election"


def test_a_broker_that_is_a_moment_behind_shows_the_order_at_the_next_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ORDER_VISIBLE_WITHIN", 5.0)
    cluster, journal = LateWrite(), Journal()

    def second_reading_after_the_write() -> None:
        if cluster.calls[-2:] == ["states", "states"] and cluster.calls.count("write_orders") == 1:
            cluster.late()

    for call in range(1, 20):
        cluster.at["states", call] = second_reading_after_the_write
    election = elect(cluster, planned(cluster, WRITTEN), journal)
    assert (election.outcome, election.reverted, cluster.replicas) == (Outcome.ELECTED, True, ORIGINAL)
    assert journal.ended[0] == ("reorder", {"applied": [TP], "unknown": {}})


def test_carried_out_at_once_only_its_answer_was_lost() -> None:
    cluster, journal = LateWrite(), Journal()
    cluster.at["write_orders", 1] = cluster.late
    election = elect(cluster, planned(cluster, WRITTEN), journal)
    assert (election.outcome, election.reverted, cluster.replicas) == (Outcome.ELECTED, True, ORIGINAL)
    assert journal.ended[0] == ("reorder", {"applied": [TP], "unknown": {}})


def test_once_it_is_certainly_dead_nothing_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_in_doubt, "ELECTION_ALIVE_FOR", 0.0)
    cluster = LateWrite()
    election = elect(cluster, planned(cluster, WRITTEN))
    assert (election.outcome, election.reverted, cluster.replicas) == (Outcome.ELECTED, True, ORIGINAL)


def test_of_two_unanswered_writes_one_that_came_leaves_the_other_in_doubt() -> None:
    """Nobody knows which of them stands: the newer one counts as not carried out."""
    cluster, journal = TwoLateWrites(), Journal()

    def before_the_third_attempt() -> None:
        if cluster.calls.count("write_orders") == 4 and cluster.leader < 0:
            cluster.late()

    for call in range(1, 40):
        cluster.at["states", call] = before_the_third_attempt
    election = elect(cluster, planned(cluster, WRITTEN), journal, attempts=2)
    assert (election.outcome, cluster.replicas) == (Outcome.ELECTED, ORIGINAL)
    assert not election.reverted
    ends = [told for entry, told in journal.ended if entry == "reorder"]
    assert ends[-1] == {"applied": [TP]} and len(ends) == 3


class TwoLateWrites(LateWrite):
    """It does not answer the second write of the order either (the third write; the revert is answered)."""

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        if orders[TP] == WRITTEN:
            self.called("write_orders")
            raise BackendError("no answer within 10 s")
        return await super().write_orders(orders)


class ElectsLate(LateWrite):
    """It does not answer its first election either, which is never held."""

    async def elect(
        self, partitions: object, *, preferred: bool
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        if "elect" in self.calls:
            return await super().elect(partitions, preferred=preferred)
        self.called("elect")
        raise BackendError("no answer within 30 s")


def test_an_answered_order_that_stands_does_not_show_that_the_unanswered_one_was_carried_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is left for an election in doubt, and still stands at the third attempt."""
    monkeypatch.setattr(election_batch, "READ_BACK_FOR", 0.05)
    cluster, journal = ElectsLate(), Journal()
    election = elect(cluster, planned(cluster, WRITTEN), journal, attempts=2)
    assert (election.outcome, cluster.replicas) == (Outcome.ELECTED, ORIGINAL)
    assert not election.reverted
    assert ("reorder", {"applied": [TP]}) not in journal.ended


def test_the_next_write_is_refused_and_the_unanswered_one_is_still_in_doubt() -> None:
    journal = Journal()
    refused = PartitionRefusal(39, "INVALID_REPLICA_ASSIGNMENT", "", False)

    class Refuses(LateWrite):
        async def write_orders(
            self, orders: Mapping[TopicPartition, tuple[int, ...]]
        ) -> Mapping[TopicPartition, PartitionRefusal | None]:
            if self.calls.count("write_orders") < 2:
                return await super().write_orders(orders)
            self.called("write_orders")
            return {TP: refused if orders[TP] == WRITTEN else None}

    cluster = Refuses()
    election = elect(cluster, planned(cluster, WRITTEN), journal)
    assert (election.outcome, election.reverted) == (Outcome.FAILED, False)
    assert "that write may still be carried out" in election.detail
    assert cluster.calls.count("write_orders") == 4, "reverted once more: it may have come meanwhile"


def test_the_next_attempt_needs_no_order_and_does_not_wait_for_the_one_in_doubt() -> None:
    """The cluster elects designated leaders after all, which the first attempt could not find out."""
    cluster = LateWrite()

    def offers() -> None:
        cluster.native = True

    cluster.at["write_orders", 1] = offers
    election = elect(cluster, planned(cluster, WRITTEN))
    assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 2, False)


async def test_cancelled_before_the_answer_the_order_is_in_doubt() -> None:
    class Hangs(LateWrite):
        sent = asyncio.Event()

        async def write_orders(
            self, orders: Mapping[TopicPartition, tuple[int, ...]]
        ) -> Mapping[TopicPartition, PartitionRefusal | None]:
            if "write_orders" not in self.calls:
                self.called("write_orders")
                self.sent.set()
                await asyncio.Event().wait()
            return await super().write_orders(orders)

    cluster, journal = Hangs(), Journal()
    job = asyncio.create_task(
        attempts_module.designate(
            cluster,
            [planned(cluster, WRITTEN)],
            Ranking.LAST_RECORD,
            journal,
            attempts=0,
            stop=NeverStop(),
        )
    )
    await cluster.sent.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert journal.ended == [
        ("reorder", {"applied": [], "unknown": {TP: "stopped before its answer"}}),
        ("revert", {"applied": [TP], "refused": {}}),
    ]
