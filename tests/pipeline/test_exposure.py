"""What would fail next is what fails on the simulator when it does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

import pytest

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.loop import SECOND
from backends.simulator.scenario.files import parse
from backends.simulator.session.checkpoint import pickled, unpickled
from backends.simulator.simulation import Simulation
from console.jobs.pipeline.snapshot_series import Series, SnapshotSettings
from pipeline.exposure import exposure_job
from pipeline.exposure.exposure_summary import WORST
from pipeline.exposure.what_if import WHAT_IF, WhatIf, parsed_losses
from pipeline.results import RunTarget, rows_of_runs
from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.state_sources import find
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.schemas import EXPOSED_TOPICS, EXPOSURES, TableDefinition
from recovery.model import Unknown, Why
from tests.pipeline.partition_histories import Diary, broker_row, partition
from tests.pipeline.survey_strategies import write

CLUSTER = """
title: Seven brokers
about: One is stopped, and two do not hear each other.
cluster:
  brokers: {count: 7, racks: [a, b, c], log_dirs: 2}
  min_isr: 2
  config:
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 500
    replica.lag.time.max.ms: 2000
topics:
  - {name: one, partitions: 5, replicas: [[1], [2], [3], [4], [5]]}
  - {name: two, partitions: 4, replicas: [[1, 2], [2, 3], [1, 4], [5, 1]]}
  - {name: three, partitions: 4, replicas: [[1, 2, 3], [3, 4, 5], [4, 1, 2], [5, 2, 1]]}
  - {name: late, partitions: 4, min_isr: 1, replicas: [[6, 7], [7, 6], [6, 7, 1], [7, 2]]}
workload:
  - {topic: one, acks: 1, records: 1, every: 0.5}
  - {topic: two, acks: 1, records: 1, every: 0.5}
  - {topic: three, acks: 1, records: 1, every: 0.5}
  - {topic: late, acks: 1, records: 1, every: 0.5}
faults:
  - {at: 1, do: shut-down, nodes: [broker-5]}
  - {at: 1, do: cut, nodes: [broker-6], others: [broker-7]}
