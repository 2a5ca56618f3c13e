"""An election without an answer: it may still be carried out, by the order that then stands."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from backends.base.answers import Outcome
from backends.base.errors import BackendError
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections import designate as attempts_module
from backends.live.elections import election_batch as module
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


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts_module, "BACKOFF", 0.0)
    monkeypatch.setattr(module, "READ_BACK_FOR", 0.05)
    monkeypatch.setattr(module, "CANCELLED_READ_BACK_FOR", 0.05)


class Slow(Cluster):
    """Its controller answers no election; it carries one out when it is told to.

    ``sent`` is set once an election is on its way, which then ``hangs`` for ever where it is to.
    """

    def __init__(self, *, hangs: bool = False) -> None:
        super().__init__((1, 2, 3), (1, 2, 3), {2: NEWEST, 3: BEHIND, 1: STALE})
        self.sent = asyncio.Event()
        self._hangs = hangs

    async def elect(
        self,
        partitions: object,  # noqa: ARG002
        *,
        preferred: bool,  # noqa: ARG002
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        self.called("elect")
        self.sent.set()
        if self._hangs:
            await asyncio.Event().wait()
        raise BackendError("no answer within 30 s")


def test_while_it_may_be_carried_out_the_chosen_one_stays_first() -> None:
    """Carried out when our run is over: it elects 2 all the same, and not whoever stood first before."""
    cluster, journal = Slow(), Journal()
    election = elect(cluster, planned(cluster, (2, 3, 1)), journal, attempts=0)
    assert (election.outcome, election.reverted) == (Outcome.FAILED, False)
    assert "may still be carried out for up to 150 s: broker 2 stays first" in election.detail
    assert [action for action, _ in journal.ended] == ["reorder", "elect"]
    assert journal.ended[1][1]["unknown"] == {TP: "no answer within 30 s"}
    cluster.elects()
    assert cluster.leader == 2


def test_where_the_chosen_one_stood_first_already_the_row_says_that_it_may_be_carried_out() -> None:
    cluster, journal = Slow(), Journal()
    cluster.replicas = cluster.own = (2, 3, 1)
    election = elect(cluster, planned(cluster, (2, 3, 1)), journal, attempts=0)
    assert (election.outcome, election.reverted, election.in_doubt) == (Outcome.FAILED, True, True)
    assert "may still be carried out for up to 150 s" in election.detail
    assert [action for action, _ in journal.ended] == ["elect"]


def test_carried_out_before_the_next_attempt_it_is_our_success_and_the_order_is_put_back() -> None:
    cluster = Slow()
    row = planned(cluster, (2, 3, 1))
    looks = cluster.calls

    def late() -> None:
        if looks.count("elect") == 1 and looks.count("logs") == 1 and len(looks) > 8:
            cluster.elects()

    for look in range(4, 40):
        cluster.at["states", look] = late
    election = elect(cluster, row, attempts=1)
    assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 2, True)
    assert cluster.replicas == (1, 2, 3)


def test_the_next_attempt_goes_on_with_the_order_that_stands() -> None:
    cluster = Slow()
    election = elect(cluster, planned(cluster, (2, 3, 1)), attempts=2)
    assert cluster.calls.count("elect") == 3
    assert cluster.calls.count("write_orders") == 1
    assert (election.outcome, election.reverted, cluster.replicas) == (Outcome.FAILED, False, (2, 3, 1))


class SlowOnce(Slow):
    """Its controller answers the second election."""

    async def elect(
        self, partitions: object, *, preferred: bool
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        if "elect" in self.calls:
            return await Cluster.elect(self, partitions, preferred=preferred)
        return await super().elect(partitions, preferred=preferred)


def test_where_somebody_puts_the_order_back_before_the_next_attempts_election_it_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order of the first attempt still stood when the row was judged; without it Kafka elects 1, which has the
    oldest log.
    """
    monkeypatch.setattr(module, "ORDER_VISIBLE_WITHIN", 0.1)
    cluster = SlowOnce()

    class PutBack(Journal):
        def before(self, action: str, detail: object) -> str:
            if action == "elect" and "elect" in cluster.calls:
                cluster.replicas = cluster.own
            return super().before(action, detail)

    election = elect(cluster, planned(cluster, (2, 3, 1)), PutBack(), attempts=1)
    assert (cluster.leader, cluster.calls.count("elect")) == (-1, 1)
    assert election.outcome is Outcome.FAILED
    assert "the order that was written is not seen to stand" in election.detail


def test_once_it_is_certainly_dead_the_order_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_in_doubt, "ELECTION_ALIVE_FOR", 0.0)
    cluster = Slow()
    election = elect(cluster, planned(cluster, (2, 3, 1)), attempts=0)
    assert (election.outcome, election.reverted, cluster.replicas) == (Outcome.FAILED, True, (1, 2, 3))


async def cancelled(cluster: Slow) -> None:
    """Cancelled while its election is on its way."""
    row = planned(cluster, (2, 3, 1))
    job = asyncio.create_task(
        attempts_module.designate(
            cluster, [row], Ranking.LAST_RECORD, Journal(), attempts=0, stop=NeverStop()
        )
    )
    await cluster.sent.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job


async def test_cancelled_while_it_is_on_its_way_the_chosen_one_stays_first() -> None:
    cluster = Slow(hangs=True)
    await cancelled(cluster)
    assert (cluster.leader, cluster.replicas) == (-1, (2, 3, 1))


async def test_cancelled_and_carried_out_the_order_is_put_back() -> None:
    cluster = Slow(hangs=True)
    cluster.at["elect", 1] = cluster.elects
    await cancelled(cluster)
    assert (cluster.leader, cluster.replicas) == (2, (1, 2, 3))
