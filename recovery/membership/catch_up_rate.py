"""How long something that grows still takes, by how it has grown: catch-up of a controller or of replicas."""

from __future__ import annotations

from typing import NamedTuple

KEPT = 20


class CatchUpSample(NamedTuple):
    """At ``seconds`` of some clock ``missing`` was still to come."""

    seconds: float
    missing: int


class CatchUpRate(NamedTuple):
    """The last samples, oldest first."""

    samples: tuple[CatchUpSample, ...] = ()

    def seen(self, seconds: float, missing: int) -> CatchUpRate:
        """With one more sample."""
        return CatchUpRate((*self.samples[-KEPT + 1 :], CatchUpSample(seconds, missing)))

    @property
    def seconds_left(self) -> float | None:
        """At the pace of the samples; None while nothing shrinks, or too little was seen."""
        if len(self.samples) < 2:
            return None
        first, last = self.samples[0], self.samples[-1]
        shrunk, took = first.missing - last.missing, last.seconds - first.seconds
        if shrunk <= 0 or took <= 0:
            return None
        return last.missing * took / shrunk
