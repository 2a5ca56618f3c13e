"""What ``watch`` has written so far, as a result that ``show`` and ``report`` tell like that of a job."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from pipeline.results import JobResult, RunTarget
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import explained, opened, read_partitions, table_place
from pipeline.views import view_rows
from pipeline.watch.incident_rows import METADATA_INCIDENTS, TABLES

WATCH = "watch"
"""In place of a run's id: the tables grow, and there is one result of each directory."""

LISTED = 1000
"""Rows of each list in the summary."""


def watch_result(root: StoragePath) -> JobResult | None:
    """As of the newest commit of the tables below ``root``; None: no watch writes there. Raises PipelineError."""
    tables = [opened(root, definition) for definition in TABLES]
    if any(table is None for table in tables):
        return None
    with explained(table_place(root, METADATA_INCIDENTS)):
        written = max(table.history(1)[0]["timestamp"] for table in tables if table is not None)
    open_now = view_rows(root, "open_incidents").sort_by([("since", "ascending"), ("incident", "ascending")])
    topics = view_rows(root, "incident_minutes_by_topic").sort_by(
        [("minutes", "descending"), ("end_unknown", "descending"), ("cluster_id", "ascending")]
    )
    names = dict(zip(*(open_now[name].to_pylist() for name in ("cluster_id", "cluster_name")), strict=True))
    names |= dict(zip(*(topics[name].to_pylist() for name in ("cluster_id", "cluster_name")), strict=True))
    summary = {
        "counts": _counts(root),
        "open_count": len(open_now),
        "open": _plain(open_now),
        "topics": _plain(topics),
    }
    made_at = datetime.fromtimestamp(written / 1000, UTC)
    asked = {"clusters": dict.fromkeys(sorted(names)), "names": names}
    return JobResult(RunTarget(root, WATCH), WATCH, made_at, "", asked, summary)


def _counts(root: StoragePath) -> list[dict[str, Any]]:
    """How many incidents of each kind have ended in which way, by cluster."""
    keys = ("cluster_id", "kind", "outcome")
    schema = pa.schema([METADATA_INCIDENTS.schema.field(name) for name in keys])
    counts: Counter[tuple[Any, ...]] = Counter()
    for table in read_partitions(root, METADATA_INCIDENTS, "", (), schema):
        counts.update(zip(*(table[name].to_pylist() for name in keys), strict=True))
    return [dict(zip(keys, key, strict=True)) | {"incidents": count} for key, count in sorted(counts.items())]


def _plain(rows: pa.Table) -> list[dict[str, Any]]:
    """The first rows, with values that JSON has."""
    return [
        {
            name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
            for name, value in row.items()
        }
        for row in rows.slice(0, LISTED).to_pylist()
    ]
