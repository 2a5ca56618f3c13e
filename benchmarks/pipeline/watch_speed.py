"""What ``ktriage pipeline watch`` costs: the whole stream, and its stages one by one in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from benchmarks.pipeline.rolling_restarts import write_restarts
from pipeline.storage import StoragePath, storage_path
from pipeline.watch.fold_records import READ, fold_records, in_order
from pipeline.watch.incident_rows import event_rows, incident_rows
from pipeline.watch.log_part import ShippedPart, read_part
from pipeline.watch.shipped_log import ShippedLog
from pipeline.watch.watch_progress import WatchProgress
from pipeline.watch.watch_query import WatchSettings, watch
from recovery.metadata_log.incident_fold import FoldState, IncidentFold

CLUSTERS = 2
MOST_BYTES = 64 * 2**20
EVERY_S = 1.0

Result = TypeVar("Result")


def watched_clusters(folder: Path, records: int) -> int:
    """Writes the logs of two clusters with so many records together; returns their number."""
    return sum(write_restarts(folder / f"c{seed}", records // CLUSTERS, seed) for seed in range(CLUSTERS))


def run_watch(spark: Any, folder: Path, out: StoragePath) -> int:
    """The whole stream with its tables; returns the number of rows that were read."""
    seen: list[WatchProgress] = []
    watch(spark, WatchSettings(storage_path(str(folder)), out, EVERY_S, MOST_BYTES), seen.append, once=True)
    return sum(progress.records for progress in seen)


def stages(folder: Path, records: int) -> dict[str, float]:
    """Microseconds of CPU time for each record, by stage, without Spark: what the stages alone would allow."""
    count = write_restarts(folder / "c", records, 0)
    spent: dict[str, float] = {}

    def timed(name: str, run: Callable[[], Result]) -> Result:
        began = time.process_time()
        found = run()
        spent[name] = (time.process_time() - began) / count * 1e6
        return found

    log, fold = ShippedLog(folder / "c"), IncidentFold(FoldState())
    end = timed("find whole batches", lambda: log.latest(None, 1 << 40))
    part = ShippedPart("c", folder / "c", None, end)
    rows = timed("decode into rows", lambda: pa.Table.from_batches(list(read_part(part, list(READ)))))
    taken = rows.select(["offset", "batch", "record"])
    taken = taken.append_column("time_ms", rows["at"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()))
    ordered = timed("put in order", lambda: in_order(taken))
    timed("fold", lambda: fold_records(fold, ordered))
    timed("rows of the tables", lambda: (event_rows("c", fold.moments), incident_rows("c", fold.ended)))
    return spent
