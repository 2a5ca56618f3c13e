"""When the cluster is looked at: every ten seconds, when asked, and never twice at once.

Pure: times are handed in, in seconds of a clock that only moves forward.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

INTERVAL = 10.0
SHARE = 20
"""A look may take this part of the time at most: the cluster has other things to do."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """``began`` is set while a look is under way; ``ended`` and ``took`` are the last one's. ``wanted``: another
    look was asked for, by a person or after a change.
    """

    interval: float = INTERVAL
    paused: bool = False
    began: float | None = None
    ended: float | None = None
    took: float = 0.0
    wanted: bool = False

    @property
    def pause_between(self) -> float:
        """Seconds from the end of a look to the beginning of the next."""
        return max(self.interval, self.took * (SHARE - 1))

    @property
    def slowed(self) -> bool:
        """Looks are further apart than they should be, because they take long."""
        return self.pause_between > 1.5 * self.interval

    def due(self, now: float) -> float | None:
        """Seconds until the next look should begin, 0 at once; None while one runs, or paused."""
        if self.began is not None:
            return None
        if self.wanted or self.ended is None:
            return 0.0
        if self.paused:
            return None
        return max(0.0, self.ended + self.pause_between - now)

    def begin(self, now: float) -> Schedule:
        """A look begins; what was asked for until now is answered by it."""
        assert self.began is None, "looks never overlap"
        return replace(self, began=now, wanted=False)

    def end(self, now: float, *, untypical: bool = False) -> Schedule:
        """The look is over; ``untypical``: how long it took says nothing, the next one comes as usual.

        A cluster that did not answer had no work with it: it is asked again soon.
        """
        assert self.began is not None
        return replace(self, began=None, ended=now, took=0.0 if untypical else now - self.began)

    def want(self) -> Schedule:
        """Ask for a look: at once, or right after the one that runs, which may have passed it by already."""
        return replace(self, wanted=True)

    def toggle_pause(self) -> Schedule:
        return replace(self, paused=not self.paused)
