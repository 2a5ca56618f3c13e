"""Whether this console may change the cluster: read-only at first, armed on purpose, and not for long.

A state machine without a clock: each event gives a new state, the time is handed in (seconds of a clock that only
moves forward).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.errors import NotDone

IDLE_SECONDS = 600.0
"""An armed console that nobody touches for so long is read-only again."""

SERVED = "a served console has no log-in: whoever finds the port could change the cluster"
OPTION = "it was started with --read-only"
NO_FILES = "a served console reads and writes no files: it has no log-in"
_LOST = "cluster lost"
_BRIEF = {SERVED: "served", OPTION: "--read-only"}


@dataclass(frozen=True, slots=True)
class Safety:
    """``forbidden`` says why it can never be armed, None where it can. ``touched`` is the time of the last key
    while it is armed, None while it is read-only. ``lapsed`` says why it is read-only again, "" where it was never
    armed or was disarmed by hand.
    """

    forbidden: str | None = None
    touched: float | None = None
    lapsed: str = ""

    @property
    def armed(self) -> bool:
        return self.touched is not None

    @property
    def brief(self) -> str:
        """Why it is read-only, short enough to stand beside the cluster's name; "" where it may be armed."""
        if self.forbidden is not None:
            return _BRIEF.get(self.forbidden, "by its profile")
        return self.lapsed

    def refuse(self) -> None:
        """Raises NotDone while it is read-only."""
        if not self.armed:
            why = self.lapsed or self.forbidden or "it is not armed"
            raise NotDone(f"the console is read-only ({why}); nothing was sent")

    def arm(self, now: float) -> Safety:
        """Raises NotDone where it is forbidden."""
        if self.forbidden is not None:
            raise NotDone(f"this console stays read-only: {self.forbidden}")
        return replace(self, touched=now, lapsed="")

    def disarm(self) -> Safety:
        """By hand."""
        return replace(self, touched=None, lapsed="")

    def touch(self, now: float) -> Safety:
        """A key or a click: what is armed stays armed, unless it was idle for too long already."""
        current = self.at(now)
        return replace(current, touched=now) if current.armed else current

    def at(self, now: float) -> Safety:
        """The state at that time, however long nobody looked."""
        if self.touched is None or now - self.touched < IDLE_SECONDS:
            return self
        return self._lapse(f"idle {IDLE_SECONDS / 60:.0f} min")

    def lost(self) -> Safety:
        """Nobody answers any more: what is seen is old, and nothing can be sent."""
        return self._lapse(_LOST)

    def reconnected(self) -> Safety:
        """The cluster was lost and is back: what was seen before may not be true any more."""
        return replace(self, lapsed="reconnected") if self.lapsed == _LOST else self._lapse("reconnected")

    def other_cluster(self) -> Safety:
        """Another cluster answers, or another was chosen."""
        return self._lapse("another cluster")

    def left(self, now: float) -> float | None:
        """Seconds until it lapses; None while it is read-only."""
        return None if self.touched is None else max(0.0, self.touched + IDLE_SECONDS - now)

    def _lapse(self, why: str) -> Safety:
        return replace(self, touched=None, lapsed=why) if self.armed else self


def forbidden(*, read_only_option: bool, profile: str | None, served: bool) -> str | None:
    """Why the console can never be armed, the hardest reason first; None where it can.

    ``profile`` says why the target is read-only (:class:`console.target.Target`).
    """
    if served:
        return SERVED
    if profile is not None:
        return profile
    return OPTION if read_only_option else None
