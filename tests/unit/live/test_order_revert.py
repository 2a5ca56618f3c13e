"""Reverting an assignment order: never over what somebody else wrote, and to the end where no answer comes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from backends.base.errors import BackendError
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections import order_revert as module
from backends.live.elections.order_revert import revert_assignments
from recovery.assignment_order import WrittenOrder
from recovery.model import PartitionState, TopicPartition
from tests.unit.live.one_partition import TP, Cluster, Journal

OURS = WrittenOrder(TP, "id", (1, 2, 3), (2, 3, 1))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ORDER_VISIBLE_WITHIN", 0.05)
    monkeypatch.setattr(module, "REVERT_FOR", 0.6)


def standing_in(order: tuple[int, ...]) -> Cluster:
    cluster = Cluster((1, 2, 3), (1, 2, 3))
    cluster.replicas = order
    return cluster


def revert(cluster: Cluster, row: WrittenOrder = OURS) -> tuple[Mapping[TopicPartition, str], Journal]:
    journal = Journal()
    return asyncio.run(revert_assignments(cluster, [row], journal)), journal


def test_our_order_is_put_back() -> None:
    cluster = standing_in((2, 3, 1))
    problems, journal = revert(cluster)
    assert (problems, cluster.replicas) == ({}, (1, 2, 3))
    assert journal.ended == [("revert", {"applied": [TP], "refused": {}})]


def test_an_order_that_somebody_else_wrote_is_left_alone() -> None:
    cluster = standing_in((3, 2, 1))
    problems, _ = revert(cluster)
    assert "not what was written; left alone" in problems[TP]
    assert cluster.replicas == (3, 2, 1) and "write_orders" not in cluster.calls


def test_a_topic_that_was_made_again_is_left_alone_and_is_no_problem() -> None:
    cluster = standing_in((2, 3, 1))
    problems, _ = revert(cluster, OURS._replace(topic_id="the one before"))
    assert problems == {} and "write_orders" not in cluster.calls


def test_a_reassignment_in_progress_is_left_alone() -> None:
    cluster = standing_in((2, 3, 1))
    cluster.busy = frozenset({TP})
    problems, _ = revert(cluster)
    assert problems == {TP: "a reassignment is in progress; left alone"}
    assert "write_orders" not in cluster.calls


def test_a_write_whose_answers_never_come_counts_as_done_once_its_order_is_seen_for_long_enough() -> None:
    class Mute(Cluster):
        async def write_orders(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> object:  # type: ignore[override]
            await super().write_orders(orders)
            raise BackendError("no answer within 30 s")

    cluster = Mute((1, 2, 3), (1, 2, 3))
    cluster.replicas = (2, 3, 1)
    problems, journal = revert(cluster)
    assert (problems, cluster.replicas) == ({}, (1, 2, 3))
    assert journal.ended[-1] == ("revert", {"applied": [TP], "unknown": {}})


class Mute(Cluster):
    """Carries every write out and answers none. Our order comes late after some readings and writes, by number."""

    def __init__(self, readings: Sequence[int], writes: Sequence[int]) -> None:
        super().__init__((1, 2, 3), (1, 2, 3))
        self.replicas = (2, 3, 1)
        self._readings, self._writes = readings, writes

    async def states(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        found = await super().states(partitions)
        self._late("states", self._readings)
        return found

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        await super().write_orders(orders)
        self._late("write_orders", self._writes)
        raise BackendError("no answer within 30 s")

    def _late(self, call: str, numbers: Sequence[int]) -> None:
        if self.calls.count(call) in numbers:
            self.replicas = (2, 3, 1)


@pytest.mark.parametrize(("readings", "writes"), [((2,), ()), ((4,), (2,))])
def test_our_order_that_comes_late_after_its_own_was_seen_is_put_back_again(
    monkeypatch: pytest.MonkeyPatch, readings: Sequence[int], writes: Sequence[int]
) -> None:
    """One look at its own order is not enough, and what was seen before our order came again does not count."""
    monkeypatch.setattr(module, "REVERT_FOR", 5.0)
    monkeypatch.setattr(module, "ORDER_VISIBLE_WITHIN", 0.2)
    cluster = Mute(readings, writes)
    problems, journal = revert(cluster)
    assert (problems, cluster.replicas) == ({}, (1, 2, 3))
    assert journal.ended[-1] == ("revert", {"applied": [TP], "unknown": {}})


def test_a_revert_that_the_controller_refuses_for_a_moment_is_tried_again() -> None:
    cluster = standing_in((2, 3, 1))
    busy = PartitionRefusal(41, "NOT_CONTROLLER", "", retryable=True)

    async def refused(orders: object) -> Mapping[TopicPartition, PartitionRefusal | None]:
        cluster.called("write_orders")
        cluster.write_orders = Cluster.write_orders.__get__(cluster)  # type: ignore[method-assign]
        return {TP: busy}

    cluster.write_orders = refused  # type: ignore[method-assign]
    problems, journal = revert(cluster)
    assert (problems, cluster.replicas) == ({}, (1, 2, 3))
    assert [set(told) for _, told in journal.ended] == [{"applied", "refused"}] * 2
    assert journal.ended[0][1]["refused"] == {TP: "NOT_CONTROLLER"}


def test_a_replica_set_that_changes_after_our_look_is_refused_by_the_broker_and_left_alone() -> None:
    """KIP-860: the broker looks too. Which of the two meets the change depends on the moment."""
    cluster = standing_in((2, 3, 1))
    message = "The replication factor is changed from 3 to 2"

    async def refused(orders: object) -> Mapping[TopicPartition, PartitionRefusal | None]:
        return {TP: PartitionRefusal(38, "INVALID_REPLICATION_FACTOR", message, retryable=False)}

    cluster.write_orders = refused  # type: ignore[method-assign]
    problems, _ = revert(cluster)
    assert problems[TP].startswith("somebody else changed the number of replicas (INVALID_REPLICATION_FACTOR")
    assert problems[TP].endswith("left alone")
    assert cluster.replicas == (2, 3, 1)


def test_a_revert_that_timed_out_at_the_controller_is_not_written_down_as_refused() -> None:
    cluster = standing_in((2, 3, 1))
    late = PartitionRefusal(7, "REQUEST_TIMED_OUT", "", retryable=True)
    cluster.at["write_orders", 1] = lambda: late
    _, journal = revert(cluster)
    assert journal.ended[0] == (
        "revert",
        {"applied": [], "refused": {}, "unknown": {TP: "REQUEST_TIMED_OUT"}},
    )
