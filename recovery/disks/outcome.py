"""What becomes of a partition whose replica was, or is, on a disk that fails: one set of words for every view."""

from __future__ import annotations

from enum import StrEnum


class DiskOutcome(StrEnum):
    """The worst first."""

    LAST_COPY = "last copy lost"
    OFFLINE = "offline"
    SURVIVOR = "a surviving copy lost"
    """Nobody leads it already, so the controller would do nothing; what can be recovered is another thing."""
    UNDER_MIN_ISR = "under min ISR"
    NEW_LEADER = "new leader"
    FEWER = "one replica fewer"
    UNNOTICED = "not noticed yet"
    """The disk has failed, and its broker has not seen it."""
