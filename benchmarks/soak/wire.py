"""Random incidents on served simulators, recovered by the commands in separate processes."""

from __future__ import annotations

import time
from collections import Counter

from benchmarks.soak import SoakOptions
from tests.wire.incident_pool import incidents

ROUNDS = 5_000
AT_ONCE = 8
"""Parallel incidents: each waits for seconds and computes for a third of a second."""


def run(options: SoakOptions) -> int:
    """Runs the seeds; prints a summary and each seed that went wrong. 0 if none did."""
    began = time.monotonic()
    sums: Counter[str] = Counter()
    for one in incidents(options.seeds(ROUNDS, first=1), options.jobs or AT_ONCE):
        sums.update(
            incidents=1,
            offline=one.offline,
            elected=one.elected,
            faults=len(one.faults),
            killed=one.killed,
            runs=one.runs,
            wrong=bool(one.wrong),
        )
        if one.wrong:
            print(f"wire: seed {one.seed}: {'; '.join(one.wrong)}", flush=True)
    print(
        f"wire: {sums['incidents']:,} incidents, {sums['offline']:,} offline partitions,"
        f" {sums['elected']:,} elected, {sums['runs']:,} runs of the tool, {sums['killed']:,} killed and resumed,"
        f" {sums['faults']:,} faults while it worked, {time.monotonic() - began:.0f} s:"
        f" {sums['wrong']:,} went wrong"
    )
    return 1 if sums["wrong"] else 0
