"""The areas that are measured, each with what it is compared with and its target."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from backends.simulator.scenario.files import BUILT_IN
from benchmarks.measure import ROOT, BenchmarkError
from benchmarks.pipeline.generated_fleet import (
    ALL_IN_SYNC,
    OFFLINE,
    ONE_IN_SYNC,
    ONE_IN_SYNC_ONE_ELIGIBLE,
    GeneratedSeries,
    crowded_rack_of,
    make_small_clusters,
)
from benchmarks.pipeline.process_tree import TreeFigures, measured
from benchmarks.pipeline.results_file import Section, load_now
from benchmarks.pipeline.side_by_side import (
    BARE,
    FIGURES_HEAD,
    MIB,
    START,
    Sides,
    check_rows,
    figures_row,
    job_command,
    over_bare,
    peer_command,
)
from benchmarks.wire.served_cluster import served
from pipeline.results import read_results
from pipeline.storage import storage_path

ONE_PERCENT = 0.01
MILLION = 1_000_000
FLAT = 1.1
"""The target: CPU time for each row may grow so much from the fewest to the most rows."""
SMALL_CLUSTERS, SMALL_PARTITIONS = 5_000, 20
WATCH_RATE = 150_000
"""The target: records of metadata logs a second, on two cores."""
STAGE_RECORDS = 500_000
SCENARIO = "partitions-200000"
WORKLOAD_ENDS, GROWS_ON = "stop: 30", "stop: 6000"
"""In the scenario, so that one topic of 100 partitions grows after the first snapshot too."""
JOB_SECONDS = 1500


class Asked(NamedTuple):
    """What is measured, and how often; files go below ``directory``. ``partitions``: of the fixes."""

    directory: Path
    millions: tuple[int, ...]
    rounds: int
    records: int
    partitions: int
    small_clusters: int


def plan(asked: Asked) -> Section:
    """The plan beside a bare read of the same columns."""
    load, lines, missed = load_now(), [*_PLAN_TEXT.strip().splitlines(), "", *FIGURES_HEAD], list[str]()
    per_row: dict[int, float] = {}
    for millions in asked.millions:
        found = _plan_sides(asked, millions)
        for name, beside in (
            ("1 % offline", BARE),
            ("1 % offline and 5 x 200 changes", BARE),
            ("all offline", "bare, all offline"),
        ):
            if name != "all offline":
                missed += [f"{millions} million, {over}" for over in over_bare(found, name, beside)]
            lines.append(figures_row(f"plan, {millions} M, {name}", found[name], found[beside]))
        lines += [figures_row(f"{name}, {millions} M", found[name]) for name in (BARE, "bare, all offline")]
        if millions == min(asked.millions):
            lines.append(figures_row(START, found[START]))
        per_row[millions] = found["1 % offline"].cpu / millions
    growth = per_row[max(per_row)] / per_row[min(per_row)]
    if growth > FLAT:
        missed.append(f"CPU time for each row grows {growth:.2f} times with the rows (target: {FLAT})")
    return Section("Plan", lines, missed, load)


_PLAN_TEXT = """
Partitions have three replicas; one in twenty has diverged logs, one in ten a replica that did not answer.
*plan* is `ktriage pipeline plan` with its summary. *bare* is a process that starts Spark with the same settings
and lets it read, from the same Parquet files, given their names and the schema, every row of the columns and
nested fields that the plan may need, and write them to `noop`: no log of Delta, no search for snapshots, no
changes merged, and nothing computed. *start* starts Spark and counts a thousand numbers: it is in both.
"""


def _plan_sides(asked: Asked, millions: int) -> dict[str, TreeFigures]:
    folder = asked.directory / f"plan-{millions}"
    full, changed, offline = (folder / name for name in ("full", "changed", "offline"))
    for lake, share in ((full, ONE_PERCENT), (changed, ONE_PERCENT), (offline, 1.0)):
        series = GeneratedSeries(storage_path(str(lake)), "fleet", millions * MILLION, share)
        series.full()
        if lake == changed:
            for _ in range(5):
                series.changes(200, (ALL_IN_SYNC, OFFLINE))
    aggressive = ("--strategy", "aggressive")
    commands = {
        "1 % offline": job_command("plan", full, *aggressive),
        "1 % offline and 5 x 200 changes": job_command("plan", changed, *aggressive),
        BARE: peer_command("bare-plan", full),
        "all offline": job_command("plan", offline, *aggressive),
        "bare, all offline": peer_command("bare-plan", offline),
        START: peer_command("start", full),
    }
    return Sides(folder, commands).measured(asked.rounds if millions == 1 else 1)


def small(asked: Asked) -> Section:
    """The plan of many small clusters beside DuckDB."""
    load, lake = load_now(), asked.directory / "lake"
    make_small_clusters(storage_path(str(lake)), asked.small_clusters, SMALL_PARTITIONS)
    sides = {
        "plan": job_command("plan", lake),
        BARE: peer_command("bare-plan", lake),
        "DuckDB": peer_command("duckdb-plan", lake),
        START: peer_command("start", lake),
    }
    found = Sides(asked.directory, sides).measured(asked.rounds)
    check_rows(asked.directory / "out-plan-0" / "plans", found["DuckDB"])
    lines = [
        f"{asked.small_clusters:,} clusters of {SMALL_PARTITIONS} partitions, of which one is offline.",
        *_SMALL_TEXT.strip().splitlines(),
        "",
        *_table("plan", found),
    ]
    return Section("Plan of small clusters", lines, over_bare(found, "plan"), load)


_SMALL_TEXT = """
All clusters are in one file, as one collector writes them.
*DuckDB* chooses a leader for each partition that is offline, by two threads: no candidates, preconditions, loss
ranges, reasons, observations or checks of rows, and no table is written.
"""


def _table(job: str, found: Mapping[str, TreeFigures]) -> Iterator[str]:
    """The table of a job beside the barest job, DuckDB and Spark's start."""
    yield from FIGURES_HEAD
    yield figures_row(job, found[job], found.get(BARE))
    yield from (figures_row(name, found[name]) for name in (BARE, "DuckDB", START) if name in found)


