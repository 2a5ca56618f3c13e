"""The timeline of a cluster: the times of its snapshots, and the gaps.

What happened in a gap is unknown: for a partition that is offline before it and has a leader after it,
nothing shows when it recovered.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from pipeline.snapshot.catalog import Catalog, chain_to
from pipeline.snapshot.manifest import MISSED, Manifest, SnapshotKind

GAP_FACTOR = 3.0
"""A gap is this many times the median interval without a snapshot."""


class Moment(NamedTuple):
    """One usable snapshot: its number and time, its segment (a time without gaps), and the times of the
    snapshots around it.

    ``before`` is None at the start of a segment: it is unknown since when the state in this snapshot has
    existed. ``last``: the newest of the cluster.
    """

    cluster_id: str
    snapshot: str
    number: int
    at: datetime
    segment: int
    before: datetime | None
    last: bool


def timeline(
    cluster_id: str, manifests: Sequence[Manifest], unreadable: Sequence[str] = ()
) -> tuple[Moment, ...]:
    """The usable snapshots in order. A gap is where one is missing: changes whose previous snapshot is
    missing, ``unreadable`` ones, and those that failed while a series was taken.
    """
    usable: list[Manifest] = []
    after_gap: set[str] = set()
    waiting = sorted(unreadable, reverse=True)
    lost = False
    previous: tuple[str, ...] = ()
    for manifest in manifests:
        while waiting and waiting[-1] < manifest.snapshot:
            waiting.pop()
            lost = True
        linked = manifest.kind is SnapshotKind.FULL or (not lost and manifest.previous in previous)
        if not linked:
            lost = True
            continue
        if lost or MISSED in manifest.notes:
            after_gap.add(manifest.snapshot)
        lost = False
        previous = manifest.names
        usable.append(manifest)
    times = [manifest.taken_at for manifest in usable]
    steps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    usual = median(steps) if steps else 0.0
    moments: list[Moment] = []
    segment = 0
    for number, manifest in enumerate(usable):
        gap = number > 0 and (
            manifest.snapshot in after_gap or (len(steps) > 1 and steps[number - 1] > GAP_FACTOR * usual)
        )
        segment += gap
        before = None if number == 0 or gap else times[number - 1]
        moments.append(
            Moment(
                cluster_id,
                manifest.snapshot,
                number,
                manifest.taken_at,
                segment,
                before,
                number == len(usable) - 1,
            )
        )
    return tuple(moments)


def usable(catalog: Catalog, cluster_id: str, since: datetime | None) -> tuple[Manifest, ...]:
    """The snapshots from the last full one before ``since`` on."""
    manifests = catalog.clusters[cluster_id]
    if since is None:
        return manifests
    later = [manifest for manifest in manifests if manifest.taken_at >= since]
    if not later:
        return ()
    chain = chain_to(catalog.root, manifests, later[0])
    first = chain.full.key if chain else later[0].key
    return tuple(manifest for manifest in manifests if manifest.key >= first)
