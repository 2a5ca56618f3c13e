"""Random replacements of controllers with faults between any two steps, on simulated quorums."""

from __future__ import annotations

from collections import Counter

from benchmarks.soak import SoakOptions
from tests.unit.membership.random_replacement import rehearsed

ROUNDS = 5_000


def run(options: SoakOptions) -> int:
    """Runs the seeds; prints a summary and each seed that went wrong. 0 if none did."""
    seeds = options.seeds(ROUNDS)
    count = len(seeds)
    kinds: Counter[str] = Counter()
    faults = sent = runs = wrong = 0
    for seed in seeds:
        result = rehearsed(seed)
        kinds[str(result.kind)] += 1
        faults, sent, runs = faults + len(result.faults), sent + len(result.sent), runs + result.runs
        if result.wrong:
            wrong += 1
            print(f"membership: seed {seed} ({result.kind}): {'; '.join(result.wrong)}", flush=True)
    of = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
    print(
        f"membership: {count:,} replacements ({of}), {faults:,} faults between their steps, {runs - count:,} kills"
        f" of the tool, {sent:,} changes of the voters sent: {wrong:,} went wrong"
    )
    return 1 if wrong else 0