def exposure(asked: Asked) -> Section:
    """Exposure beside DuckDB's counts of the same failures."""
    load, lake = load_now(), asked.directory / "lake"
    GeneratedSeries(storage_path(str(lake)), "fleet", MILLION, 0.0).full()
    sides = {
        "exposure": job_command("exposure", lake),
        BARE: peer_command("bare-exposure", lake),
        "DuckDB": peer_command("duckdb-exposure", lake),
        START: peer_command("start", lake),
    }
    found = Sides(asked.directory, sides).measured(asked.rounds)
    out = asked.directory / "out-exposure-0"
    check_rows((out / "exposures", out / "exposed_topics"), found["DuckDB"])
    lines = [
        *_EXPOSURE_TEXT.strip().splitlines(),
        "",
        *_table("exposure", found),
    ]
    return Section("Exposure", lines, over_bare(found, "exposure"), load)


_EXPOSURE_TEXT = """
1 M partitions with three replicas on 300 brokers in five racks, all online. *DuckDB* counts the same failures,
pairs and topics in the same files, by two threads, in a process of its own: it checks no row, looks for no
duplicates, and writes no table. Both find as many rows.
"""


def fixes(asked: Asked) -> Section:
    """Fixes beside DuckDB's count of the partitions that need one."""
    load, lake = load_now(), asked.directory / "lake"
    GeneratedSeries(storage_path(str(lake)), "fleet", asked.partitions, 0.0, crowded_rack_of).full()
    sides = {
        "fixes": job_command("fixes", lake),
        "DuckDB": peer_command("duckdb-fixes", lake),
        START: peer_command("start", lake),
    }
    found = Sides(asked.directory, sides).measured(asked.rounds)
    check_rows(asked.directory / "out-fixes-0" / "fixes", found["DuckDB"])
    lines = [
        f"{asked.partitions:,} partitions with three replicas; {int(found['DuckDB'].output):,} need a fix.",
        *_FIXES_TEXT.strip().splitlines(),
        "",
        *_table("fixes", found),
    ]
    return Section("Fixes", lines, [], load)


_FIXES_TEXT = """
300 brokers in five racks, of which six neighbours are in one rack. *DuckDB* only finds these partitions in the same
files, by two threads: it chooses no broker, puts no fix in an order, checks no row, looks for no duplicates, and
writes no table, so that there is no target. Both find as many partitions.
"""

CHANGES, CHANGED_ROWS = 11, 10_000


