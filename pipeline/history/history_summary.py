"""The summary of a history: counts, the partitions hit most often, the longest incidents and the newest events."""

from __future__ import annotations

from typing import Any

LISTED = 100
"""Rows of each list."""

_KEY = ("cluster_id", "topic", "partition")
_TIME = "yyyy-MM-dd HH:mm:ss"


def summary(incidents: Any, events: Any) -> dict[str, Any]:
    """Of the rows of a result, DataFrames."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    sums = (f.count("*").alias("incidents"), f.sum("at_least_s").alias("at_least_s"))
    group = ("cluster_id", "kind", "outcome")
    counts = incidents.groupBy(*group).agg(*sums).orderBy(*group)
    offenders = incidents.groupBy(*_KEY, "kind").agg(*sums)
    offenders = offenders.orderBy(f.desc("incidents"), f.desc("at_least_s"), *_KEY, "kind")
    longest = incidents.orderBy(f.desc("at_least_s"), *_KEY, "kind", "began_at").limit(LISTED)
    longest = longest.select(
        *(*_KEY, "kind"),
        f.date_format("began_at", _TIME).alias("began"),
        *("at_least_s", "at_most_s", "outcome", "how", "who"),
    )
    newest = events.orderBy(f.desc("at"), "cluster_id", "subject").limit(LISTED)
    newest = newest.select(
        "cluster_id", f.date_format("at", _TIME).alias("when"), "subject", "was", "now", "in_a_gap"
    )
    return {
        "counts": _rows(counts),
        "offenders": _rows(offenders.limit(LISTED)),
        "longest": _rows(longest),
        "events": _rows(newest),
    }


def _rows(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]
