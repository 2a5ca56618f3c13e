"""Random incidents on real Kafka: checks every claim about every candidate against the disks and a consumer."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from confluent_kafka import KafkaException

from benchmarks.ground_truth.incident import PARTITIONS, IncidentResult, incident_result, run_incident
from benchmarks.ground_truth.promises import PromiseCounts
from benchmarks.soak import SoakOptions
from testbed.kafka import ClusterSpec, KafkaCluster
from testbed.kafka.connection import NoAnswer
from testbed.kafka.errors import TestbedError

ROUNDS = 200
TOPICS = 20
PER_CLUSTER = 25
"""Incidents on one cluster; the next cluster has the ELR if this one had not."""

_FENCED_SOON = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300"}
_QUICK = {"log.flush.start.offset.checkpoint.interval.ms": "200"}


def spec(elr: bool) -> ClusterSpec:
    """Log starts that DeleteRecords raised are on disk at once on 1 and 2, and not for a minute on 3 and 4."""
    return ClusterSpec(
        controllers=1,
        brokers=4,
        elr=elr,
        broker_config={
            **_FENCED_SOON,
            "log.initial.task.delay.ms": "100",
            "log.cleaner.backoff.ms": "100",
            "log.retention.check.interval.ms": "300",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "1",
            PARTITIONS: "3",
        },
        controller_config=_FENCED_SOON,
        node_config={1: _QUICK, 2: _QUICK},
    )


def run(options: SoakOptions) -> int:
    """Runs the seeds; prints a line for each incident. 0 if no promise was broken.

    With ``--record FILE`` each incident's outcome is appended to the file, and a run that was stopped continues.
    An incident that could not be made (a node ended, a wait timed out) is reported, and does not count.
    """
    began = time.monotonic()
    results = {} if options.record is None else recorded(options.record)
    seeds = [seed for seed in options.seeds(ROUNDS, first=1) if seed not in results]
    while seeds and (options.seconds is None or time.monotonic() - began < options.seconds):
        block = seeds[0] // PER_CLUSTER
        with KafkaCluster(spec(elr=block % 2 == 0)) as cluster:
            while seeds and seeds[0] // PER_CLUSTER == block:
                seed = seeds.pop(0)
                try:
                    result = run_incident(cluster, seed, TOPICS)
                except (TestbedError, NoAnswer, TimeoutError, KafkaException, AssertionError) as error:
                    print(f"ground truth: seed {seed} could not be made: {error!r}"[:500], flush=True)
                    break
                results[seed] = result
                _tell(result)
                if options.record is not None:
                    with options.record.open("a") as file:
                        file.write(result.line() + "\n")
                if options.seconds is not None and time.monotonic() - began > options.seconds:
                    break
    _sum_up(list(results.values()))
    return 1 if any(result.broken for result in results.values()) else 0


def recorded(path: Path) -> dict[int, IncidentResult]:
    """The incidents in a record, by seed. A last line that was cut off counts as not there."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            result = incident_result(line)
        except ValueError:
            continue
        found[result.seed] = result
    return found


def _tell(result: IncidentResult) -> None:
    print(
        f"ground truth: seed {result.seed}: {result.offline} offline, {result.counts.choices} choices,"
        f" {result.elected} elected, {result.read} read, {result.seconds:.0f} s, {len(result.broken)} broken;"
        f" {'; '.join(result.steps)}",
        flush=True,
    )
    for line in (*result.broken, *result.details):
        print(f"  {line}", flush=True)


def _sum_up(results: list[IncidentResult]) -> None:
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
        f" {sum(r.unsettled for r in results):,} not settled, {sum(r.seconds for r in results):,.0f} s:"
        f" {sum(len(r.broken) for r in results):,} broken promises"
    )
    for name, counter in (("verdicts", total.verdicts), ("excused", total.excused), ("decisions", decisions)):
        print(f"  {name}: {', '.join(f'{key} {count:,}' for key, count in counter.most_common())}")
