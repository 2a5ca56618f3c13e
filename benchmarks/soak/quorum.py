"""Random histories of the metadata quorum: controllers die, are cut off, lose disks, and voters come and go."""

from __future__ import annotations

from collections import Counter

from backends.simulator.history import Line
from benchmarks.soak import SoakOptions
from testbed.histories.quorum_faults import QUORUM_FAULTS
from testbed.histories.random_histories import prepare
from testbed.histories.random_histories import run as happen

ROUNDS = 5_000
SECONDS = 60
FAULTS = (*QUORUM_FAULTS, "heal", "min ISR", "failover")
"""Faults of controllers and voters, and changes that write metadata meanwhile."""

COUNTED = {
    "leads the quorum": "elections",
    "are committed": "committed changes of the voters",
    "truncates the metadata log": "truncations",
    "loads the snapshot": "snapshots loaded",
    "a new disk": "disks lost",
}
"""Text of a line of the history: what it counts as."""


def run(options: SoakOptions) -> int:
    """Runs the seeds; prints a summary and each seed that broke an invariant. 0 if none did."""
    seeds = options.seeds(ROUNDS)
    count = len(seeds)
    counts: Counter[str] = Counter()
    steps = wrong = unled = 0

    def count_line(line: Line) -> None:
        for words, what in COUNTED.items():
            counts[what] += words in line.what

    for seed in seeds:
        world, checker = prepare(seed)
        world.history.listeners.append(count_line)
        happen(world, seed, SECONDS, FAULTS)
        checker.settle()
        steps += world.loop.steps
        unled += world.quorum.leader is None
        if checker.broken:
            wrong += 1
            print(f"quorum: seed {seed}: {checker.broken[0]}", flush=True)
    events = ", ".join(f"{number:,} {what}" for what, number in counts.items())
    print(
        f"quorum: {count:,} histories of {SECONDS} s, {steps:,} steps, {events}, {unled:,} ended without a"
        f" majority: {wrong:,} broke an invariant"
    )
    return 1 if wrong else 0
