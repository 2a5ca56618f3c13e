"""Transactions as a backend offers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.transactions.transaction_values import CoordinatedTransaction, PartitionTransactions
from recovery.wording.quantity_text import some_of

LEADERLESS = Unknown(Why.NO_LEADER, "")
"""The answer for a partition that nobody leads."""


@dataclass(frozen=True, slots=True)
class CoordinatorAnswers:
    """The newest transaction of each producer that a coordinator knows. ``not_asked`` says, one line each, why
    others may know more: a producer that is missing is forgotten only where it is empty.
    """

    known: Mapping[int, CoordinatedTransaction]
    not_asked: tuple[Unknown, ...] = ()


def no_coordinator(states: Iterable[PartitionState]) -> tuple[Unknown, ...]:
    """Why transactions whose coordinator is gone are not known; ``states`` are those of __transaction_state."""
    offline = sorted(state.partition for state in states if state.offline)
    if not offline:
        return ()
    detail = f"partition {some_of(offline)} of {TRANSACTIONS_TOPIC} has no leader, and so no coordinator"
    return (Unknown(Why.NOT_ANSWERED, detail),)


def silent_coordinator(broker: int, why: Unknown) -> Unknown:
    """In place of the transactions that ``broker`` coordinates, where it did not answer."""
    return Unknown(why.why, f"the coordinator on broker {broker} did not answer ({why.detail})")


class Marker(NamedTuple):
    """The end of a transaction in one partition: COMMIT or ABORT."""

    tp: TopicPartition
    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int


class Transactions(Protocol):
    """Implemented by each adapter. Every call may raise :mod:`backends.base.errors`."""

    async def open_in(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionTransactions | Unknown]:
        """Open transactions and the last stable offset, from each partition's leader. Needs READ on the topics."""
        ...

    async def coordinated(self, producers: Sequence[int]) -> CoordinatorAnswers:
        """Asks every coordinator for these producer ids. Needs DESCRIBE on the transactional ids."""
        ...


class MarkerWriter(Protocol):
    """Writes transaction markers. Every call may raise :mod:`backends.base.errors`."""

    async def write(self, broker: int, markers: Sequence[Marker]) -> Mapping[Marker, str | None]:
        """Sends the markers to the leader of all their partitions. For each marker None, or in one line why the
        leader refused it. If it raises, any of them may have been written. Needs ALTER on the cluster.
        """
        ...
