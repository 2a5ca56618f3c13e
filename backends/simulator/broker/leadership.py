"""What a leader knows of one partition: the progress of its followers, and the ISR that it asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recovery.controller.registration import Registration

UNKNOWN = -1


class PartitionFollower:
    """A follower, as its Fetch requests show it.

    ``offset`` is UNKNOWN until it fetches in this leader epoch. ``broker_epoch`` comes with its requests
    (KIP-903). ``end_at_fetch`` is the leader's log end at its last fetch with a new position. ``last_sent`` is the
    (high watermark, log start) that was last sent to it.
    """

    __slots__ = (
        "broker_epoch",
        "caught_up_at",
        "diverging",
        "end_at_fetch",
        "fetched_at",
        "last_sent",
        "offset",
    )

    def __init__(self, offset: int = UNKNOWN, broker_epoch: int = -1, now: int = 0) -> None:
        self.offset = offset
        self.broker_epoch = broker_epoch
        self.caught_up_at = now
        self.fetched_at = now
        self.end_at_fetch = offset
        self.last_sent = (UNKNOWN, UNKNOWN)
        self.diverging: tuple[int, int] | None = None


class PendingProduce(NamedTuple):
    """An acks=all request that waits until the high watermark reaches ``end``."""

    end: int
    done: Callable[[bool], None]


class Leadership:
    """One leader epoch of one partition, at its leader.

    ``isr`` is the ISR that the controller committed. ``pending`` is the ISR that was asked for and not answered
    yet.
    """

    __slots__ = ("epoch", "followers", "isr", "partition_epoch", "pending", "start", "waiting")

    def __init__(self, partition: Registration, start: int) -> None:
        self.epoch = partition.leader_epoch
        self.partition_epoch = partition.partition_epoch
        self.isr = partition.isr
        self.start = start
        self.pending: tuple[int, ...] | None = None
        self.followers: dict[int, PartitionFollower] = {}
        self.waiting: list[PendingProduce] = []

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The committed ISR, and the members that may have been added to it (KIP-966, "Additional High
        Watermark ...").
        """
        if self.pending is None:
            return self.isr
        return tuple(dict.fromkeys((*self.isr, *self.pending)))

    def commit(self, partition: Registration) -> bool:
        """Take over the state that the controller committed; False if it is not newer."""
        if partition.partition_epoch <= self.partition_epoch:
            return False
        self.partition_epoch = partition.partition_epoch
        self.isr = partition.isr
        self.pending = None
        return True

    def replicated(self, leader: int, end: int) -> int:
        """The offset up to which the whole maximal ISR has the log; UNKNOWN while a member has not fetched."""
        offsets = [end]
        for member in self.maximal_isr:
            if member != leader:
                follower = self.followers.get(member)
                offsets.append(UNKNOWN if follower is None else follower.offset)
        return min(offsets)
