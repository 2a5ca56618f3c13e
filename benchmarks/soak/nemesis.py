"""Recoveries of many partitions on real Kafka, with one fault in the middle of each."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import bench_cluster
from benchmarks.nemesis.recovery_under_fire import NemesisResult, RecoveryUnderFire
from benchmarks.soak import SoakOptions

ROUNDS = 50
PARTITIONS = 300


def run(options: SoakOptions) -> int:
    """Runs the seeds on one cluster; prints a line for each. 0 if nothing was wrong."""
    began = time.monotonic()
    results: list[NemesisResult] = []
    with bench_cluster.new_cluster(print) as cluster, tempfile.TemporaryDirectory() as directory:
        bench_cluster.fill(cluster, PARTITIONS)
        for seed in options.seeds(ROUNDS, first=1):
            if options.seconds is not None and time.monotonic() - began > options.seconds:
                break
            result = RecoveryUnderFire(cluster, PARTITIONS, seed, Path(directory)).run()
            results.append(result)
            _print(result)
    faults = Counter(result.fault for result in results)
    wrong = sum(bool(result.wrong) for result in results)
    print(
        f"nemesis: {len(results)} recoveries of {PARTITIONS} partitions,"
        f" {sum(result.in_time for result in results)} faults while the tool ran,"
        f" {sum(result.elected for result in results):,} reported as elected,"
        f" {time.monotonic() - began:.0f} s: {wrong} went wrong"
    )
    print(f"  {', '.join(f'{count} {fault}' for fault, count in faults.most_common())}")
    return 1 if wrong else 0


def _print(result: NemesisResult) -> None:
    led = ", ".join(f"{count} by {leader}" for leader, count in sorted(result.led.items()))
    print(
        f"nemesis: seed {result.seed}: {result.fault}{'' if result.in_time else ' (too late)'}:"
        f" status {result.status}, {result.elected} reported as"
        f" elected; led {led} (-1: nobody); {result.seconds:.0f} s, {len(result.wrong)} wrong",
        flush=True,
    )
    for line in result.wrong[:5]:
        print(f"  {line}", flush=True)
