"""One job in a separate process, to measure its memory: ``python -m benchmarks.pipeline.jobs NAME …``."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from benchmarks.pipeline.duckdb_exposure import exposure as duckdb_exposure
from benchmarks.pipeline.generated_fleet import BROKERS, rack_of
from benchmarks.pipeline.watch_speed import run_watch, stages, watched_clusters
from console.operations.history.snapshot_series import Series, SnapshotSettings
from pipeline.drills.drill_grid import Grid
from pipeline.drills.drill_job import run_grid
from pipeline.drills.incident import IncidentShape
from pipeline.drills.recovery_arms import Arm
from pipeline.exposure import exposure_job
from pipeline.plan import plan_job
from pipeline.plan.plan_tasks import READ, UNREAD
from pipeline.results import RunTarget
from pipeline.snapshot.input_splits import Reading
from pipeline.snapshot.state_sources import Sources, find, rows_of_snapshots
from pipeline.spark_session import SparkSettings, session
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.schemas import REPLICA
from recovery.ranking import Ranking
from recovery.strategy import Strategy

CHOICE = """
    SELECT topic, partition,
           list_last(list_sort(list_transform(list_filter(replicas, lambda r: r.last_epoch IS NOT NULL),
                lambda r: {'epoch': r.last_epoch, 'end': r.log_end, 'broker': r.broker}))).broker AS leader
    FROM read_parquet(?)"""


def plan(spark: Any, sources: Sources, out: StoragePath) -> None:
    """The whole job with its summary: duplicates, flaws, ranking, strategy, preconditions, loss ranges."""
    plan_job.outcome(
        spark, sources, Ranking.LAST_RECORD, Strategy.AGGRESSIVE, RunTarget(out, "run"), everything=False
    )


def exposure(spark: Any, sources: Sources, out: StoragePath) -> None:
    """The whole job with its summary."""
    exposure_job.outcome(spark, sources, RunTarget(out, "run"))


def bare(spark: Any, sources: Sources, out: StoragePath) -> None:  # noqa: ARG001  # nothing is written
    """Spark reads the columns that the plan reads, of every row, and writes them nowhere."""
    rows = rows_of_snapshots(spark, ((chain.root, chain.observations) for chain in sources.chains))
    names = Reading(READ, UNREAD, leaderless=False).schema.names
    parts = [f"replicas.{field.name} AS r_{field.name}" for field in REPLICA if field.name not in UNREAD]
    rows = rows.select("replicas", *(name for name in names if name != "replicas")).selectExpr(
        *(name for name in names if name != "replicas"), *parts
    )
    rows.write.format("noop").mode("overwrite").save()


def duck(sources: Sources) -> int:
    """The bare choice by DuckDB on the same files, with two threads; returns the number of rows."""
    import duckdb  # noqa: PLC0415  # a development tool

    connection = duckdb.connect(config={"threads": 2})
    files = [file.place.path for file in sources.files]
    table = connection.execute(f"CREATE TABLE chosen AS {CHOICE}", [files])
    del table
    return int(connection.execute("SELECT count(*) FROM chosen").fetchall()[0][0])


def duck_exposure(sources: Sources) -> int:
    """The counts of the exposure job; returns how many failures there are."""
    racks = {broker: rack_of(broker) for broker in range(BROKERS)}
    return len(duckdb_exposure([file.place.path for file in sources.files], racks))


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


def drill(workers: int, out: StoragePath, seeds: int) -> dict[str, float]:
    """Every shape and arm with so many seeds for each pair; each worker has run one task before."""
    arms = tuple(arm.value for arm in Arm)
    with session("benchmark drill", SparkSettings(f"local[{workers}]", "1g")) as spark:
        run_grid(spark, Grid(("kills",), arms[:1], (1,), 0, 2 * workers), RunTarget(out, "warm"))
        grid = Grid(tuple(shape.value for shape in IncidentShape), arms, (1, 2), 0, seeds)
        began = time.monotonic()
        run_grid(spark, grid, RunTarget(out, "run"))
        return {"seconds": time.monotonic() - began, "incidents": grid.incidents}


def snapshot(scenario: str, out: StoragePath) -> dict[str, float]:
    """A full snapshot of a simulated cluster: memory before it (the simulation alone), and at the peak."""
    backend = SimulatorBackend(read(scenario), 1)
    taking = SnapshotSettings(out, 30.0, lambda: datetime.now(UTC), lambda: "bench", "0.1.0")

    async def take() -> tuple[int, float, int]:
        await backend.open()
        before, began = _peak(os.getpid()), time.monotonic()
        taken = await Series(backend, taking).full()
        return before, time.monotonic() - began, taken.partitions

    before, seconds, partitions = asyncio.run(take())
    return {"seconds": seconds, "before": before, "peak": _peak(os.getpid()), "partitions": partitions}


def main(name: str, lake: str, out: str, seeds: str = "20") -> None:
    """Runs the job and prints seconds and bytes; of a drill, ``lake`` is the number of workers, of a snapshot the
    scenario, of the watch the number of records.
    """
    if name == "watch-stages":
        print(json.dumps(stages(Path(out), int(lake))))
        return
    if name == "snapshot":
        print(json.dumps(snapshot(lake, storage_path(out))))
        return
    if name == "drill":
        print(json.dumps(drill(int(lake), storage_path(out), int(seeds))))
        return
    if name.startswith("duckdb"):
        began = time.monotonic()
        jobs = {"duckdb": duck, "duckdb-exposure": duck_exposure}
        jobs[name](find([storage_path(lake)]))
        figures = {"seconds": time.monotonic() - began, "cpu": time.process_time()}
    else:
        watched = Path(out) / "shipped"
        records = watched_clusters(watched, int(lake)) if name == "watch" else 0
        with session(f"benchmark {name}", SparkSettings("local[2]", "2g")) as spark:
            spark.range(1000).selectExpr("sum(id)").collect()
            java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
            began = time.monotonic()
            used = _cpu_of_tree(java)
            spark_jobs = {"plan": plan, "bare": bare, "exposure": exposure}
            if name == "watch":
                run_watch(spark, watched, storage_path(out) / "out")
            else:
                spark_jobs[name](spark, find([storage_path(lake)]), storage_path(out))
            workers = _descendants(java)
            figures = {"seconds": time.monotonic() - began}
            figures["cpu"] = _cpu_of_tree(java) - used
            figures["peak_java"] = _peak(java)
            figures["peak_workers"] = sum(_peak(pid) for pid in workers)
            figures["heap"] = spark._jvm.java.lang.Runtime.getRuntime().totalMemory()
        figures["records"] = records
    figures["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:5])
