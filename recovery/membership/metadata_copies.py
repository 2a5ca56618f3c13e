"""Copies of the metadata log from the disks of several nodes, compared when a majority of controllers is lost.

Only evidence: which copy is the longest by Raft's rule (epoch of the last record, then log end), what the others
lack of it. The high watermark is in no file, so what was committed is not known from one copy alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recovery.loss import divergence
from recovery.model import Lineage


class MetadataCopy(NamedTuple):
    """The copy of one node; ``path`` is its log dir. ``lost_tail`` as a scan of the disk tells it."""

    node: int
    path: str
    lineage: Lineage
    log_end: int
    lost_tail: str | None = None

    @property
    def key(self) -> tuple[int, int]:
        return self.lineage.last_epoch, self.log_end


class ComparedCopy(NamedTuple):
    """``agrees_to``: the copy is the same as the longest one below this offset; None: they have no epoch in common,
    for example because one begins behind a snapshot where the other ends.
    """

    copy: MetadataCopy
    agrees_to: int | None


def compare_copies(copies: Iterable[MetadataCopy]) -> tuple[ComparedCopy, ...]:
    """The longest first, by Raft's rule for votes; equal ones by node."""
    ordered = sorted(copies, key=lambda copy: (-copy.key[0], -copy.key[1], copy.node))
    return tuple(
        ComparedCopy(
            copy, copy.log_end if copy is ordered[0] else divergence(ordered[0].lineage, copy.lineage)
        )
        for copy in ordered
    )


def on_majority(compared: tuple[ComparedCopy, ...]) -> int | None:
    """The offset below which a majority of these copies agree with the longest; None: not known."""
    ends = sorted((one.agrees_to for one in compared if one.agrees_to is not None), reverse=True)
    majority = len(compared) // 2 + 1
    return ends[majority - 1] if len(ends) >= majority else None
