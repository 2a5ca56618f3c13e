"""Random replacements of controllers with faults between any two steps, on simulated quorums."""

from __future__ import annotations

from collections import Counter

from benchmarks.soak import Asked
from tests.unit.membership.rehearsing import rehearsed

ROUNDS = 5_000


def run(asked: Asked) -> int:
    """So many seeds; prints a summary, and each seed that went wrong. 0 where none did."""
    seeds = asked.seeds(ROUNDS)
    count = len(seeds)
    kinds: Counter[str] = Counter()
    faults = sent = runs = wrong = 0
    for seed in seeds:
        told = rehearsed(seed)
        kinds[str(told.kind)] += 1
        faults, sent, runs = faults + len(told.faults), sent + len(told.sent), runs + told.runs
        if told.wrong:
            wrong += 1
            print(f"membership: seed {seed} ({told.kind}): {'; '.join(told.wrong)}", flush=True)
    of = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
    print(
        f"membership: {count:,} replacements ({of}), {faults:,} faults between their steps, {runs - count:,} kills"
        f" of the tool, {sent:,} changes of the voters sent: {wrong:,} went wrong"
    )
    return 1 if wrong else 0
