"""The names of the data and quorum invariants; those of the metadata are in ``recovery.controller.invariants``."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from backends.simulator.loop import SECOND


class DataPromise(StrEnum):
    """What Kafka promises for the data (KIP-966, KIP-903, replication)."""

    ACKNOWLEDGED_KEPT = (
        "no record acknowledged with acks=all is lost with at most min ISR - 1 unclean shutdowns, unless an"
        " operator or the strategy Aggressive elects uncleanly"
    )
    READ_KEPT = "no record that a consumer has read is gone, unless an unclean election was made"
    HIGH_WATERMARK_KEPT = "the high watermark never moves back on a leader's clean succession"
    HIGH_WATERMARK_NEEDS_MIN_ISR = "the high watermark moves only while the ISR is no smaller than min ISR"
    HIGH_WATERMARK_RISES = "within a leader's epoch the high watermark only rises"
    ONE_LEADER_AN_EPOCH = "one leader an epoch"
    LOG_MATCHING = "two logs that hold an offset in the same epoch hold the same records up to there"
    ISR_HOLDS_HIGH_WATERMARK = "every ISR member holds the data up to the high watermark"
    ELR_HOLDS_HIGH_WATERMARK = "every ELR member holds the data up to the high watermark"


class QuorumPromise(StrEnum):
    """What the metadata quorum promises (KIP-595, KIP-853)."""

    ONE_LEADER_AN_EPOCH = "the metadata quorum has one leader an epoch"
    LOG_MATCHING = "two metadata logs that hold a record of one epoch at one offset hold the same up to there"
    COMMITTED_KEPT = "no committed metadata record is lost"
    HIGH_WATERMARK_RISES = "the metadata quorum's high watermark only rises"
    MAJORITY_COMMITS = "what is committed lies on a majority of the voters"
    OBSERVER_NEVER_COUNTS = "an observer never counts"
    REMOVED_LEADER_NOT_COUNTED = "a leader that is removed does not count itself"
    ONE_CHANGE_AT_A_TIME = "one voter change at a time, of one voter"
    VOTER_SETS_OVERLAP = "majorities of committed voter sets overlap"


class BrokenInvariant(NamedTuple):
    """A violation: when (virtual µs), the invariant's name, and the values that violate it."""

    time: int
    name: str
    detail: str

    def __str__(self) -> str:
        return f"{self.time / SECOND:.6f} s: broken: {self.name}: {self.detail}"


class FinalLoss(NamedTuple):
    """Records acknowledged with acks=all that the present leader lacks; without a leader (-1), that are in no
    replica's log. ``records`` is a number of offsets.
    """

    partition: str
    leader: int
    records: int


class LostRecords(NamedTuple):
    """Records acknowledged with acks=all that a new leader lacks when it takes over: a later leader may have them.
    ``records`` is a number of offsets.
    """

    time: int
    partition: str
    leader: int
    records: int
    excuse: str

    def __str__(self) -> str:
        return (
            f"{self.time / SECOND:.6f} s: {self.partition}: {self.records} records lost under {self.leader}"
        )
