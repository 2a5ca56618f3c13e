"""Random incidents on real Kafka: every promise about every candidate, held against the disks and a consumer."""

from __future__ import annotations

import time
from collections import Counter

from benchmarks.ground_truth.incident import PARTITIONS, IncidentResult, run_incident
from benchmarks.ground_truth.promises import PromiseCounts
from benchmarks.soak import SoakOptions
from testbed.kafka import ClusterSpec, KafkaCluster

ROUNDS = 200
TOPICS = 20
PER_CLUSTER = 10
"""Incidents on one cluster; the next cluster has the ELR if this one had not."""

_QUICK = {"log.flush.start.offset.checkpoint.interval.ms": "200"}


def spec(elr: bool) -> ClusterSpec:
    """Log starts that DeleteRecords raised are on disk at once on 1 and 2, and not for a minute on 3 and 4."""
    return ClusterSpec(
        controllers=1,
        brokers=4,
        elr=elr,
        broker_config={
            "log.initial.task.delay.ms": "100",
            "log.cleaner.backoff.ms": "100",
            "log.retention.check.interval.ms": "300",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "1",
            PARTITIONS: "3",
        },
        node_config={1: _QUICK, 2: _QUICK},
    )


def run(options: SoakOptions) -> int:
    """Runs the seeds, even ones with the ELR; prints a line for each incident. 0 if no promise was broken."""
    began = time.monotonic()
    seeds = list(options.seeds(ROUNDS, first=1))
    results: list[IncidentResult] = []
    for at in range(0, len(seeds), PER_CLUSTER):
        if options.seconds is not None and time.monotonic() - began > options.seconds:
            break
        block = seeds[at : at + PER_CLUSTER]
        with KafkaCluster(spec(elr=block[0] // PER_CLUSTER % 2 == 0)) as cluster:
            for seed in block:
                result = run_incident(cluster, seed, TOPICS)
                results.append(result)
                _tell(result)
    _sum_up(results, time.monotonic() - began)
    return 1 if any(result.broken for result in results) else 0


def _tell(result: IncidentResult) -> None:
    print(
        f"ground truth: seed {result.seed}: {result.offline} offline, {result.counts.choices} choices,"
        f" {result.elected} elected, {result.read} read, {result.seconds:.0f} s, {len(result.broken)} broken;"
        f" {'; '.join(result.steps)}",
        flush=True,
    )
    for line in (*result.broken, *result.details):
        print(f"  {line}", flush=True)


def _sum_up(results: list[IncidentResult], seconds: float) -> None:
    total = PromiseCounts()
    decisions: Counter[str] = Counter()
    for result in results:
        total.choices += result.counts.choices
        total.bounded += result.counts.bounded
        total.nothing += result.counts.nothing
        total.verdicts.update(result.counts.verdicts)
        total.excused.update(result.counts.excused)
        decisions.update(result.decisions)
    print(
        f"ground truth: {len(results)} incidents, {sum(r.offline for r in results):,} offline partitions,"
        f" {total.choices:,} choices ({total.bounded:,} with a bound, {total.nothing:,} of nothing),"
        f" {sum(r.elected for r in results):,} elected, {sum(r.read for r in results):,} read,"
        f" {sum(r.unsettled for r in results):,} not settled, {seconds:.0f} s:"
        f" {sum(len(r.broken) for r in results):,} broken promises"
    )
    for name, counter in (("verdicts", total.verdicts), ("excused", total.excused), ("decisions", decisions)):
        print(f"  {name}: {', '.join(f'{key} {count:,}' for key, count in counter.most_common())}")
