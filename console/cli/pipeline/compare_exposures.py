"""``ktriage pipeline compare``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from console.errors import InputError
from console.exit_status import Status
from console.output.bar_table import first_rows, rendered
from console.output.json_document import document
from console.program import Program
from pipeline.exposure.exposure_changes import ExposureChange, ExposureChanges, exposure_changes
from pipeline.results import read_result
from pipeline.storage import storage_path
from recovery.wording.quantity_text import counted


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
            "changed": [_json(change, found.counts) for change in found.changed],
            "same": found.same,
            "overLimit": len(over),
            "clustersGone": list(found.gone),
            "clustersNew": list(found.new),
        }
        screen.out(document("pipeline-compare", fields))
    else:
        screen.out(_lines(found, rows))
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


def _lines(found: ExposureChanges, rows: int) -> Iterator[str]:
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
        yield from ["", *rendered("changes, the worst first", columns, map(_row, shown))]


def _row(change: ExposureChange) -> tuple[str, ...]:
    pairs = zip(change.before, change.after, strict=True)
    return (*change[:3], *(f"{count:,}" for pair in pairs for count in pair))


def _json(change: ExposureChange, compared: Sequence[str]) -> dict[str, object]:
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
