"""Random histories of the simulator, every invariant at every step, many seeds beside the tests' two hundred."""

from __future__ import annotations

import os
import time
from collections import Counter

from backends.simulator.many import fuzzed

ROUNDS = 20_000
SECONDS = 60
"""Virtual time of one seed."""


def run(rounds: int | None) -> int:
    """So many seeds, on all cores; prints each that went wrong, with the command that replays it. 0: none did."""
    count = ROUNDS if rounds is None else rounds
    jobs = len(os.sched_getaffinity(0))
    began = time.monotonic()
    steps = wrong = 0
    excuses: Counter[str] = Counter()
    for result in fuzzed(range(count), jobs, seconds=SECONDS):
        steps += result.steps
        excuses.update(lost.excuse for lost in result.lost)
        if result.failed:
            wrong += 1
            print(f"simulator: {result.error or result.broken[0]}\n  replay: {result.replay}", flush=True)
    took = time.monotonic() - began
    print(
        f"simulator: {count:,} seeds of {SECONDS} s of virtual time, {steps:,} steps, {took:.0f} s on {jobs} cores:"
        f" {wrong:,} broke an invariant"
    )
    for excuse, number in excuses.most_common():
        print(f"  {number:,} losses that are allowed: {excuse}")
    return 1 if wrong else 0
