"""The timeline of a cluster: the times of its snapshots, and the gaps.

What happened in a gap is unknown: for a partition that is offline before it and has a leader after it,
nothing shows when it recovered.

That the cluster was asked and did not answer is an observation too, without a snapshot: a gap.

A chain is a full snapshot and the changes that build on it, one on the other. One chain is followed at a time,
so that each change is compared with the snapshot before it. If a chain is broken off, the changes after the
missing snapshot are a segment without a full snapshot: a partition that they do not name is unknown there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from pipeline.snapshot.catalog import BrokenObservation, Catalog, chain_to, snapshots
from pipeline.snapshot.observation import Observation, SnapshotKind

GAP_FACTOR = 3.0
"""A gap is this many times the median interval without a snapshot."""

CLOCK_TOLERANCE = timedelta(seconds=5)
"""If a collector's clock was further behind, the time since the snapshot before is not known."""


class Moment(NamedTuple):
    """One snapshot that is used: its number and time, its segment (a time without gaps), and the times of the
    snapshots around it.

    ``before`` is None at the start of a segment: it is unknown since when the state in this snapshot has existed.
    ``last``: the newest of the cluster, with nothing lost after it. ``known_before``: its segment has an earlier
    full snapshot, so that the state of every partition before this snapshot is known. ``complete``: it shows every
    partition that exists.
    """

    cluster_id: str
    snapshot: str
    number: int
    at: datetime
    segment: int
    before: datetime | None
    last: bool
    known_before: bool
    complete: bool


class SnapshotTimeline(NamedTuple):
    """The moments in order, the number of ``gaps``, and how many snapshots of ``other_chains`` were not used,
    because another collector took them at the same time.
    """

    moments: tuple[Moment, ...]
    gaps: int
    other_chains: int

    def digest(self, count: int) -> str:
        """Of all that a result takes from the first ``count`` moments: another one means other rows."""
        states = [
            (one.snapshot, one.at.isoformat(), one.segment, one.known_before, one.complete)
            for one in self.moments[:count]
        ]
        return sha256(json.dumps(states).encode()).hexdigest()


def timeline(
    cluster_id: str, observations: Sequence[Observation], unreadable: Sequence[str] = ()
) -> SnapshotTimeline:
    """The timeline of a cluster. A gap is where a snapshot is missing: before changes whose previous snapshot
    is missing, where ``unreadable`` ones are, where the taking of one failed, where the collector's clock was set
    back, and in a long silence.
    """
    found = snapshots(observations)
    failed = [one for one in observations if one.kind is SnapshotKind.FAILED]
    used = _followed(found)
    limit = _longest_usual(used)
    segments = _segments(used, unreadable, failed, limit)
    lost_at_end = bool(used) and (
        any(name > used[-1].snapshot for name in unreadable)
        or any(_nobody_knows_since(used[-1], one, limit) for one in failed)
    )
    moments = []
    with_full: set[int] = set()
    for number, (one, segment) in enumerate(zip(used, segments, strict=True)):
        begins = number == 0 or segments[number - 1] != segment
        moments.append(
            Moment(
                cluster_id,
                one.snapshot,
                number,
                one.taken_at,
                segment,
                None if begins else used[number - 1].taken_at,
                number == len(used) - 1 and not lost_at_end,
                segment in with_full,
                one.kind is SnapshotKind.FULL,
            )
        )
        if one.kind is SnapshotKind.FULL:
            with_full.add(segment)
    gaps = (segments[-1] if segments else 0) + lost_at_end
    return SnapshotTimeline(tuple(moments), gaps, len(found) - len(used))


def _longest_usual(*series: Sequence[Observation]) -> timedelta | None:
    """The longest time between two snapshots of a series that is not a gap; None: there are too few to tell."""
    steps = [
        (later.taken_at - earlier.taken_at).total_seconds()
        for one in series
        for earlier, later in pairwise(one)
    ]
    return timedelta(seconds=GAP_FACTOR * median(steps)) if len(steps) > 1 else None


