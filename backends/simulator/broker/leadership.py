"""What a leader knows of one partition: how far its followers are, and the ISR that it asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recovery.controller.registration import Registration

UNKNOWN = -1


class PartitionFollower:
    """A follower as its fetches show it. ``offset`` is UNKNOWN until it fetched in this leader epoch.

    ``broker_epoch`` is the one that its fetches carry (KIP-903); ``end_at_fetch`` the leader's log end at its last
    fetch with a new position; ``told`` the high watermark and the log start that it was sent last.
    """

    __slots__ = ("broker_epoch", "caught_up_at", "diverging", "end_at_fetch", "fetched_at", "offset", "told")

    def __init__(self, offset: int = UNKNOWN, broker_epoch: int = -1, now: int = 0) -> None:
        self.offset = offset
        self.broker_epoch = broker_epoch
        self.caught_up_at = now
        self.fetched_at = now
        self.end_at_fetch = offset
        self.told = (UNKNOWN, UNKNOWN)
        self.diverging: tuple[int, int] | None = None


class PendingProduce(NamedTuple):
    """A produce request with acks=all that waits for the high watermark to reach ``end``."""

    end: int
    done: Callable[[bool], None]


class Leadership:
    """One leader epoch of one partition at its leader. ``isr`` is the one that the controller committed;
    ``pending`` is the one asked for and not yet answered.
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
        """The committed ISR and what may have been added to it (KIP-966, "Additional High Watermark ...")."""
        if self.pending is None:
            return self.isr
        return tuple(dict.fromkeys((*self.isr, *self.pending)))

    def commit(self, partition: Registration) -> bool:
        """Take over what the controller has committed; False where it is no news."""
        if partition.partition_epoch <= self.partition_epoch:
            return False
        self.partition_epoch = partition.partition_epoch
        self.isr = partition.isr
        self.pending = None
        return True

    def replicated(self, leader: int, end: int) -> int:
        """Up to where all of the maximal ISR has the log; UNKNOWN while one of them has not fetched."""
        offsets = [end]
        for member in self.maximal_isr:
            if member != leader:
                follower = self.followers.get(member)
                offsets.append(UNKNOWN if follower is None else follower.offset)
        return min(offsets)