operator: {at: 20}
expect: {offline: 1}
"""

CUT = "  - {at: 1, do: cut, nodes: [broker-6], others: [broker-7]}\n"
"""Who follows over it lags, alive and outside the ISR."""

STOPPED = 5


def _scenario(min_isr: int = 2, *, cut: bool = True) -> Any:
    text = CLUSTER.replace("  min_isr: 2", f"  min_isr: {min_isr}")
    return parse(text if cut else text.replace(CUT, ""), "seven-brokers", "seven-brokers.yaml")


def _snapshot(root: StoragePath) -> None:
    async def take() -> None:
        backend = SimulatorBackend(_scenario(), 1)
        await backend.open()
        noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        await Series(backend, SnapshotSettings(root, 5.0, lambda: noon, lambda: "t", "0.1.0")).full()
        await backend.close()

    asyncio.run(take())


RACKS = {"a": (1, 4, 7), "b": (2, 5), "c": (3, 6)}
REPLICAS = {
    "one": [[1], [2], [3], [4], [5]],
    "two": [[1, 2], [2, 3], [1, 4], [5, 1]],
    "three": [[1, 2, 3], [3, 4, 5], [4, 1, 2], [5, 2, 1]],
    "late": [[6, 7], [7, 6], [6, 7, 1], [7, 2]],
}
DIRS = 2
"""Log dirs of each broker; partition n lies in dir n modulo 2."""

Part = tuple[int, int | None]
"""A broker and one of its log dirs, or None: the whole broker."""

QUESTIONS: dict[str, frozenset[Part]] = {
    "rack=b,broker=1": frozenset({(2, None), (5, None), (1, None)}),
    "broker=2,broker=3,broker=4": frozenset({(2, None), (3, None), (4, None)}),
    "dir=1:/kafka/0,rack=c": frozenset({(1, 0), (3, None), (6, None)}),
}
"""What is asked for, and what fails then."""


class After(NamedTuple):
    """What of the partitions that were online is offline, and what has come under min ISR; ``already``: what was
    under it before, and could not be written to with acks=all then.
    """

    offline: set[str]
    under_min_isr: set[str]
    already: set[str]


@cache
def _until_the_failure(min_isr: int, *, cut: bool) -> bytes:
    """The simulation right before something fails, pickled: it is the same for every failure."""
    simulation = Simulation(_scenario(min_isr, cut=cut), 1)
    simulation.advance_to(20 * SECOND)
    return pickled(simulation)


@cache
def _after(failing: frozenset[Part], min_isr: int = 2, *, cut: bool = True) -> After:
    """How it is when those have failed and the controller has noticed; without the cut nobody lags."""
    simulation: Simulation = unpickled(_until_the_failure(min_isr, cut=cut))
    before = set(map(str, simulation.offline()))
    already = _under_min_isr(simulation, min_isr)
    for broker, directory in sorted(failing, key=str):
        if directory is not None:
            simulation.world.break_log_dir(broker, directory)
        elif broker != STOPPED:
            simulation.world.kill_broker(broker)
    simulation.advance_to(30 * SECOND)
    under = _under_min_isr(simulation, min_isr)
    return After(set(map(str, simulation.offline())) - before, under - already, already - before)


def _under_min_isr(simulation: Simulation, min_isr: int) -> set[str]:
    return {
        str(tp)
        for tp, state in simulation.world.image.partitions.items()
        if state.leader < 0 or len(state.isr) < min(_least(tp.topic, min_isr), len(state.replicas))
    }


def _least(topic: str, min_isr: int) -> int:
    return 1 if topic == "late" else min_isr


@pytest.fixture(scope="module")
def exposed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], dict[str, Any]]:
    """The failures that the job tells of, and its summary."""
    root = storage_path(str(tmp_path_factory.mktemp("lake")))
    _snapshot(root)
    target = RunTarget(root / "out", "run")
    done = exposure_job.outcome(spark, find([root]), target, WhatIf(parsed_losses(list(QUESTIONS))))
    rows = [row for row in _rows(target, EXPOSURES) if row["kind"] != WHAT_IF]
    return rows, dict(done.summary)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_what_if_question_is_answered_as_on_the_simulator(exposed: Any, question: str) -> None:
    (answer,) = (row for row in exposed[1]["what_if"] if row["failed"] == [question])
    told, one_less = _after(QUESTIONS[question]), _after(QUESTIONS[question], 1)
    assert answer["offline"] == len(told.offline) > 0
    # Counted are partitions with a leader of which a replica is lost.
    assert answer["under_min_isr"] == len(told.under_min_isr)
    assert answer["already_under_min_isr"] <= len(told.already)
    writable = told.under_min_isr - told.offline - one_less.under_min_isr
    assert answer["writable_with_min_isr_one_less"] == len(writable)


def _kinds() -> dict[str, dict[str, frozenset[Part]]]:
    """What fails, by kind and name."""
    found: dict[str, dict[str, frozenset[Part]]] = {
        "rack": {name: frozenset((broker, None) for broker in inside) for name, inside in RACKS.items()},
        "broker": {},
        "log dir": {},
    }
    for broker in range(1, 8):
        found["broker"][str(broker)] = frozenset({(broker, None)})
        for number in range(DIRS):
            found["log dir"][f"{broker}:/kafka/{number}"] = frozenset({(broker, number)})
    return found


def test_each_failure_takes_what_the_simulator_loses_when_it_happens_there(exposed: Any) -> None:
    kinds = _kinds()
    checked: dict[str, int] = {}
    saved = 0
    for row in exposed[0]:
        groups = [kinds[row["kind"]][name] for name in row["failed"]]
        if all(broker == STOPPED for group in groups for broker, _ in group):
            continue
        failing: frozenset[Part] = frozenset().union(*groups)
        told = _after(failing)
        # A pair counts what both hold; what one of them alone takes stands with that one.
        touched = _touched(groups) - OFFLINE
        assert row["offline"] == len(told.offline & touched), (row, told)
        assert row["under_min_isr"] == len(told.under_min_isr & touched), (row, told)
        assert row["already_under_min_isr"] == len(told.already & touched), (row, told)
        assert row["min_isr_unknown"] == 0
        # How it would be otherwise is asked only of what is lost as it is.
        writable = (told.under_min_isr - told.offline) & touched
        if writable:
            writable -= _after(failing, 1).under_min_isr
        assert row["writable_with_min_isr_one_less"] == len(writable), (row, told)
        kept = told.offline & touched
        if kept:
            kept -= _after(failing, cut=False).offline
        assert row["saved_by_one_more_in_sync"] == len(kept), (row, told)
        checked[row["kind"]] = checked.get(row["kind"], 0) + 1
        saved += len(kept)
    assert checked["broker"] > 6 and checked["rack"] == 6 and checked["log dir"] > 14, checked
    assert saved > 6


OFFLINE = {"one-4"}
"""Nobody but the broker that was stopped has it."""


def _touched(groups: list[frozenset[Part]]) -> set[str]:
    """The partitions that every one of the groups holds a replica of."""
    return {
        f"{topic}-{number}"
        for topic, rows in REPLICAS.items()
        for number, replicas in enumerate(rows)
        if all(
            any((broker, where) in group for broker in replicas for where in (None, number % DIRS))
            for group in groups
        )
    }


def test_the_summary_holds_the_ten_worst_and_no_more(exposed: Any) -> None:
    told = exposed[1]
    kinds = {(row["kind"], row["together"]) for row in told["worst"]}
    assert {("broker", 1), ("broker", 2), ("rack", 1), ("rack", 2), ("log dir", 1)} <= kinds
    assert all(row["place"] <= WORST for row in [*told["worst"], *told["topics"]])
    assert told["quarantined"] == []
    (fleet,) = told["fleet"]
    worst = max(row["acknowledged_at_risk"] for row in told["worst"] if row["together"] == 1)
    assert (fleet["partitions"], fleet["offline_now"], fleet["acknowledged_at_risk"]) == (17, 1, worst)


Rows = list[dict[str, Any]]


class SmallClusters(NamedTuple):
    """One run about a few clusters: the failures and the topics that it tells of."""

    exposures: Rows
    topics: Rows

    def counts(self, cluster_id: str) -> dict[tuple[str, tuple[str, ...]], dict[str, int]]:
        """What each failure does to the partitions of the cluster, by its kind and what fails."""
        return {
            (row["kind"], tuple(row["failed"])): row
            for row in self.exposures
            if row["cluster_id"] == cluster_id
        }


@pytest.fixture(scope="module")
def small(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> SmallClusters:
    """Of the clusters of the tests below, each with the name of what it shows."""
    root = storage_path(str(tmp_path_factory.mktemp("small")))
    write(root, "under_min_isr", [partition(n, isr=(1,)) for n in range(100)])
    unknown = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE_CONFIGS")
    told = partition(0, isr=(1, 2)), partition(1, isr=(1, 2))._replace(min_isr=unknown)
    write(root, "unknown_min_isr", told)
    diary = Diary(root, "changed")
    racks = [broker_row(number, rack="ab"[number % 2]) for number in (1, 2, 3)]
    diary.write(0, [partition(n) for n in range(4)], brokers=racks)
    diary.write(1, [partition(0, isr=(1,), elr=(2,))], kind=SnapshotKind.CHANGES, brokers=racks)
    target = RunTarget(root / "out", "run")
    exposure_job.run(spark, find([root]), target)
    return SmallClusters(_rows(target, EXPOSURES), _rows(target, EXPOSED_TOPICS))


def _rows(target: RunTarget, definition: TableDefinition) -> Rows:
    found = rows_of_runs(target.root, definition, {target.run_id})
    return [row for table in found for row in table.to_pylist()]


def test_who_is_under_min_isr_already_is_not_brought_there_by_a_failure(small: SmallClusters) -> None:
    told = small.counts("under_min_isr")
    outside, leader = told["broker", ("3",)], told["broker", ("1",)]
    names = ("offline", "under_min_isr", "already_under_min_isr", "writable_with_min_isr_one_less")
    assert [outside[name] for name in names] == [0, 0, 100, 0]
    assert [leader[name] for name in names] == [100, 0, 100, 0]


def test_an_unknown_min_isr_is_not_taken_for_one(small: SmallClusters) -> None:
    told = small.counts("unknown_min_isr")["broker", ("1",)]
    assert (told["under_min_isr"], told["min_isr_unknown"]) == (1, 1)


def test_changes_since_the_full_snapshot_are_counted_like_the_rest(small: SmallClusters) -> None:
    told = small.counts("changed")
    assert [told["broker", ("1",)][name] for name in ("partitions", "offline", "already_under_min_isr")] == [
        4,
        0,
        1,
    ]
    assert [told["rack", ("b",)][name] for name in ("offline", "under_min_isr")] == [0, 3]
    assert (told["rack", ("a", "b")]["offline"], told["broker", ("1", "2")]["offline"]) == (4, 1)
    assert told["log dir", ("1:/kafka",)]["partitions"] == 4
    topics = (row for row in small.topics if row["cluster_id"] == "changed")
    assert {(row["topic"], row["broker"]): row["partitions"] for row in topics} == {
        ("orders", number): 4 for number in (1, 2, 3)
    }
