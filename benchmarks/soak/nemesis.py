"""Recoveries of many partitions on real Kafka, with one fault in the middle of each."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import bench_cluster
from benchmarks.nemesis.recovery_under_fire import PARTITIONS, NemesisResult, RecoveryUnderFire
from benchmarks.soak import SoakOptions
from testbed.kafka import KafkaCluster
from testbed.kafka.connection import NoAnswer
from testbed.kafka.errors import TestbedError

ROUNDS = 50
PER_CLUSTER = 12
"""Recoveries on one cluster."""


def run(options: SoakOptions) -> int:
    """Runs the seeds; prints a line for each. 0 if nothing was wrong.

    With ``--record FILE`` each result is appended to the file, and a run that was stopped continues. A recovery
    that could not be prepared (a node ended, a wait timed out) is reported, and does not count.
    """
    began = time.monotonic()
    results = {} if options.record is None else recorded(options.record)
    seeds = [seed for seed in options.seeds(ROUNDS, first=1) if seed not in results]
    while seeds and (options.seconds is None or time.monotonic() - began < options.seconds):
        block = [seeds.pop(0) for _ in seeds[:PER_CLUSTER]]
        new_cluster = bench_cluster.new_cluster(print, cuttable_links=True)
        with new_cluster as cluster, tempfile.TemporaryDirectory() as directory:
            bench_cluster.fill(cluster, PARTITIONS)
            for done, seed in enumerate(block, 1):
                result = _one(cluster, seed, Path(directory))
                if result is None:
                    seeds[:0] = block[done:]
                    break
                results[seed] = result
                _print(result)
                if options.record is not None:
                    with options.record.open("a") as file:
                        file.write(json.dumps(vars(result)) + "\n")
    return _sum_up(list(results.values()))


def recorded(path: Path) -> dict[int, NemesisResult]:
    """The results in a record, by seed."""
    lines = path.read_text().splitlines() if path.exists() else ()
    return {result.seed: result for result in (NemesisResult(**json.loads(line)) for line in lines)}


def _one(cluster: KafkaCluster, seed: int, directory: Path) -> NemesisResult | None:
    try:
        return RecoveryUnderFire(cluster, seed, directory).run()
    except (TestbedError, NoAnswer, TimeoutError) as error:
        print(f"nemesis: seed {seed} could not be made: {error!r}"[:500], flush=True)
        return None


def _sum_up(results: list[NemesisResult]) -> int:
    wrong = sum(bool(result.wrong) for result in results)
    print(
        f"nemesis: {len(results)} recoveries of {PARTITIONS} partitions,"
        f" {sum(result.struck for result in results)} struck in the middle,"
        f" {sum(result.elected for result in results):,} reported as elected,"
        f" {sum(result.seconds for result in results):,.0f} s: {wrong} went wrong"
    )
    faults = Counter(result.fault for result in results)
    print(f"  {', '.join(f'{count} {fault}' for fault, count in faults.most_common())}")
    return 1 if wrong else 0


def _print(result: NemesisResult) -> None:
    led = ", ".join(f"{count} by {leader}" for leader, count in sorted(result.led.items()))
    then = f"{result.reordered} reordered and {result.led_then} led then" if result.struck else "never came"
    print(
        f"nemesis: seed {result.seed}: {result.fault}, {result.moment} ({then}): status {result.status},"
        f" {result.elected} reported as elected; led {led} (-1: nobody); {result.seconds:.0f} s,"
        f" {len(result.wrong)} wrong",
        flush=True,
    )
    for line in result.wrong[:5]:
        print(f"  {line}", flush=True)
