"""What ``ktriage pipeline watch`` costs: the whole stream, and its stages one by one in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from backends.garbage_collection import without_collection
from benchmarks.pipeline.rolling_restarts import write_restarts
from pipeline.storage import StoragePath, storage_path
from pipeline.watch.fold_records import fold_records
from pipeline.watch.fold_state import dump_state, load_state
from pipeline.watch.incident_rows import event_rows, incident_rows
from pipeline.watch.log_part import ShippedPart, incident_records
from pipeline.watch.shipped_log import ShippedLog
from pipeline.watch.watch_progress import WatchProgress
from pipeline.watch.watch_query import WatchSettings, watch
from recovery.metadata_log.incident_fold import FoldState, IncidentFold

CLUSTERS = 2
MOST_BYTES = 64 * 2**20
EVERY_S = 1.0

Result = TypeVar("Result")


def watched_clusters(folder: Path, records: int) -> int:
    """Writes the metadata logs of the clusters, ``records`` in all; returns how many were written."""
    return sum(write_restarts(folder / f"c{seed}", records // CLUSTERS, seed) for seed in range(CLUSTERS))


def run_watch(spark: Any, folder: Path, out: StoragePath) -> int:
    """The whole stream with its tables; returns the number of rows that were read."""
    reports: list[WatchProgress] = []
    settings = WatchSettings(storage_path(str(folder)), out, EVERY_S, MOST_BYTES)
    watch(spark, settings, reports.append, _restarted, once=True)
    return sum(progress.records for progress in reports)


def _restarted(why: str) -> None:
    raise RuntimeError(f"a restart is in the time that is measured: {why}")


def stages(folder: Path, records: int) -> dict[str, float]:
    """Microseconds of CPU time for each record, by stage, without Spark: what the stages alone would allow."""
    count = write_restarts(folder / "c", records, 0)
    spent: dict[str, float] = {}

    def timed(name: str, run: Callable[[], Result]) -> Result:
        began = time.process_time()
        found = run()
        spent[name] = spent.get(name, 0.0) + (time.process_time() - began) / count * 1e6
        return found

    log = ShippedLog(folder / "c")
    end = timed("find whole batches", lambda: log.latest(None, 1 << 40))
    part = ShippedPart("c", folder / "c", None, end)
    read = timed("read", lambda: incident_records(part))
    fold = IncidentFold(FoldState())
    with without_collection():
        timed("fold", lambda: fold_records(fold, read))
        timed("state", lambda: _stored(fold))
        timed("rows of the tables", lambda: _rows(fold))
    return spent


def _stored(fold: IncidentFold) -> None:
    load_state(dump_state(fold.state))


def _rows(fold: IncidentFold) -> None:
    event_rows("c", fold.moments)
    incident_rows("c", fold.ended)