def history(asked: Asked) -> Section:
    """History beside DuckDB's incidents of the same snapshots."""
    load, lake = load_now(), asked.directory / "lake"
    series = GeneratedSeries(storage_path(str(lake)), "fleet", MILLION, ONE_PERCENT)
    series.full()
    for _ in range(CHANGES):
        series.changes(CHANGED_ROWS, (ALL_IN_SYNC, OFFLINE, ONE_IN_SYNC, ONE_IN_SYNC_ONE_ELIGIBLE))
    series.full()
    sides = {
        "history": job_command("history", lake),
        BARE: peer_command("bare-history", lake),
        "DuckDB": peer_command("duckdb-history", lake),
        START: peer_command("start", lake),
    }
    found = Sides(asked.directory, sides).measured(asked.rounds)
    check_rows(asked.directory / "out-history-0" / "incidents", found["DuckDB"])
    lines = [
        *_HISTORY_TEXT.strip().splitlines(),
        "",
        *_table("history", found),
    ]
    return Section("History", lines, over_bare(found, "history"), load)


_HISTORY_TEXT = f"""
1 M partitions, a minute between snapshots: a full one, {CHANGES} with {CHANGED_ROWS:,} changed partitions, and
a full one. *DuckDB* finds the incidents with their bounds and outcomes in the same files, by two threads: it
knows no gaps, chains or deleted partitions, checks no row, looks for no duplicates, has no events and no
journal, and writes no table. Both find as many incidents.
"""


SNAPSHOTS, CONTINUED_PARTITIONS = 12, 200_000


def continued(asked: Asked) -> Section:
    """History with one snapshot more: a run that continues an earlier one, beside reading all of them."""
    load, lake = load_now(), asked.directory / "lake"
    series = GeneratedSeries(storage_path(str(lake)), "fleet", CONTINUED_PARTITIONS, ONE_PERCENT)
    for _ in range(SNAPSHOTS):
        series.full()
    out = asked.directory / "out"
    command = [word.replace("{out}", str(out)) for word in job_command("history", lake)]
    found = {"first run, 12 snapshots": measured(command, asked.directory)}
    series.full()
    found["one snapshot more, continued"] = measured(command, asked.directory)
    found["one snapshot more, read whole"] = measured([*command, "--full"], asked.directory)
    found[START] = measured(peer_command("start", lake), asked.directory)
    counts = [run.summary["counts"] for run in read_results(storage_path(str(out)))]
    if counts[-2] != counts[-1]:
        raise BenchmarkError(f"the continued run found {counts[-2]}, the whole one {counts[-1]}")
    lines = [
        *_CONTINUED_TEXT.strip().splitlines(),
        "",
        "| | wall | CPU | read | memory: command + Java + workers |",
        "|:---|---:|---:|---:|---:|",
        *(_continued_row(name, one) for name, one in found.items()),
    ]
    return Section("History, continued", lines, [], load)


_CONTINUED_TEXT = f"""
{CONTINUED_PARTITIONS:,} partitions, {SNAPSHOTS} full snapshots, then one more, each with 1 % of the partitions
offline at random. One run each. *read* is what all processes of the command read from files, Spark's own jars too
(see *start*). Both runs count the same incidents.
"""


def _continued_row(name: str, found: TreeFigures) -> str:
    memory = " + ".join(f"{size / MIB:,.0f}" for size in (found.command, found.java, found.workers))
    return (
        f"| {name} | {found.seconds:.1f} s | {found.cpu:.1f} s | {found.read / MIB:,.0f} MiB | {memory} MiB |"
    )


def snapshot(asked: Asked) -> Section:
    """A full snapshot of a simulated cluster, and a small change of it."""
    load = load_now()
    scenario = (BUILT_IN / f"{SCENARIO}.yaml").read_text(encoding="utf-8")
    assert WORKLOAD_ENDS in scenario
    scenario = scenario.replace(WORKLOAD_ENDS, GROWS_ON)
    runs = []
    for number in range(asked.rounds):
        with served(scenario, asked.directory, native=False) as bootstrap:
            runs.append(_figures("snapshot", bootstrap, f"{asked.directory}/taken-{number}"))
    found = {name: median(run[name] for run in runs) for name in runs[0]}
    lines = [
        "A cluster of 200,000 partitions with three replicas and no GetReplicaLogInfo, which another process",
        "serves on the same cores: its CPU time and memory are in no figure, and its answers are in the wall time.",
        "Between the two snapshots one topic of 100 partitions is written to. Both ask for all partitions.",
        "",
        "| | rows | wall | CPU | bytes written |",
        "|:---|---:|---:|---:|---:|",
        *(
            f"| {name} | {found[f'{key}_rows']:,.0f} | {found[f'{key}_seconds']:.1f} s"
            f" | {found[f'{key}_cpu']:.1f} s | {found[f'{key}_bytes']:,.0f} |"
            for name, key in (("full", "full"), ("changes, 10 s later", "changes"))
        ),
        "",
        f"Memory: {found['before'] / MIB:,.0f} MiB before the first snapshot, {found['peak'] / MIB:,.0f} MiB at",
        f"the peak of the full snapshot, {found['peak_of_both'] / MIB:,.0f} MiB at the peak of both.",
    ]
    return Section("Snapshot", lines, [], load)


