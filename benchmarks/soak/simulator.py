"""Random histories of the simulator, every invariant at every step, many seeds beside those of the tests."""

from __future__ import annotations

import os
from collections import Counter

from benchmarks.soak import SoakOptions, run_seeds
from testbed.histories.random_histories import HistoryResult

ROUNDS = 20_000
SECONDS = 60
"""Virtual time of one seed."""


def run(options: SoakOptions) -> int:
    """Runs the seeds; 0 if none failed."""
    seeds = options.seeds(ROUNDS)
    steps = 0
    excuses: Counter[str] = Counter()

    def take(result: HistoryResult) -> None:
        nonlocal steps
        steps += result.steps
        excuses.update(lost.excuse for lost in result.lost)

    ran = run_seeds("simulator", options, seeds, take, virtual_seconds=SECONDS)
    spent = sum(os.times()[:4])
    print(
        f"simulator: {ran.done:,} seeds from {seeds.start:,} on, {SECONDS} s of virtual time each,"
        f" {steps:,} steps, {ran.seconds:.0f} s in {ran.jobs} processes, {spent:.0f} s of CPU:"
        f" {ran.wrong:,} broke an invariant"
    )
    for excuse, number in excuses.most_common():
        print(f"  {number:,} losses that are allowed: {excuse}")
    return 1 if ran.wrong else 0
