"""What happens to the cluster between two questions of a designated election.

The controller is stood in for by a few lines that follow Kafka's rule (the first live replica in the order): a
real one cannot be made to change at exactly that moment. What it decides is tested on Kafka (tests/live).
"""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest

from backends.base.answers import ClusterInfo, Designation, Election, Outcome
from backends.base.errors import BackendError
from backends.live.calls.partition_errors import LEFT_OUT, PartitionRefusal
from backends.live.elections import designate as rounds
from backends.live.elections import election_batch as module
from recovery.model import Broker, PartitionState, TopicPartition

TP = TopicPartition("orders", 0)
NEWEST, BEHIND, STALE = (4, 1500), (4, 1400), (2, 900)
Happens = Callable[[], PartitionRefusal | None]


class Cluster:
    """One partition, offline. ``at`` (call, which time) something happens, before the call has its effect."""

    def __init__(self, replicas: tuple[int, ...], live: Iterable[int]) -> None:
        self.replicas = self.own = replicas
        self.live = set(live)
        self.leader, self.epoch = -1, 5
        self.calls: list[str] = []
        self.at: dict[tuple[str, int], Happens] = {}

    def _called(self, name: str) -> PartitionRefusal | None:
        self.calls.append(name)
        happens = self.at.get((name, self.calls.count(name)))
        return happens() if happens else None

    async def cluster(self) -> ClusterInfo:
        brokers = tuple(Broker(b, "", 0, None, b not in self.live) for b in sorted(self.own))
        return ClusterInfo("id", brokers, 1, True)

    async def states(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        self._called("states")
        dead = tuple(broker for broker in self.replicas if broker not in self.live)
        state = PartitionState(*TP, "id", self.leader, self.epoch, self.replicas, (), (), (), dead)
        return dict.fromkeys(partitions, state)

    async def reassigning(self, partitions: object) -> frozenset[TopicPartition]:
        return frozenset()

    async def changed_logs(self, fences: object) -> Mapping[TopicPartition, Mapping[int, str]]:
        self._called("changed_logs")
        return {}

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        told = self._called("write_orders")
        self.replicas = orders[TP]
        return {TP: told}

    async def elect(self, partitions: object, *, preferred: bool) -> Mapping[TopicPartition, None]:
        self._called("elect")
        if self.leader < 0:
            self.leader = next(broker for broker in self.replicas if broker in self.live)
            self.epoch += 1
        return {TP: None}

    async def designates(self) -> bool:
        return False

    async def designate(self, leaders: object) -> Mapping[TopicPartition, None]:
        raise AssertionError("not offered")

    async def blocks_on_dead_last_known_leader(self) -> bool:
        return False


class Journal:
    """What was recorded, by action."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Mapping[str, object]]] = []

    def before(self, action: str, detail: object) -> str:
        return action

    def after(self, entry: str, told: Mapping[str, object]) -> None:
        self.told.append((entry, told))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the pauses between attempts, and with a short wait for an order that never shows."""
    monkeypatch.setattr(rounds, "BACKOFF", 0.0)
    monkeypatch.setattr(module, "ORDER_SEEN_FOR", 0.05)


def elected(cluster: Cluster, order: tuple[int, ...], journal: Journal | None = None) -> Election:
    logs = {order[0]: NEWEST, order[1]: BEHIND, order[2]: STALE}
    row = Designation(TP, "id", 5, cluster.own, order, logs)
    (election,) = asyncio.run(
        rounds.designate(cluster, [row], journal or Journal(), attempts=1, stop=Stop(), progress=None)
    )
    return election


class Stop:
    def __bool__(self) -> bool:
        return False


def test_a_stale_replica_that_is_unfenced_right_before_the_election_does_not_lead() -> None:
    cluster = Cluster((1, 2, 3), live=(2, 3))
    cluster.at["elect", 1] = lambda: cluster.live.add(1)
    election = elected(cluster, (2, 3, 1))
    assert (election.outcome, cluster.leader, cluster.replicas) == (Outcome.ELECTED, 2, (1, 2, 3))


def test_another_leader_of_our_own_election_is_none_that_was_there_already() -> None:
    cluster = Cluster((3, 1, 2), live=(1, 2, 3))

    def fails() -> None:
        raise BackendError("connection reset")

    cluster.at["elect", 1] = lambda: cluster.live.discard(2)
    cluster.at["states", 3] = fails  # the look for the leader
    election = elected(cluster, (2, 1, 3))
    assert cluster.calls.count("elect") == 1
    assert (election.outcome, election.leader, election.detail) == (
        Outcome.OTHER_LEADER,
        1,
        "1 leads instead of 2",
    )


def test_a_leader_that_came_while_nothing_was_sent_was_there_already() -> None:
    cluster = Cluster((3, 1, 2), live=(1, 2, 3))
    cluster.leader, cluster.epoch = 1, 6
    assert elected(cluster, (2, 1, 3)).outcome is Outcome.ALREADY_ONLINE
    assert "write_orders" not in cluster.calls


def test_an_order_whose_answer_leaves_the_partition_out_is_put_back_and_told_as_unknown() -> None:
    cluster, journal = Cluster((1, 2, 3), live=(1, 2, 3)), Journal()
    cluster.at["write_orders", 1] = lambda: LEFT_OUT
    election = elected(cluster, (2, 3, 1), journal)
    assert journal.told[0] == ("reorder", {"applied": [], "refused": {}, "unknown": {TP: str(LEFT_OUT)}})
    assert journal.told[1] == ("restore", {"applied": [TP], "refused": {}})
    assert (election.outcome, election.leader, cluster.replicas) == (Outcome.ELECTED, 2, (1, 2, 3))


def test_an_order_that_another_run_puts_back_is_not_elected_by() -> None:
    cluster = Cluster((1, 2, 3), live=(1, 2, 3))

    def another_run_restores() -> None:
        cluster.replicas = cluster.own

    for look in range(2, 30):
        cluster.at["states", look] = another_run_restores
    election = elected(cluster, (2, 3, 1))
    assert (election.outcome, cluster.leader) == (Outcome.FAILED, -1)
    assert "another run put it back" in election.detail
    assert "elect" not in cluster.calls
