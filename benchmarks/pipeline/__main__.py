"""The pipeline's speed: ``python -m benchmarks.pipeline [--millions 1 3 10] [--rounds N]``.

Each job runs in a separate process on local[2]; the medians go to ``benchmarks/results/pipeline.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.measure import ROOT
from benchmarks.pipeline.generated_fleet import make
from pipeline.storage import storage_path
from testbed.kafka.java import java_version

RESULTS = ROOT / "benchmarks" / "results" / "pipeline.md"
NAMES = ("plan", "bare", "duckdb")
SCENARIO = "partitions-200000"
LIMIT = 4.0
"""The target: CPU time of the plan by that of the bare read, where every partition is offline."""
EXPOSURE_LIMIT = 2.0
"""The target: CPU time of exposure by that of DuckDB for the same counts."""
LIMIT_SECONDS = 1800
WATCH_RATE = 150_000
"""The target: records of metadata logs a second, on two cores."""
STAGE_RECORDS = 500_000
MIB = 2**20

Figures = Mapping[str, float]


def main() -> int:
    """Runs everything and writes the results; 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline")
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 3, 10])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--records", type=int, default=10_000_000, help="of the metadata logs of watch")
    asked = parser.parse_args()
    jobs: dict[int, dict[str, Figures]] = {}
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    with tempfile.TemporaryDirectory(prefix="ktriage-bench-") as directory:
        for millions in asked.millions:
            lake = str(Path(directory) / f"lake-{millions}")
            make(storage_path(lake), "fleet", millions * 1_000_000)
            jobs[millions] = {name: _job(name, lake, directory, asked.rounds) for name in NAMES}
            online = str(Path(directory) / f"online-{millions}")
            make(storage_path(online), "fleet", millions * 1_000_000, online=True)
            for name in ("exposure", "duckdb-exposure"):
                jobs[millions][name] = _job(name, online, directory, asked.rounds)
        drills = {workers: _drill(workers, asked.seeds, directory) for workers in (1, 2)}
        taken = _run("snapshot", SCENARIO, f"{directory}/taken")
        watched = _run("watch", str(asked.records), f"{directory}/watched")
        stages = _run("watch-stages", str(STAGE_RECORDS), f"{directory}/stages")
    missed = [*_missed(jobs), *_watch_missed(watched)]
    RESULTS.parent.mkdir(exist_ok=True)
    measured = MeasuredJob(jobs, drills, taken, watched, stages, asked.rounds, load, missed)
    RESULTS.write_text("\n".join(_lines(measured)) + "\n")
    _say(f"results: {RESULTS}")
    for line in missed:
        _say(f"missed: {line}")
    return 1 if missed else 0


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def _job(name: str, lake: str, directory: str, rounds: int) -> Figures:
    runs = []
    for number in range(rounds):
        out = f"{directory}/out-{name}-{Path(lake).name}-{number}"
        runs.append(_run(name, lake, out))
        _say(f"{name} on {Path(lake).name}: {runs[-1]['seconds']:.1f} s")
    return {key: median(run[key] for run in runs) for key in runs[0]}


def _drill(workers: int, seeds: int, directory: str) -> Figures:
    figures = _run("drill", str(workers), f"{directory}/drill-{workers}", str(seeds))
    _say(f"drill with {workers} workers: {figures['incidents'] / figures['seconds']:.0f} incidents a second")
    return figures


def _run(*words: str) -> dict[str, float]:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.pipeline.jobs", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {ended.stderr.strip().splitlines()[-1]}")
    figures: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return figures


def _missed(jobs: Mapping[int, Mapping[str, Figures]]) -> list[str]:
    found = []
    for millions, figures in jobs.items():
        ratio = figures["plan"]["cpu"] / figures["bare"]["cpu"]
        if ratio > LIMIT:
            found.append(
                f"{millions} million: {ratio:.2f} times the CPU time of the bare read (target: {LIMIT})"
            )
        ratio = figures["exposure"]["cpu"] / figures["duckdb-exposure"]["cpu"]
        if ratio > EXPOSURE_LIMIT:
            found.append(
                f"{millions} million: exposure takes {ratio:.2f} times DuckDB's CPU (target: {EXPOSURE_LIMIT})"
            )
    few, many = min(jobs), max(jobs)
    growth = (jobs[many]["plan"]["seconds"] / many) / (jobs[few]["plan"]["seconds"] / few)
    if growth > 1:
        found.append(f"time per million grows {growth:.2f} times from {few} to {many} million")
    return found