COLLECTED, COLLECTED_PARTITIONS = 500, 1000
HOURS = (1, 2, 3, 4)


def collector(asked: Asked) -> Section:
    """What the writes of a collector of many clusters cost, hour by hour."""
    load = load_now()
    found = _figures("collector", str(COLLECTED), f"{asked.directory}/lake", str(COLLECTED_PARTITIONS))
    lines = [
        f"{COLLECTED} clusters of {COLLECTED_PARTITIONS:,} partitions at 60 s, four hours, written as by",
        "`snapshot --clusters`; no cluster is asked. Each hour a full snapshot of all and the merging of small",
        "files; each minute one cluster in fifty has two changed partitions. Files that were merged are deleted",
        "after a day. The rows of all clusters are alike, so that they take fewer bytes than real ones.",
        "",
        "| | CPU a minute | files | MiB |",
        "|:---|---:|---:|---:|",
        *(
            f"| hour {hour} | {found[f'{hour}_seconds'] / 60:.2f} s | {found[f'{hour}_files']:,.0f}"
            f" | {found[f'{hour}_bytes'] / MIB:,.1f} |"
            for hour in HOURS
        ),
        "",
        f"Memory: {found['peak'] / MIB:,.0f} MiB at the peak.",
    ]
    return Section("Collector of many clusters", lines, [], load)


def watch(asked: Asked) -> Section:
    """Records of metadata logs a second, and the cost of each stage alone."""
    load = load_now()
    figures = _figures("watch", str(asked.records), f"{asked.directory}/watched")
    alone = _figures("watch-stages", str(STAGE_RECORDS), f"{asked.directory}/stages")
    records, rate = figures["records"], figures["records"] / figures["seconds"]
    each = "; ".join(f"{name} {spent:.2f}" for name, spent in alone.items())
    spent = figures["cpu"] / records * 1e6
    lines = [
        f"- metadata logs of two clusters with broker restarts, {records:,.0f} records, from the first to the",
        f"  last in the tables: {figures['seconds']:.0f} s, {rate:,.0f} records a second,",
        f"  {spent:.1f} µs of CPU time a record",
        f"- its stages alone, in one process, {STAGE_RECORDS:,} records, in µs of CPU time a record: {each};",
        f"  together {sum(alone.values()):.1f}",
    ]
    missed = [f"{rate:,.0f} records a second (target: {WATCH_RATE:,})"] if rate < WATCH_RATE else []
    return Section("Watch", lines, missed, load)


def _figures(*words: str) -> dict[str, float]:
    """What a job of :mod:`benchmarks.pipeline.jobs` prints. Raises BenchmarkError."""
    argv = [sys.executable, "-m", "benchmarks.pipeline.jobs", *words]
    try:
        ended = subprocess.run(
            argv, cwd=ROOT, capture_output=True, text=True, timeout=JOB_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"{' '.join(words)} did not end within {JOB_SECONDS} s") from None
    if ended.returncode != 0:
        raise BenchmarkError(f"{' '.join(words)}: {(ended.stderr.strip().splitlines() or ['it failed'])[-1]}")
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    sys.stderr.write(f"{' '.join(words[:2])}: {found}\n")
    return found


AREAS: dict[str, Callable[[Asked], Section]] = {
    "plan": plan,
    "exposure": exposure,
    "fixes": fixes,
    "history": history,
    "continued": continued,
    "small": small,
    "watch": watch,
    "snapshot": snapshot,
    "collector": collector,
}
"""The most important first."""
