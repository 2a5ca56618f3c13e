"""One row for each cluster: how it is now, and its worst single failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pipeline.exposure.what_if import what_if_from
from pipeline.results import JobResult
from pipeline.snapshot.state_sources import Sources

DETAILED = 20
"""Clusters whose failures are in the summary; those of the others are in the tables."""

COUNTED = ("acknowledged_at_risk", "offline", "under_min_isr")
"""The counts of the worst failure that are shown; failures are compared by the first one, then by the next."""


def fleet_rows(sources: Sources, worst: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each cluster, the worst first; those that could not be read come last, with the reason.

    ``worst``: of a cluster the worst failure, as ``kind``, ``failed`` and the counts of :data:`COUNTED`, and how
    many failures take partitions offline (``failures_offline``) or put records at risk (``failures_at_risk``).
    """
    nothing = {"kind": None, "failed": None, "failures_offline": 0, "failures_at_risk": 0}
    nothing |= dict.fromkeys(COUNTED, 0)
    rows = []
    for chain in sources.chains:
        newest = chain.newest
        now = {
            "cluster_id": newest.cluster_id,
            "cluster_name": newest.asked or None,
            "taken_at": newest.taken_at.astimezone(UTC).isoformat(),
            "partitions": newest.partitions,
            "offline_now": newest.offline,
            "refused": None,
        }
        rows.append({**now, **nothing, **worst.get(newest.cluster_id, {})})
    rows.sort(key=lambda row: (-row["offline_now"], *(-row[name] for name in COUNTED), row["cluster_id"]))
    unknown = dict.fromkeys((*nothing, "cluster_name", "taken_at", "partitions", "offline_now"))
    refused = sorted({one.cluster_id: one.reason for one in sources.refused}.items())
    return rows + [unknown | {"cluster_id": name, "refused": reason} for name, reason in refused]


class TrendPoint(NamedTuple):
    """A run: its clusters, their partitions offline then, and the sums of their worst failures' counts."""

    made_at: datetime
    clusters: int
    offline_now: int
    acknowledged_at_risk: int
    offline: int
    under_min_isr: int


class ClusterTrend(NamedTuple):
    """A cluster's row in the newest run and in the one before; ``before`` None: it was not read then."""

    before: Mapping[str, Any] | None
    after: Mapping[str, Any]

    def more(self, name: str) -> int:
        """How many partitions more than before; 0 where it is not known."""
        return 0 if self.before is None else self.after[name] - self.before[name]


class ExposureTrend(NamedTuple):
    """``points``: the runs, oldest first. ``clusters``: those of the newest run that could be read, what got worse
    first. ``gone``: clusters of the run before that the newest could not read or does not have. ``other``: runs
    that assume something else than the newest, or are of a version that did not count this.
    """

    points: tuple[TrendPoint, ...]
    clusters: tuple[ClusterTrend, ...]
    gone: tuple[str, ...]
    other: int


def exposure_trend(results: Sequence[JobResult], cluster_ids: Sequence[str] = ()) -> ExposureTrend | None:
    """The trend of those runs of exposure, oldest first, of all clusters or of those; None: no run can tell."""
    telling = [result for result in results if "fleet" in result.summary]
    if not telling:
        return None
    assumed = _assumed(telling[-1])
    alike = [result for result in telling if _assumed(result) == assumed]
    fleets = [_read(result, cluster_ids) for result in alike]
    points = (_point(result, fleet) for result, fleet in zip(alike, fleets, strict=True))
    before, after = fleets[-2] if len(fleets) > 1 else {}, fleets[-1]
    clusters = [ClusterTrend(before.get(name), row) for name, row in after.items()]
    clusters.sort(
        key=lambda one: (*(-one.more(name) for name in (*COUNTED, "offline_now")), _worst(one.after))
    )
    gone = tuple(sorted(before.keys() - after.keys()))
    return ExposureTrend(tuple(points), tuple(clusters), gone, len(results) - len(alike))


def _assumed(result: JobResult) -> tuple[str, ...]:
    return what_if_from(result.asked.get("what_if", {})).assumed


def _read(result: JobResult, cluster_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    return {
        row["cluster_id"]: row
        for row in result.summary["fleet"]
        if row["refused"] is None and (not cluster_ids or row["cluster_id"] in cluster_ids)
    }


def _point(result: JobResult, fleet: Mapping[str, Mapping[str, Any]]) -> TrendPoint:
    sums = (sum(row[name] for row in fleet.values()) for name in TrendPoint._fields[2:])
    return TrendPoint(result.made_at, len(fleet), *sums)


def _worst(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*(-row[name] for name in COUNTED), row["cluster_id"])
