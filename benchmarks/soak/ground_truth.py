"""Random incidents on real Kafka: every claim about every candidate against producers, disks and a consumer."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from pathlib import Path

from confluent_kafka import KafkaException

from backends.base.errors import BackendError
from benchmarks.ground_truth.configuration import MIN_ISR
from benchmarks.ground_truth.history import Only
from benchmarks.ground_truth.incident import PARTITIONS, IncidentResult, incident_result, run_incident
from benchmarks.ground_truth.promises import PromiseCounts
from benchmarks.soak import SoakOptions
from console.errors import ConsoleError
from testbed.kafka import ClusterSpec, KafkaCluster
from testbed.kafka.connection import NoAnswer
from testbed.kafka.errors import TestbedError

ROUNDS = 250
TOPICS = 40
PER_CLUSTER = 4
"""Histories of one kind of cluster; the next are of another kind. With the ELR each has a cluster of its own:
deleted topics can leave members in the controller, which then resigns whenever one of them registers.
"""
LEFT_OVER = "existed in isrMembers, but not in the topics map"
"""What the controller of such a cluster says."""
OLD, NEW = "4.3.1", "4.4.0"
MIXED = f"{OLD} with {NEW}"
KINDS = ((OLD, False), (NEW, True), (OLD, True), (NEW, False), (MIXED, False), (MIXED, True))
"""Kafka's version and whether the ELR is on."""

_NOT_MADE = (TestbedError, NoAnswer, TimeoutError, KafkaException, AssertionError, ConsoleError, BackendError)
"""What is reported of a history that could not be made; what ktriage refused stands there too."""

_FENCED_SOON = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300"}
_FENCED_LATER = {**_FENCED_SOON, "broker.session.timeout.ms": "12000"}
"""A broker that hears nothing for a moment stays in the ISR, also on a busy machine."""
_QUICK = {"log.flush.start.offset.checkpoint.interval.ms": "200"}


def spec(kafka: str, elr: bool, only: Only | None = None) -> ClusterSpec:
    """Log starts that DeleteRecords raised are on disk at once on 1 and 2, and not for a minute on the others; the
    file of broker 5 has another min.insync.replicas than theirs.
    """
    version, _, newer = kafka.partition(" with ")
    sessions = _FENCED_LATER if only is Only.FAILOVER else _FENCED_SOON
    return ClusterSpec(
        version=version,
        node_versions={2: newer, 5: newer} if newer else {},
        controllers=1,
        brokers=5,
        log_dirs=2,
        elr=elr,
        cuttable_links=True,
        broker_config={
            **sessions,
            "log.initial.task.delay.ms": "100",
            "log.cleaner.backoff.ms": "100",
            "log.retention.check.interval.ms": "300",
            "replica.lag.time.max.ms": "3000",
            "replica.socket.timeout.ms": "3000",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "1",
            PARTITIONS: "3",
        },
        controller_config=sessions,
        node_config={1: _QUICK, 2: _QUICK, 5: {MIN_ISR: "2"}},
    )


