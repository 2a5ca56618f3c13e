"""Random incidents with an operator: what the live adapter reads, judges and elects is held against the truth."""

from __future__ import annotations

import os
import time

from backends.simulator.fuzz_pool import fuzz_seeds
from backends.simulator.incident_fuzz import INCIDENT_SECONDS
from backends.simulator.invariants.verdict_soundness import VerdictCounts
from benchmarks.soak import SoakOptions

ROUNDS = 2_000


def run(options: SoakOptions) -> int:
    """Runs the seeds, by default on all cores; prints each that failed with the command that replays it.

    Returns 0 if none failed.
    """
    seeds = options.seeds(ROUNDS)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    began = time.monotonic()
    limit = float("inf") if options.seconds is None else began + options.seconds
    counts = VerdictCounts()
    wrong = done = 0
    results = fuzz_seeds(
        seeds, jobs, lambda: time.monotonic() >= limit, seconds=INCIDENT_SECONDS, operator=True
    )
    for result in results:
        done += 1
        counts.add(result.verdicts)
        if result.failed:
            wrong += 1
            print(f"operator: {result.error or result.broken[0]}\n  replay: {result.replay}", flush=True)
    print(
        f"operator: {done:,} incidents from seed {seeds.start:,} on, {time.monotonic() - began:.0f} s;"
        f" {counts.looks:,} looks, {counts.looks_refused:,} of them at a cluster that did not answer,"
        f" {counts.overtaken:,} partitions that changed meanwhile, {counts.judged:,} verdicts,"
        f" {counts.elected:,} elections: {wrong:,} incidents broke a promise"
    )
    return 1 if wrong else 0