def _watch_missed(watched: Figures) -> list[str]:
    rate = watched["records"] / watched["seconds"]
    if rate >= WATCH_RATE:
        return []
    return [f"watch: {rate:,.0f} records a second (target: {WATCH_RATE:,})"]


def _watch_lines(watched: Figures, stages: Figures) -> Iterator[str]:
    records, seconds = watched["records"], watched["seconds"]
    alone = "; ".join(f"{name} {spent:.1f}" for name, spent in stages.items())
    yield (
        f"- watch over two metadata logs with {records:,.0f} records: {seconds:.0f} s,"
        f" {records / seconds:,.0f} records a second, {watched['cpu'] / records * 1e6:.0f} µs of CPU a record."
        f" Its stages alone, in one process, in µs of CPU a record: {alone}; together {sum(stages.values()):.1f}"
    )


def _memory(figures: Figures) -> str:
    return f"{figures['peak_java'] / MIB:,.0f} + {figures['peak_workers'] / MIB:,.0f} MiB"


class MeasuredJob(NamedTuple):
    """Figures by millions and job, of the drills by workers, of the snapshot, and of the watch and its stages."""

    jobs: Mapping[int, Mapping[str, Figures]]
    drills: Mapping[int, Figures]
    taken: Figures
    watched: Figures
    stages: Figures
    rounds: int
    load: str
    missed: list[str]


def _lines(measured: MeasuredJob) -> Iterator[str]:
    jobs, drills, taken, watched, stages, rounds, load, missed = measured
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("pyspark", "pyarrow", "duckdb"))
    yield "# The pipeline"
    yield ""
    yield f"{datetime.now(UTC):%Y-%m-%d}; Java {java_version()}, Python {sys.version.split()[0]}, {versions};"
    cores = len(os.sched_getaffinity(0))
    yield f"{cores} cores, load average at the start {load}; local[2], {rounds} rounds, medians."
    yield ""
    yield "Every partition has three replicas; one in twenty has diverged logs, one in ten a replica that did not"
    yield "answer. Everything is offline, except for *exposure*, where everything is online on 300 brokers in five"
    yield "racks. A job is measured whole in a running session: it finds the snapshots, computes, and makes the"
    yield "summary. *bare*: it finds the snapshots, and Spark reads the columns that the plan reads and writes them"
    yield "to noop. *DuckDB* makes only the choice of the plan."
    yield ""
    yield "CPU time, also of *exposure*, is that of the driver, Java and the Python workers. *DuckDB* beside it"
    yield "counts the same failures, pairs and topics, and checks and writes nothing. Memory is the peak of the"
    yield "plan: Java's plus the workers'."
    yield ""
    yield (
        "| partitions | plan | a million | bare | CPU, plan | bare | ratio | DuckDB | exposure | CPU, exposure"
        " | DuckDB | memory |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for millions, figures in jobs.items():
        plan, bare, exposed = figures["plan"], figures["bare"], figures["exposure"]
        yield (
            f"| {millions},000,000 | {plan['seconds']:.1f} s | {plan['seconds'] / millions:.1f} s"
            f" | {bare['seconds']:.1f} s | {plan['cpu']:.0f} s | {bare['cpu']:.0f} s"
            f" | {plan['cpu'] / bare['cpu']:.2f} | {figures['duckdb']['seconds']:.1f} s"
            f" | {exposed['seconds']:.1f} s | {exposed['cpu']:.0f} s | {figures['duckdb-exposure']['cpu']:.0f} s"
            f" | {_memory(plan)} |"
        )
    yield ""
    for workers, drilled in drills.items():
        rate = drilled["incidents"] / drilled["seconds"]
        yield f"- drills with {workers} workers: {rate:.0f} incidents a second"
    before, peak = taken["before"] / MIB, taken["peak"] / MIB
    yield (
        f"- a full snapshot of {taken['partitions']:,.0f} simulated partitions with three replicas each:"
        f" {taken['seconds']:.0f} s; memory was {before:,.0f} MiB with the simulation alone, and"
        f" {peak:,.0f} MiB at the peak"
    )
    yield from _watch_lines(watched, stages)
    yield ""
    if missed:
        yield from (f"- **missed**: {line}" for line in missed)
    else:
        yield f"At most {LIMIT} times the CPU time of the bare read, and time per million does not grow: met."


if __name__ == "__main__":
    sys.exit(main())
