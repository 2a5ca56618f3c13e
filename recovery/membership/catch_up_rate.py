"""Estimates the time until a controller or replicas have caught up, from the progress so far."""

from __future__ import annotations

from typing import NamedTuple

MAX_SAMPLES = 20


class CatchUpSample(NamedTuple):
    """``missing`` (offsets, bytes or replicas) at ``seconds`` of some clock."""

    seconds: float
    missing: int


class CatchUpRate(NamedTuple):
    """The last samples, oldest first."""

    samples: tuple[CatchUpSample, ...] = ()

    def with_sample(self, seconds: float, missing: int) -> CatchUpRate:
        """The rate with one more sample."""
        return CatchUpRate((*self.samples[-MAX_SAMPLES + 1 :], CatchUpSample(seconds, missing)))

    @property
    def seconds_left(self) -> float | None:
        """Seconds until nothing is missing, at the rate of the samples; None if there is no progress yet."""
        if len(self.samples) < 2:
            return None
        first, last = self.samples[0], self.samples[-1]
        shrunk, took = first.missing - last.missing, last.seconds - first.seconds
        if shrunk <= 0 or took <= 0:
            return None
        return last.missing * took / shrunk
