"""Random incidents on the wire: served simulators, recovered by the tool in processes of its own."""

from __future__ import annotations

import time
from collections import Counter

from benchmarks.soak import Asked
from tests.wire.many import incidents

ROUNDS = 5_000
AT_ONCE = 8
"""Incidents at once: each of them waits for seconds, and works for a third of one."""


def run(asked: Asked) -> int:
    """So many seeds; prints a summary, and each seed in which something was wrong. 0 where nothing was."""
    began = time.monotonic()
    sums: Counter[str] = Counter()
    for one in incidents(asked.seeds(ROUNDS, first=1), asked.jobs or AT_ONCE):
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
