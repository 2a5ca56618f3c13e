"""One job in a separate process, to measure its memory: ``python -m benchmarks.pipeline.jobs NAME …``."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from benchmarks.pipeline.generated_fleet import collect
from benchmarks.pipeline.watch_speed import run_watch, stages, watched_clusters
from console.cli.main import collect_seldom
from console.jobs.pipeline.snapshot_series import Series, SnapshotSettings
from pipeline.snapshot.observation import Observation
from pipeline.spark_session import SparkSettings, session
from pipeline.storage import StoragePath, storage_path

ANSWER_SECONDS = 240.0
CHANGED_AFTER_S = 10.0
"""Between a full snapshot and the changes."""


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def _cpu(pid: int) -> float:
    """Seconds of CPU time that the process has used, and those of its children that have ended; 0 if it has ended
    itself.
    """
    with suppress(OSError):
        return sum(int(field) for field in _stat(pid)[11:15]) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _cpu_of_tree(java: int) -> float:
    """Seconds of CPU time of this process and of Spark's. Children come first: one that ends meanwhile is counted
    by its parent.
    """
    return sum(_cpu(pid) for pid in (*reversed(_descendants(java)), java, os.getpid()))


def _descendants(pid: int) -> list[int]:
    """The process's children, and theirs: Spark's Python workers."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            parents[int(entry.name)] = int(_stat(int(entry.name))[1])
    found = [child for child, parent in parents.items() if parent == pid]
    return found + [other for child in found for other in _descendants(child)]


def _peak(pid: int) -> int:
    """The peak memory of the process, in bytes; 0 if it is ending."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def snapshot(bootstrap: str, out: StoragePath) -> dict[str, float]:
    """Of a cluster that another process serves a full snapshot and then the changes: seconds of wall and CPU time,
    bytes of the new files, rows; memory before the first (the program alone) and at the peak.
    """
    collect_seldom()
    backend = LiveBackend(ClientSettings(parse_addresses(bootstrap)))
    taking = SnapshotSettings(out, ANSWER_SECONDS, lambda: datetime.now(UTC), lambda: "bench", "0.1.0")
    figures: dict[str, float] = {}

    async def take(name: str, taking_one: Callable[[], Awaitable[Observation]]) -> None:
        size, used, began = _size(Path(out.path)), time.process_time(), time.monotonic()
        taken = await taking_one()
        figures[f"{name}_seconds"] = time.monotonic() - began
        figures[f"{name}_cpu"] = time.process_time() - used
        figures[f"{name}_bytes"] = _size(Path(out.path)) - size
        figures[f"{name}_rows"] = taken.changed

    async def both() -> None:
        try:
            figures["before"] = _peak(os.getpid())
            series = Series(backend, taking)
            await series.open()
            await take("full", lambda: series.full(series=True))
            figures["peak"] = _peak(os.getpid())
            await asyncio.sleep(CHANGED_AFTER_S)
            await take("changes", series.changes)
        finally:
            await backend.close()

    asyncio.run(both())
    return figures | {"peak_of_both": _peak(os.getpid())}


def collector(clusters: int, out: StoragePath, partitions: int) -> dict[str, float]:
    """Four hours of a collector of so many clusters, by their numbers."""
    hours = collect(out, clusters, partitions, 4)
    figures = {
        f"{number}_{name}": value
        for number, hour in enumerate(hours, 1)
        for name, value in hour._asdict().items()
    }
    return figures | {"peak": _peak(os.getpid())}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def watch(records: int, out: Path) -> dict[str, float]:
    """The whole stream over logs with so many records; Spark runs before it begins."""
    written = watched_clusters(out / "shipped", records)
    with session("benchmark watch", SparkSettings("local[2]", "2g")) as spark:
        spark.range(1000).selectExpr("sum(id)").collect()
        java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
        began, used = time.monotonic(), _cpu_of_tree(java)
        run_watch(spark, out / "shipped", storage_path(str(out / "out")))
        return {"seconds": time.monotonic() - began, "cpu": _cpu_of_tree(java) - used, "records": written}


def main(name: str, number: str, out: str, partitions: str = "20") -> None:
    """Runs the job and prints its figures. ``number``: the bootstrap servers of a
    snapshot, the records of the watch, the clusters of a collector, which have so many ``partitions``.
    """
    jobs: dict[str, Callable[[], dict[str, float]]] = {
        "watch-stages": lambda: stages(Path(out), int(number)),
        "watch": lambda: watch(int(number), Path(out)),
        "snapshot": lambda: snapshot(number, storage_path(out)),
        "collector": lambda: collector(int(number), storage_path(out), int(partitions)),
    }
    print(json.dumps(jobs[name]()))


if __name__ == "__main__":
    main(*sys.argv[1:5])
