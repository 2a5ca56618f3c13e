"""What would fail next is what fails on the simulator when it does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

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


def _scenario() -> Any:
    return parse(CLUSTER, "five-brokers", "five-brokers.yaml")


def _snapshot(root: Place) -> None:
    async def take() -> None:
        backend = SimulatorBackend(_scenario(), 1)
        await backend.open()
        noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        await Series(backend, Taking(root, 5.0, lambda: noon, lambda: "t", "0.1.0")).full()
        await backend.close()

    asyncio.run(take())


def _after(brokers: tuple[int, ...]) -> set[str]:
    """What goes offline when those are killed and the controller has noticed."""
    simulation = Simulation(_scenario(), 1)
    simulation.advance_to(20 * SECOND)
    before = set(map(str, simulation.offline()))
    for broker in brokers:
        simulation.world.kill_broker(broker)
    simulation.advance_to(40 * SECOND)
    return set(map(str, simulation.offline())) - before


def test_each_failure_takes_what_the_simulator_loses_when_it_happens_there(
    spark: Any, tmp_path: Path
) -> None:
    root = place(str(tmp_path))
    _snapshot(root)
    sources = find([root])
    job.run(spark, sources, root / "out")
    rows = spark.read.parquet((root / "out" / job.EXPOSURES).hadoop).collect()
    found = {tuple(row["failed"]): row for row in rows if row["kind"] == "broker"}
    checked = 0
    for size in (1, 2):
        for failed in combinations("1234", size):
            offline = _after(tuple(map(int, failed)))
            if failed not in found:
                assert size == 2, "every broker holds something"
                continue
            # A pair counts what both hold; what one of them alone takes stands with that one.
            shared = _shared(failed)
            assert found[failed]["offline"] == len(offline & shared), (failed, offline)
            checked += 1
    assert checked > 6


def _shared(failed: tuple[str, ...]) -> set[str]:
    topics = {
        "one": [[1], [2], [3], [4], [5]],
        "two": [[1, 2], [2, 3], [1, 4], [5, 1]],
        "three": [[1, 2, 3], [3, 4, 5], [4, 1, 2], [5, 2, 1]],
    }
    return {
        f"{topic}-{number}"
        for topic, rows in topics.items()
        for number, replicas in enumerate(rows)
        if {int(broker) for broker in failed} <= set(replicas)
    }


def test_the_summary_holds_the_ten_worst_and_no_more(spark: Any, tmp_path: Path) -> None:
    root = place(str(tmp_path))
    _snapshot(root)
    sources = find([root])
    job.run(spark, sources, root / "out")
    told = job.summarise(spark, sources, root / "out")
    kinds = {(row["kind"], row["together"]) for row in told["worst"]}
    assert {("broker", 1), ("broker", 2), ("rack", 1), ("rack", 2), ("log dir", 1)} <= kinds
    assert all(row["place"] <= job.WORST for row in [*told["worst"], *told["topics"]])
