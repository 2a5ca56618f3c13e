"""Random incidents with an operator: what the live adapter reads, judges and elects is held against the truth."""

from __future__ import annotations

from benchmarks.soak import SoakOptions, run_seeds
from testbed.histories.random_incidents import INCIDENT_SECONDS
from testbed.histories.verdict_soundness import VerdictCounts

ROUNDS = 2_000


def run(options: SoakOptions) -> int:
    """Runs the seeds; 0 if none failed."""
    seeds, counts = options.seeds(ROUNDS), VerdictCounts()
    ran = run_seeds(
        "operator",
        options,
        seeds,
        lambda result: counts.add(result.verdicts),
        virtual_seconds=INCIDENT_SECONDS,
        operator=True,
    )
    print(
        f"operator: {ran.done:,} incidents from seed {seeds.start:,} on, {ran.seconds:.0f} s;"
        f" {counts.looks:,} looks, {counts.looks_refused:,} of them at a cluster that did not answer,"
        f" {counts.overtaken:,} partitions that changed meanwhile, {counts.judged:,} verdicts,"
        f" {counts.elected:,} elections: {ran.wrong:,} incidents broke a promise"
    )
    return 1 if ran.wrong else 0
