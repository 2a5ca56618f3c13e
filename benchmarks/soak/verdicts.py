"""Random incidents of the simulator: every verdict on acknowledged records held against what was acknowledged."""

from __future__ import annotations

import os
import time

from backends.simulator.fuzz_pool import fuzz_seeds
from backends.simulator.incident_fuzz import INCIDENT_SECONDS
from backends.simulator.invariants.verdict_soundness import VerdictCounts
from benchmarks.soak import SoakOptions

ROUNDS = 20_000


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
        seeds, jobs, lambda: time.monotonic() >= limit, seconds=INCIDENT_SECONDS, incidents=True
    )
    for result in results:
        done += 1
        counts.add(result.verdicts)
        if result.failed:
            wrong += 1
            print(f"verdicts: {result.error or result.broken[0]}\n  replay: {result.replay}", flush=True)
    print(
        f"verdicts: {done:,} incidents from seed {seeds.start:,} on, {counts.judged:,} verdicts,"
        f" {time.monotonic() - began:.0f} s in {jobs} processes: {wrong:,} incidents broke an invariant"
    )
    print(
        f"  best choices {counts.choices:,}: decided without the metadata log {counts.decided:,},"
        f" with it {counts.decided_by_log:,} ({counts.unconditional:,} of them without any condition)"
    )
    for condition, number in counts.excused.most_common():
        print(f"  {number:,} wrong verdicts named the condition that did not hold: {condition}")
    return 1 if wrong else 0