def run(options: SoakOptions) -> int:
    """Runs the seeds; prints a line for each history. 0 if no promise was broken.

    With ``--record FILE`` each history's outcome is appended to the file, and a run that was stopped continues.
    A history that could not be made (a node ended, a wait timed out) is reported, and does not count.
    """
    began = time.monotonic()
    only = None if options.only is None else Only(options.only)
    results = {} if options.record is None else recorded(options.record)
    seeds = [seed for seed in options.seeds(ROUNDS, first=1) if seed not in results]
    while seeds and (options.seconds is None or time.monotonic() - began < options.seconds):
        block = seeds[0] // PER_CLUSTER
        kafka, elr = KINDS[block % len(KINDS)]
        with KafkaCluster(spec(kafka, elr, only)) as cluster:
            while seeds and seeds[0] // PER_CLUSTER == block:
                seed = seeds.pop(0)
                try:
                    result = run_incident(cluster, seed, TOPICS, only)
                except _NOT_MADE as error:
                    where = traceback.extract_tb(error.__traceback__)
                    at = next(
                        (
                            f"{one.name}:{one.lineno}"
                            for one in reversed(where)
                            if "ground_truth" in one.filename
                        ),
                        "",
                    )
                    why = f"{LEFT_OVER}: " if _has_left_over(cluster) else ""
                    print(
                        f"ground truth: seed {seed} could not be made: {at} {why}{error!r}"[:500], flush=True
                    )
                    break
                result.kafka = f"{kafka}, ELR {'on' if elr else 'off'}"
                results[seed] = result
                _tell(result, only)
                if options.record is not None:
                    with options.record.open("a") as file:
                        file.write(result.line() + "\n")
                if elr or (options.seconds is not None and time.monotonic() - began > options.seconds):
                    break
    _sum_up(list(results.values()))
    return 1 if any(result.broken for result in results.values()) else 0


def _has_left_over(cluster: KafkaCluster) -> bool:
    logs = (node.log_file for node in cluster.controllers.values())
    return any(LEFT_OVER in log.read_text(errors="replace") for log in logs if log.exists())


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


def _tell(result: IncidentResult, only: Only | None) -> None:
    print(
        f"ground truth: seed {result.seed} ({result.kafka}): {result.incidents} incidents of {result.blackouts}"
        f" blackouts, {result.histories} histories, {result.offline} offline, {result.counts.choices} choices,"
        f" {result.elected} elected, {result.read} read, {result.seconds:.0f} s, {len(result.broken)} broken;"
        f" {'; '.join(result.steps)}",
        flush=True,
    )
    for line in (*result.broken, *result.details):
        print(f"  {line}", flush=True)
    if result.broken:
        kind = "" if only is None else f" --only {only}"
        again = f"python -m benchmarks.soak ground_truth --first {result.seed} --rounds 1{kind}"
        print(f"  the same history again: {again}", flush=True)


def _sum_up(results: list[IncidentResult]) -> None:
    total = PromiseCounts()
    decisions: Counter[str] = Counter()
    for result in results:
        total.add(result.counts)
        decisions.update(result.decisions)
    print(
        f"ground truth: {sum(r.incidents for r in results)} incidents of {sum(r.blackouts for r in results)}"
        f" blackouts and {len(results)} seeds, {sum(r.histories for r in results):,} histories of partitions,"
        f" {sum(r.offline for r in results):,} offline partitions, {sum(r.acknowledged for r in results):,} records"
        f" acknowledged, {total.choices:,} choices ({total.bounded:,} with a bound, {total.nothing:,} of nothing),"
        f" {sum(r.elected for r in results):,} elected, {sum(r.read for r in results):,} read,"
        f" {sum(r.unsettled for r in results):,} not settled, {total.alone:,} of acks=1 lost by a none,"
        f" {sum(r.seconds for r in results):,.0f} s: {sum(len(r.broken) for r in results):,} broken promises"
    )
    for name, counter in (("excused", total.excused), ("decisions", decisions)):
        print(f"  {name}: {', '.join(f'{key} {count:,}' for key, count in counter.most_common())}")
    for at_hand in ("log", "log and disks", "no log"):
        verdicts = {
            key.partition(": ")[2]: n
            for key, n in total.verdicts.items()
            if key.partition(": ")[0] == at_hand
        }
        if verdicts:
            decided = sum(count for value, count in verdicts.items() if value != "open") / sum(
                verdicts.values()
            )
            shares = ", ".join(f"{value} {count:,}" for value, count in sorted(verdicts.items()))
            print(f"  verdicts ({at_hand}): {shares}: {decided:.0%} decided")
    for name, counter in (("open until", total.open_for), ("best candidates", total.best)):
        print(f"  {name}: {', '.join(f'{key} {count:,}' for key, count in counter.most_common())}")
