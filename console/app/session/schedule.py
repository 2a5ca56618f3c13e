"""When the cluster is refreshed: every ten seconds, on request, and never twice at the same time.

Pure: times are parameters, in monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

INTERVAL = 10.0
SHARE = 20
"""The largest part of the time that refreshes may take: the cluster has other work."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """``began`` is set while a refresh runs; ``ended`` and ``took`` are those of the last one. ``requested``:
    another refresh was requested, by a person or after a change.
    """

    interval: float = INTERVAL
    paused: bool = False
    began: float | None = None
    ended: float | None = None
    took: float = 0.0
    requested: bool = False

    @property
    def pause_between(self) -> float:
        """Seconds from the end of a refresh to the start of the next."""
        return max(self.interval, self.took * (SHARE - 1))

    @property
    def slowed(self) -> bool:
        """Whether refreshes are further apart than usual, because they take long."""
        return self.pause_between > 1.5 * self.interval

    def due(self, now: float) -> float | None:
        """Seconds until the next refresh should start, 0 for at once; None while one runs, or while paused."""
        if self.began is not None:
            return None
        if self.requested or self.ended is None:
            return 0.0
        if self.paused:
            return None
        return max(0.0, self.ended + self.pause_between - now)

    def begin(self, now: float) -> Schedule:
        """A refresh starts; it answers all requests until now."""
        assert self.began is None, "refreshes never overlap"
        return replace(self, began=now, requested=False)

    def end(self, now: float, *, untypical: bool = False) -> Schedule:
        """The refresh is over. ``untypical``: its duration says nothing, so the next one comes as usual.

        A cluster that did not answer had no work with it, so it is asked again soon.
        """
        assert self.began is not None
        return replace(self, began=None, ended=now, took=0.0 if untypical else now - self.began)

    def request(self) -> Schedule:
        """Requests a refresh: at once, or right after the running one, which may already have read the
        changed part.
        """
        return replace(self, requested=True)

    def toggle_pause(self) -> Schedule:
        return replace(self, paused=not self.paused)
