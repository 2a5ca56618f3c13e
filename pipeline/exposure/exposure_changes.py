"""Compares two results of the exposure job: which failures take more partitions offline than before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import PipelineError
from pipeline.exposure.what_if import WHAT_IF, what_if_from
from pipeline.results import JobResult
from pipeline.tables.schemas import EXPOSURES

COMPARED_COUNTS = ("offline", "under_min_isr", "acknowledged_at_risk")
_ORDER = ("acknowledged_at_risk", "offline", "under_min_isr")
_KEY = ["cluster_id", "kind", "failure"]


class ExposureChange(NamedTuple):
    """A failure: the counts ``before`` and ``after``, in the order of :attr:`ExposureChanges.counts`."""

    cluster_id: str
    kind: str
    failure: str
    before: tuple[int, ...]
    after: tuple[int, ...]

    def more(self, count: str) -> int:
        """Partitions more; below 0: fewer. A count that is not compared has none more."""
        at = COMPARED_COUNTS.index(count)
        return self.after[at] - self.before[at] if at < len(self.after) else 0


class ExposureChanges(NamedTuple):
    """``changed``: the failures whose counts changed, the worst first; ``same``: how many did not. Clusters that
    are in one result only are not compared: ``gone`` and ``new``. ``counts``: the first of
    :data:`COMPARED_COUNTS`; a result of an earlier version does not have them all.
    """

    changed: tuple[ExposureChange, ...]
    same: int
    gone: tuple[str, ...]
    new: tuple[str, ...]
    counts: tuple[str, ...]


def exposure_changes(before: JobResult, after: JobResult) -> ExposureChanges:
    """Compares the failures of one broker, rack or log dir. A failure without a row takes no partition.

    Raises PipelineError if a result cannot be read, or if they do not assume the same.
    """
    one, other = (what_if_from(result.asked.get("what_if", {})).assumed for result in (before, after))
    if one != other:
        texts = [
            f"as if {', and '.join(changes)}" if changes else "the clusters as they are"
            for changes in (one, other)
        ]
        raise PipelineError(f"not comparable: one counts {texts[0]}, the other {texts[1]}")
    clusters = [set(result.asked["clusters"]) for result in (before, after)]
    both = pa.array(sorted(clusters[0] & clusters[1]), pa.string())
    first, last = (_singles(result, both) for result in (before, after))
    joined = first.join(last, _KEY, join_type="full outer", left_suffix="_before", right_suffix="_after")
    counts = tuple(name for name in COMPARED_COUNTS if not first[name].null_count + last[name].null_count)
    rows = [_change(row, counts) for row in joined.to_pylist()]
    changed = [row for row in rows if row.before != row.after]
    changed.sort(key=lambda row: (*(-row.more(name) for name in _ORDER), row[:3]))
    return ExposureChanges(
        tuple(changed),
        len(rows) - len(changed),
        tuple(sorted(clusters[0] - clusters[1])),
        tuple(sorted(clusters[1] - clusters[0])),
        counts,
    )


def _singles(result: JobResult, clusters: pa.Array) -> pa.Table:
    names = ("cluster_id", "kind", "failed", *COMPARED_COUNTS)
    table = pa.concat_tables(result.rows(EXPOSURES, names))
    table = table.filter(pc.equal(pc.list_value_length(table["failed"]), 1))
    # A question may have been asked only once.
    table = table.filter(pc.not_equal(table["kind"], WHAT_IF))
    table = table.filter(pc.is_in(table["cluster_id"], clusters))
    failure = pc.list_element(table["failed"], 0)
    return table.append_column("failure", failure).drop_columns(["failed"])


def _change(row: dict[str, Any], counts: Sequence[str]) -> ExposureChange:
    totals = (tuple(row[f"{name}_{when}"] or 0 for name in counts) for when in ("before", "after"))
    return ExposureChange(row["cluster_id"], row["kind"], row["failure"], *totals)
