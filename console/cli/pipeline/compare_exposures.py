"""``ktriage pipeline compare``."""

from __future__ import annotations

from console.exit_status import Status
from console.output.bar_table import rendered
from console.output.json_document import document
from console.program import Program
from pipeline.exposure.exposure_changes import COMPARED_COUNTS, ExposureChange, exposure_changes
from pipeline.results import read_result
from pipeline.storage import storage_path
from recovery.wording.quantity_text import counted


def compare_exposures(
    program: Program, before: str, after: str, rows: int, *, at_most: int | None, json: bool
) -> int:
    """Shows which failures got worse between two results; returns the exit status: 1 if one takes over ``at_most``
    partitions more offline. Raises PipelineError.
    """
    found = exposure_changes(*(read_result(storage_path(uri), "exposure") for uri in (before, after)))
    over = [change for change in found.changed if at_most is not None and change.more_offline > at_most]
    screen = program.screen
    if json:
        fields = {
            "changed": [_json(change) for change in found.changed],
            "same": found.same,
            "overLimit": len(over),
            "clustersGone": list(found.gone),
            "clustersNew": list(found.new),
        }
        screen.out(document("pipeline-compare", fields))
        return Status.PARTLY if over else Status.DONE
    worse = sum(change.more_offline > 0 for change in found.changed)
    better = sum(change.more_offline < 0 for change in found.changed)
    same_offline = len(found.changed) - worse - better
    screen.out(
        (
            f"{counted(worse, 'failure')} would take more partitions offline than before, {better:,} fewer;",
            f"{same_offline:,} changed only under min ISR, {found.same:,} are the same",
        )
    )
    if found.changed:
        shown = found.changed[:rows] if rows else found.changed
        columns = ("cluster", "what", "fails", "offline before", "after", "under min ISR before", "after")
        screen.out(["", *rendered("changes, the worst first", columns, map(_row, shown))])
    for name, clusters in (("before", found.gone), ("after", found.new)):
        if clusters:
            screen.say(f"not compared, because only the result {name} has them: {', '.join(clusters)}")
    if over:
        screen.say(f"over the limit: {counted(len(over), 'failure')} with more than {at_most:,} more offline")
    return Status.PARTLY if over else Status.DONE


def _row(change: ExposureChange) -> tuple[str, ...]:
    pairs = zip(change.before, change.after, strict=True)
    return (*change[:3], *(f"{count:,}" for pair in pairs for count in pair))


def _json(change: ExposureChange) -> dict[str, object]:
    names = {"offline": "offline", "under_min_isr": "underMinIsr"}
    counts = {
        names[name]: {"before": change.before[place], "after": change.after[place]}
        for place, name in enumerate(COMPARED_COUNTS)
    }
    return {"clusterId": change.cluster_id, "kind": change.kind, "failed": change.failure, **counts}
