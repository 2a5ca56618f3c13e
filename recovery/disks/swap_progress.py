"""How far the replacement of a disk is, by what the cluster shows and what the operator said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from recovery.disks.disk_swap import SwapStep, SwapStepKind

SAID = (SwapStepKind.READ, SwapStepKind.DISK, SwapStepKind.FORMAT, SwapStepKind.LEADERS)
"""The cluster does not show these steps: the operator says that they are done."""


class SwapSituation(NamedTuple):
    """``dangers``: so many partitions would elect the empty disk while other copies exist. ``stopped``: the broker
    was seen stopped since the swap began. ``back``: it answers, is not fenced, and lists the dir as healthy.
    ``left`` of the dir's ``replicas`` are not in the ISR, ``leaderless`` of these because nobody leads them.
    ``said``: the steps that the operator said are done. ``unreadable``: the operator said that the old disk cannot
    be read.
    """

    dangers: int
    stopped: bool
    back: bool
    left: int
    replicas: int
    leaderless: int = 0
    said: frozenset[SwapStepKind] = frozenset()
    unreadable: bool = False

    @property
    def swapped(self) -> bool:
        """Whether the broker runs on the new disk."""
        return self.back and self.stopped


def current_step(steps: Iterable[SwapStep], now: SwapSituation) -> SwapStep | None:
    """The first step that is not done; None: all are."""
    return next((step for step in steps if not _done(step.kind, now)), None)


def _done(kind: SwapStepKind, now: SwapSituation) -> bool:
    match kind:
        case SwapStepKind.RECOVER:
            return not now.dangers
        case SwapStepKind.STOP:
            return now.stopped
        case SwapStepKind.READ | SwapStepKind.DISK | SwapStepKind.FORMAT:
            return now.swapped or kind in now.said
        case SwapStepKind.START | SwapStepKind.METADATA:
            return now.swapped
        case SwapStepKind.WAIT:
            return now.swapped and (not now.left or kind in now.said)
        case SwapStepKind.LEADERS:
            return kind in now.said


def may_say(kind: SwapStepKind, now: SwapSituation) -> bool:
    """Whether the operator may say that this step is done: also the wait, where all that is missing has no leader
    and so does not come back by itself.
    """
    return kind in SAID or (kind is SwapStepKind.WAIT and 0 < now.left == now.leaderless)


def already_swapped(missing: int, failed: bool, back: bool) -> bool:
    """Whether the disk was replaced before the first reading: its broker runs on a healthy one, and replicas are
    ``missing`` from the ISR.
    """
    return back and not failed and missing > 0


def left_undone(kind: SwapStepKind, now: SwapSituation) -> bool:
    """Whether the operator continued without that step, so that what it provides is missing."""
    if kind is SwapStepKind.READ:
        return now.unreadable and kind in now.said
    return kind is SwapStepKind.WAIT and now.left > 0


def revocable_step(steps: Sequence[SwapStep], now: SwapSituation) -> SwapStepKind | None:
    """Returns the last step that is passed only because the operator said so; None: there is none to take back."""
    for step in reversed(steps):
        found = current_step(steps, taken_back(now, step.kind)) if step.kind in now.said else None
        if found is not None and found.kind is step.kind:
            return step.kind
    return None


def taken_back(now: SwapSituation, kind: SwapStepKind) -> SwapSituation:
    """The same without what the operator said of that step."""
    unreadable = now.unreadable and kind is not SwapStepKind.READ
    return now._replace(said=now.said - {kind}, unreadable=unreadable)


def with_confirmed(said: Collection[SwapStepKind], kind: SwapStepKind) -> frozenset[SwapStepKind]:
    return frozenset((*said, kind))
