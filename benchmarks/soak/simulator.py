"""Random histories of the simulator, every invariant at every step, many seeds beside those of the tests."""

from __future__ import annotations

import os
import time
from collections import Counter

from backends.simulator.fuzz_pool import fuzz_seeds
from benchmarks.soak import SoakOptions

ROUNDS = 20_000
SECONDS = 60
"""Virtual time of one seed."""


def run(options: SoakOptions) -> int:
    """Runs the seeds, by default on all cores; prints each that failed with the command that replays it.

    Returns 0 if none failed.
    """
    seeds = options.seeds(ROUNDS)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    began = time.monotonic()
    limit = float("inf") if options.seconds is None else began + options.seconds
    steps = wrong = done = 0
    excuses: Counter[str] = Counter()
    for result in fuzz_seeds(seeds, jobs, lambda: time.monotonic() >= limit, seconds=SECONDS):
        done += 1
        steps += result.steps
        excuses.update(lost.excuse for lost in result.lost)
        if result.failed:
            wrong += 1
            print(f"simulator: {result.error or result.broken[0]}\n  replay: {result.replay}", flush=True)
    took = time.monotonic() - began
    spent = sum(os.times()[:4])
    print(
        f"simulator: {done:,} seeds from {seeds.start:,} on, {SECONDS} s of virtual time each,"
        f" {steps:,} steps, {took:.0f} s in {jobs} processes, {spent:.0f} s of CPU: {wrong:,} broke an invariant"
    )
    for excuse, number in excuses.most_common():
        print(f"  {number:,} losses that are allowed: {excuse}")
    return 1 if wrong else 0
