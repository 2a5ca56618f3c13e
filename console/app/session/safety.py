"""Whether this console may change the cluster: read-only at first, and armed only on request and for a
limited time.

A state machine without a clock: each event gives a new state; the time is a parameter (monotonic seconds).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from console.errors import NotDone
from console.target import FROM_DISKS, IN_BUNDLE

IDLE_SECONDS = 600.0
"""Seconds without a key press or click after which an armed console is read-only again."""

SERVED = "a served console has no log-in: anybody who finds the port could change the cluster"
OPTION = "it was started with --read-only"
NO_FILES = "a served console reads and writes no files: it has no log-in"
_LOST = "cluster lost"
_BRIEF = {SERVED: "served", OPTION: "--read-only", FROM_DISKS: "from disks", IN_BUNDLE: "a bundle"}


@dataclass(frozen=True, slots=True)
class Safety:
    """``forbidden`` says why it can never be armed, None if it can. ``touched`` is the time of the last key
    while it is armed, None while it is read-only. ``lapsed`` says why it is read-only again, "" if it was
    never armed or was disarmed by hand.
    """

    forbidden: str | None = None
    touched: float | None = None
    lapsed: str = ""

    @property
    def armed(self) -> bool:
        return self.touched is not None

    @property
    def brief(self) -> str:
        """Why it is read-only, short enough for the title; "" if it may be armed."""
        if self.forbidden is not None:
            return _BRIEF.get(self.forbidden, "by its profile")
        return self.lapsed

    def refuse(self) -> None:
        """Raises NotDone while it is read-only."""
        if not self.armed:
            why = self.lapsed or self.forbidden or "it is not armed"
            raise NotDone(f"the console is read-only ({why}); nothing was sent")

    def arm(self, now: float) -> Safety:
        """Raises NotDone if it is forbidden."""
        if self.forbidden is not None:
            raise NotDone(f"this console stays read-only: {self.forbidden}")
        return replace(self, touched=now, lapsed="")

    def disarm(self) -> Safety:
        """The state after a person disarmed it."""
        return replace(self, touched=None, lapsed="")

    def touch(self, now: float) -> Safety:
        """The state after a key or a click: an armed console stays armed, unless it was already idle for too
        long.
        """
        current = self.at(now)
        return replace(current, touched=now) if current.armed else current

    def at(self, now: float) -> Safety:
        """The state at that time, also after a long pause."""
        if self.touched is None or now - self.touched < IDLE_SECONDS:
            return self
        return self._lapse(f"idle {IDLE_SECONDS / 60:.0f} min")

    def lost(self) -> Safety:
        """The state after the cluster was lost: the view is old, and nothing can be sent."""
        return self._lapse(_LOST)

    def reconnected(self) -> Safety:
        """The state after the cluster came back: the old view may not be true any more."""
        return replace(self, lapsed="reconnected") if self.lapsed == _LOST else self._lapse("reconnected")

    def other_cluster(self) -> Safety:
        """The state after another cluster answered or was chosen."""
        return self._lapse("another cluster")

    def left(self, now: float) -> float | None:
        """Seconds until the console is read-only again; None while it is read-only."""
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