def _chains(observations: Sequence[Observation]) -> list[list[Observation]]:
    """The snapshots by chain, each in order; a chain whose beginning is missing consists of changes only."""
    chains: list[list[Observation]] = []
    by_name: dict[str, list[Observation]] = {}
    for one in observations:
        changes = one.kind is SnapshotKind.CHANGES
        chain = by_name.get(one.previous) if changes else None
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(one)
        by_name[one.snapshot] = chain
    return chains


def _followed(observations: Sequence[Observation]) -> list[Observation]:
    """The snapshots that are used: a chain to its end, then the next one.

    The next chain is the one that begins soon with a full snapshot, if no changes before it were broken off. Else
    it is the one with the next snapshot, from that snapshot on.
    """
    chains = _chains(observations)
    limit = _longest_usual(*chains) or _longest_usual(observations)
    broken_off = {chain[0].identity for chain in chains if chain[0].kind is SnapshotKind.CHANGES}
    used: list[Observation] = []
    while True:
        end = used[-1].key if used else None
        rest = [later for chain in chains if (later := [m for m in chain if end is None or m.key > end])]
        if not rest:
            return used
        soonest = min(rest, key=lambda chain: chain[0].key)
        full = [chain for chain in rest if chain[0].kind is SnapshotKind.FULL]
        begins = min(full, key=lambda chain: chain[0].key, default=soonest)
        soon = not used or limit is None or begins[0].taken_at - used[-1].taken_at <= limit
        used += begins if soon and soonest[0].identity not in broken_off else soonest


def _failed_between(failed: Observation, before: Observation, after: Observation) -> bool:
    """Whether a collector of one of the two snapshots failed to read the cluster in between. Another collector's
    failure hides nothing.
    """
    mine = failed.series in (before.series, after.series)
    return mine and before.snapshot < failed.snapshot < after.snapshot


def _nobody_knows_since(newest: Observation, failed: Observation, limit: timedelta | None) -> bool:
    """Whether reading the cluster failed after its ``newest`` snapshot: for the same collector, or for another one
    at a time when the first should already have read again.
    """
    late = limit is None or failed.taken_at - newest.taken_at > limit
    return failed.snapshot > newest.snapshot and (failed.series == newest.series or late)


def _segments(
    used: Sequence[Observation],
    unreadable: Sequence[str],
    failed: Sequence[Observation],
    limit: timedelta | None,
) -> list[int]:
    """The segment of each snapshot; the segments are numbered from 0. ``limit``: a longer silence is a gap."""
    segments: list[int] = []
    for number, one in enumerate(used):
        if number == 0:
            segments.append(0)
            continue
        before = used[number - 1]
        gap = (
            one.missed > 0
            or timedelta(milliseconds=one.clock_behind_ms) > CLOCK_TOLERANCE
            or (one.kind is SnapshotKind.CHANGES and one.previous != before.snapshot)
            or any(before.snapshot < name < one.snapshot for name in unreadable)
            or any(_failed_between(vain, before, one) for vain in failed)
            or (limit is not None and one.taken_at - before.taken_at > limit)
        )
        segments.append(segments[-1] + gap)
    return segments


def usable(catalog: Catalog, cluster_id: str, since: datetime | None) -> tuple[Observation, ...]:
    """The snapshots from the last full one before ``since`` on."""
    observations = catalog.clusters[cluster_id]
    if since is None:
        return observations
    later = [one for one in snapshots(observations) if one.taken_at >= since]
    if not later:
        return ()
    chain = chain_to(catalog.root, snapshots(observations), later[0])
    first = chain.full.key if chain else later[0].key
    return tuple(one for one in observations if one.key >= first)


def broken_off(
    known: Sequence[Observation], observations: Sequence[Observation], unreadable: Collection[str]
) -> list[BrokenObservation]:
    """Where one of ``observations`` builds on a snapshot that is missing: neither ``known`` nor ``unreadable``,
    which has a reason of its own.
    """
    names = {one.snapshot for one in known}.union(unreadable)
    return [
        BrokenObservation(
            one.cluster_id,
            one.snapshot,
            f"it builds on {one.previous}, which is missing: until the next full snapshot, only partitions"
            " that changed are known",
            one.previous,
        )
        for one in observations
        if one.kind is SnapshotKind.CHANGES and one.previous not in names
    ]
