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
from backends.simulator.simulation import Simulation
from console.actions.snapshot import Series, Taking
from pipeline.exposure import job
from pipeline.places import Place, place
from pipeline.sources import find

CLUSTER = """
title: Five brokers
about: Nothing happens to them.
cluster:
  brokers: {count: 5, racks: [a, b, c]}
  min_isr: 2
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}
topics:
  - {name: one, partitions: 5, replicas: [[1], [2], [3], [4], [5]]}
  - {name: two, partitions: 4, replicas: [[1, 2], [2, 3], [1, 4], [5, 1]]}
  - {name: three, partitions: 4, replicas: [[1, 2, 3], [3, 4, 5], [4, 1, 2], [5, 2, 1]]}
faults:
  - {at: 1, do: shut-down, nodes: [broker-5]}
operator: {at: 20}
expect: {offline: 1}
"""


STOPPED = 5


def _scenario(min_isr: int = 2) -> Any:
    return parse(CLUSTER.replace("min_isr: 2", f"min_isr: {min_isr}"), "five-brokers", "five-brokers.yaml")


def _snapshot(root: Place) -> None:
    async def take() -> None:
        backend = SimulatorBackend(_scenario(), 1)
        await backend.open()
        noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        await Series(backend, Taking(root, 5.0, lambda: noon, lambda: "t", "0.1.0")).full()
        await backend.close()

    asyncio.run(take())


RACKS = {"a": (1, 4), "b": (2, 5), "c": (3,)}
REPLICAS = {
    "one": [[1], [2], [3], [4], [5]],
    "two": [[1, 2], [2, 3], [1, 4], [5, 1]],
    "three": [[1, 2, 3], [3, 4, 5], [4, 1, 2], [5, 2, 1]],
}


class After(NamedTuple):
    """What of the partitions that were online is offline, and what cannot be written to with acks=all."""

    offline: set[str]
    under_min_isr: set[str]


@cache
def _after(brokers: tuple[int, ...], min_isr: int = 2) -> After:
    """How it is when those have been killed and the controller has noticed."""
    simulation = Simulation(_scenario(min_isr), 1)
    simulation.advance_to(20 * SECOND)
    before = set(map(str, simulation.offline()))
    for broker in brokers:
        if broker != STOPPED:
            simulation.world.kill_broker(broker)
    simulation.advance_to(40 * SECOND)
    image = simulation.world.image.partitions
    under = {
        str(tp)
        for tp, state in image.items()
        if state.leader < 0 or len(state.isr) < min(min_isr, len(state.replicas))
    }
    return After(set(map(str, simulation.offline())) - before, under - before)


@pytest.fixture(scope="module")
def exposed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], dict[str, Any]]:
    """The failures that the job tells of, and its summary."""
    root = place(str(tmp_path_factory.mktemp("lake")))
    _snapshot(root)
    sources = find([root])
    job.run(spark, sources, root / "out")
    rows = spark.read.parquet((root / "out" / job.EXPOSURES).hadoop).collect()
    return rows, job.summarise(spark, sources, root / "out")


def test_each_failure_takes_what_the_simulator_loses_when_it_happens_there(exposed: Any) -> None:
    kinds: dict[str, dict[str, tuple[int, ...]]] = {
        "broker": {str(broker): (broker,) for broker in range(1, 6)},
        "rack": RACKS,
    }
    checked: dict[str, int] = {}
    for row in exposed[0]:
        if row["kind"] not in kinds or row["failed"] == [str(STOPPED)]:
            continue
        groups = [kinds[row["kind"]][name] for name in row["failed"]]
        failing = tuple(sorted({broker for group in groups for broker in group}))
        told, one_less = _after(failing), _after(failing, 1)
        # A pair counts what both hold; what one of them alone takes stands with that one.
        touched = _touched(groups) - OFFLINE
        assert row["offline"] == len(told.offline & touched), (row, told)
        assert row["under_min_isr"] == len(told.under_min_isr & touched), (row, told)
        writable = (told.under_min_isr - told.offline - one_less.under_min_isr) & touched
        assert row["writable_with_min_isr_one_less"] == len(writable), (row, told, one_less)
        checked[row["kind"]] = checked.get(row["kind"], 0) + 1
    assert checked["broker"] > 6 and checked["rack"] == 6, checked


OFFLINE = {"one-4"}
"""Nobody but the broker that was stopped has it."""


def _touched(groups: list[tuple[int, ...]]) -> set[str]:
    """The partitions that every one of the groups holds a replica of."""
    return {
        f"{topic}-{number}"
        for topic, rows in REPLICAS.items()
        for number, replicas in enumerate(rows)
        if all(set(group) & set(replicas) for group in groups)
    }


def test_the_summary_holds_the_ten_worst_and_no_more(exposed: Any) -> None:
    told = exposed[1]
    kinds = {(row["kind"], row["together"]) for row in told["worst"]}
    assert {("broker", 1), ("broker", 2), ("rack", 1), ("rack", 2), ("log dir", 1)} <= kinds
    assert all(row["place"] <= job.WORST for row in [*told["worst"], *told["topics"]])
    assert told["quarantined"] == []
