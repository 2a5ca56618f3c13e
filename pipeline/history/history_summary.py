"""The summary of a history: each task lists the first rows of its shard, and the driver puts the lists together.

A partition is in one shard, and so are all events of a cluster: the first of all are among the first of each shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.results import quarantined_counts

LISTED = 100
"""Rows of each list in the summary."""

_KEY = ("cluster_id", "topic", "partition")
_GROUP = ("cluster_id", "kind", "outcome")


class Listing(NamedTuple):
    """A list of the summary: the columns by which it is ordered; the first ``greatest`` of them descend."""

    order: tuple[str, ...]
    greatest: int

    def first(self, rows: pa.Table) -> list[dict[str, Any]]:
        """The first rows."""
        directions = ["descending"] * self.greatest + ["ascending"] * (len(self.order) - self.greatest)
        at = pc.sort_indices(rows, sort_keys=list(zip(self.order, directions, strict=True)))
        found: list[dict[str, Any]] = rows.take(at[:LISTED]).to_pylist()
        return [{name: _plain(value) for name, value in row.items()} for row in found]

    def merged(self, lists: Iterable[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """The first rows of all lists."""
        found = [dict(row) for rows in lists for row in rows]
        found.sort(key=lambda row: [row[name] for name in self.order[self.greatest :]])
        found.sort(key=lambda row: [row[name] for name in self.order[: self.greatest]], reverse=True)
        return found[:LISTED]


def _plain(value: Any) -> Any:
    return value.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else value


OFFENDERS = Listing(("incidents", "at_least_s", *_KEY, "kind"), 2)
"""The partitions hit most often."""
LONGEST = Listing(("at_least_s", *_KEY, "kind", "began_at"), 1)
NEWEST = Listing(("at", "cluster_id", "subject"), 1)


def shard_summary(found: pa.Table, events: pa.Table, quarantined: pa.Table) -> dict[str, Any]:
    """What one shard adds to the summary."""
    return {
        "counts": _counted(found, _GROUP).to_pylist(),
        "offenders": OFFENDERS.first(_counted(found, (*_KEY, "kind"))),
        "longest": LONGEST.first(found.drop_columns(["last_seen_at", "ended_at", "act"])),
        "events": NEWEST.first(events),
        "quarantined": quarantined.to_pylist(),
    }


def _counted(found: pa.Table, group: Sequence[str]) -> pa.Table:
    counts = found.group_by(list(group), use_threads=False).aggregate(
        [([], "count_all"), ("at_least_s", "sum")]
    )
    return counts.select([*group, "count_all", "at_least_s_sum"]).rename_columns(
        [*group, "incidents", "at_least_s"]
    )


def whole_summary(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts by kind and outcome, the partitions hit most often, the longest incidents, and the newest events."""
    return {
        "quarantined": quarantined_of(parts),
        "counts": _summed((row for part in parts for row in part["counts"]), _GROUP),
        "offenders": OFFENDERS.merged(part["offenders"] for part in parts),
        "longest": [
            {
                **{name: row[name] for name in (*_KEY, "kind")},
                "began": _seconds(row["began_at"]),
                **{name: row[name] for name in ("at_least_s", "at_most_s", "outcome", "how", "who")},
            }
            for row in LONGEST.merged(part["longest"] for part in parts)
        ],
        "events": [
            {
                "cluster_id": row["cluster_id"],
                "when": _seconds(row["at"]),
                **{name: row[name] for name in ("subject", "was", "now", "in_a_gap")},
            }
            for row in NEWEST.merged(part["events"] for part in parts)
        ],
    }


def _seconds(moment: str) -> str:
    return moment.partition(".")[0]


def quarantined_of(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many rows of each cluster are broken, by reason."""
    return quarantined_counts(
        (row["cluster_id"], row["reason"], row["rows"]) for part in parts for row in part["quarantined"]
    )


def _summed(rows: Iterable[Mapping[str, Any]], group: Sequence[str]) -> list[dict[str, Any]]:
    sums: dict[tuple[str, ...], tuple[int, float]] = {}
    for row in rows:
        key = tuple(row[name] for name in group)
        incidents, seconds = sums.get(key, (0, 0.0))
        sums[key] = (incidents + row["incidents"], seconds + row["at_least_s"])
    return [
        {**dict(zip(group, key, strict=True)), "incidents": incidents, "at_least_s": seconds}
        for key, (incidents, seconds) in sorted(sums.items())
    ]
