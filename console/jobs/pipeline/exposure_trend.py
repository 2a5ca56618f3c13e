"""``ktriage pipeline compare`` and ``ktriage pipeline trend``: what changed between results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from console.errors import InputError, Status
from console.output.bar_table import by_id, first_rows, rendered
from console.output.json_document import document
from console.program import Program
from pipeline.exposure.exposure_changes import ExposureChange, ExposureChanges, exposure_changes
from pipeline.exposure.fleet import ClusterTrend, ExposureTrend, exposure_trend
from pipeline.results import read_result, read_results
from pipeline.storage import storage_path
from recovery.wording.quantity_text import counted, more


class ExposureLimits(NamedTuple):
    """By how many partitions a failure may take more than before: offline, and with acknowledged records at risk;
    None: any number.
    """

    offline: int | None
    at_risk: int | None

    def exceeded(self, change: ExposureChange) -> bool:
        limits = ((self.offline, "offline"), (self.at_risk, "acknowledged_at_risk"))
        return any(most is not None and change.more(count) > most for most, count in limits)


def compare_exposures(
    program: Program, before: str, after: str, rows: int, *, limits: ExposureLimits, json: bool
) -> int:
    """Shows which failures got worse between two results; returns the exit status: 1 if one exceeds the limits.
    Raises InputError, PipelineError.
    """
    found = exposure_changes(*(read_result(storage_path(uri), "exposure") for uri in (before, after)))
    if limits.at_risk is not None and "acknowledged_at_risk" not in found.counts:
        raise InputError(f"--max-more-at-risk: {_NOT_COUNTED}")
    over = [change for change in found.changed if limits.exceeded(change)]
    screen = program.screen
    if json:
        fields = {
            "changed": [_changes_json(change, found.counts) for change in found.changed],
            "same": found.same,
            "overLimit": len(over),
            "clustersGone": list(found.gone),
            "clustersNew": list(found.new),
        }
        screen.out(document("pipeline-compare", fields))
    else:
        screen.out(_change_lines(found, rows))
        for name, clusters in (("before", found.gone), ("after", found.new)):
            if clusters:
                screen.say(f"not compared, because only the result {name} has them: {', '.join(clusters)}")
        if over:
            screen.say(f"over the limit: {counted(len(over), 'failure')}")
    return Status.PARTLY if over else Status.DONE


_NOT_COUNTED = "one of the results is of an earlier version, which did not count acknowledged records"
_HEADS = {
    "offline": "offline before",
    "under_min_isr": "under min ISR before",
    "acknowledged_at_risk": "with records at risk before",
}


def _change_lines(found: ExposureChanges, rows: int) -> Iterator[str]:
    worse = sum(change.more("offline") > 0 for change in found.changed)
    better = sum(change.more("offline") < 0 for change in found.changed)
    others = len(found.changed) - worse - better
    yield f"{counted(worse, 'failure')} would take more partitions offline than before, {better:,} fewer;"
    yield f"{others:,} changed otherwise, {found.same:,} are the same"
    if "acknowledged_at_risk" not in found.counts:
        yield f"records at risk are not compared: {_NOT_COUNTED}"
    else:
        riskier = sum(change.more("acknowledged_at_risk") > 0 for change in found.changed)
        yield f"{counted(riskier, 'failure')} would put acknowledged records of more partitions at risk"
    if found.changed:
        shown = first_rows(found.changed, rows)
        heads = (head for name in found.counts for head in (_HEADS[name], "after"))
        columns = ("cluster", "what", "fails", *heads)
        yield from ["", *rendered("changes, the worst first", columns, map(_change_row, shown))]


def _change_row(change: ExposureChange) -> tuple[str, ...]:
    pairs = zip(change.before, change.after, strict=True)
    return (*change[:3], *(f"{count:,}" for pair in pairs for count in pair))


def _changes_json(change: ExposureChange, compared: Sequence[str]) -> dict[str, object]:
    names = {
        "offline": "offline",
        "under_min_isr": "underMinIsr",
        "acknowledged_at_risk": "acknowledgedAtRisk",
    }
    counts = {
        names[name]: {"before": change.before[place], "after": change.after[place]}
        for place, name in enumerate(compared)
    }
    return {"clusterId": change.cluster_id, "kind": change.kind, "failed": change.failure, **counts}


_NAMES = {
    "offline_now": "offlineNow",
    "acknowledged_at_risk": "acknowledgedAtRisk",
    "offline": "offline",
    "under_min_isr": "underMinIsr",
}


class TrendLimits(NamedTuple):
    """How many partitions the worst failure of a cluster may take offline, or put records of at risk; and by how
    many more than in the run before. None: any number.
    """

    offline: int | None = None
    at_risk: int | None = None
    more_offline: int | None = None
    more_at_risk: int | None = None

    def exceeded(self, one: ClusterTrend) -> bool:
        limits = (
            (self.offline, one.after["offline"]),
            (self.at_risk, one.after["acknowledged_at_risk"]),
            (self.more_offline, one.more("offline")),
            (self.more_at_risk, one.more("acknowledged_at_risk")),
        )
        return any(most is not None and count > most for most, count in limits)


def show_trend(
    program: Program, source: str, cluster_ids: Sequence[str], rows: int, *, limits: TrendLimits, json: bool
) -> int:
    """Shows the runs of exposure over time, and what changed between the newest two; returns the exit status: 1 if
    a cluster exceeds the limits, or is missing in the newest run. Raises InputError, PipelineError.
    """
    results = [result for result in read_results(storage_path(source)) if result.job == "exposure"]
    trend = exposure_trend(results, cluster_ids)
    if trend is None:
        raise InputError(
            f"{source}: no run of exposure here counts by cluster: run ktriage pipeline exposure"
        )
    missing = sorted(set(cluster_ids) - {one.after["cluster_id"] for one in trend.clusters})
    over = [one for one in trend.clusters if limits.exceeded(one)]
    screen = program.screen
    screen.out(document("pipeline-trend", _fields(trend, over)) if json else _lines(trend, rows))
    for name in dict.fromkeys((*trend.gone, *missing)):
        screen.say(f"cluster {name} is not in the newest run, or could not be read")
    for one in over:
        screen.say(f"over the limit: cluster {one.after['cluster_id']}")
    return Status.PARTLY if over or trend.gone or missing else Status.DONE


def _lines(trend: ExposureTrend, rows: int) -> Iterator[str]:
    if trend.other:
        yield f"{counted(trend.other, 'run')} left out: they assume something else, or do not count by cluster"
    heads = ("run", "clusters", "offline now", "with records at risk", "offline", "under min ISR")
    points = trend.points[-rows:] if rows else trend.points
    lines = [
        (f"{point.made_at:%Y-%m-%d %H:%M}", *(f"{value:,}" for value in point[1:]))
        for point in reversed(points)
    ]
    yield from rendered("the worst failure of each cluster, added up, newest run first", heads, lines)
    columns = (
        "id",
        "offline now",
        "more",
        "with records at risk",
        "more",
        "offline",
        "more",
        "under min ISR",
        "more",
    )
    shown = [_row(one) for one in first_rows(trend.clusters, rows)]
    yield ""
    yield from by_id("clusters of the newest run, and what is more than in the run before", columns, shown)
    yield from more(len(trend.clusters) - len(shown), " clusters (--rows 0 shows all)")


def _row(one: ClusterTrend) -> tuple[str, ...]:
    pairs = (
        (f"{one.after[name]:,}", "new" if one.before is None else f"{one.more(name):+,}") for name in _NAMES
    )
    return (one.after["cluster_id"], *(text for pair in pairs for text in pair))


def _fields(trend: ExposureTrend, over: Sequence[ClusterTrend]) -> dict[str, object]:
    return {
        "runs": [
            {"madeAt": point.made_at.isoformat(), "clusters": point.clusters}
            | {_NAMES[name]: getattr(point, name) for name in _NAMES}
            for point in trend.points
        ],
        "clusters": [_json(one) for one in trend.clusters],
        "clustersGone": list(trend.gone),
        "otherRuns": trend.other,
        "overLimit": [one.after["cluster_id"] for one in over],
    }


def _json(one: ClusterTrend) -> dict[str, object]:
    counts = {
        _NAMES[name]: {"before": None if one.before is None else one.before[name], "after": one.after[name]}
        for name in _NAMES
    }
    return {"clusterId": one.after["cluster_id"], **counts}
