"""The console opens what a pipeline has planned, and applies it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from console.operations.history.snapshot_series import Series, Taking
from pipeline.plan.decide_rows import PLANNED, planned
from pipeline.plan.plan_job import PLANS
from pipeline.results import JobResult, commit
from pipeline.snapshot.read_catalog import read_catalog
from pipeline.snapshot.read_chain import state
from pipeline.storage import storage_path
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from tests.console.robot import console

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SCENARIO = "last-replica-standing"


async def _result(home: Path) -> str:
    """What the plan job leaves of a snapshot of the scenario; returns the cluster's id."""
    backend = SimulatorBackend(read(SCENARIO), 1)
    await backend.open()
    lake = storage_path(str(home / "lake"))
    manifest = await Series(backend, Taking(lake, 5.0, lambda: NOON, lambda: "t", "0.1.0")).full()
    await backend.close()
    chain = read_catalog(lake).chain(manifest.cluster_id)
    assert chain is not None
    run = storage_path(str(home / "results" / "plan-1"))
    told = [
        batch.set_column(0, "cluster_id", pa.array([manifest.cluster_id] * batch.num_rows))
        for rows in state(chain)
        for batch in planned(rows, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    ]
    with (run / PLANS / "part-0.parquet").create() as stream:
        pq.write_table(pa.Table.from_batches(told, schema=PLANNED), stream)
    asked = {"clusters": {manifest.cluster_id: []}, "ranking": "last-record", "strategy": "aggressive"}
    commit(JobResult(run, "plan", NOON, "0.1.0", (PLANS,), asked, {}))
    return manifest.cluster_id


async def test_a_result_is_opened_as_a_plan_and_applied(home: Path) -> None:
    cluster_id = await _result(home)
    async with console(SCENARIO) as robot:
        await robot.press("o")
        await robot.answers("results")
        await robot.until(lambda: robot.session.draft.plan is not None, "a plan")
        plan = robot.session.draft.plan
        assert plan is not None and plan.header.cluster_id == cluster_id
        assert plan.header.strategy is Strategy.AGGRESSIVE and len(plan.rows) == 1
        await robot.arms()
        await robot.applies(plan.rows[0].tp.topic, "drill")
        await robot.hears("1 elected")


async def test_a_result_of_another_cluster_is_refused_and_says_whose_it_is(home: Path) -> None:
    cluster_id = await _result(home)
    async with console("zone-power-loss") as robot:
        await robot.press("o")
        await robot.answers("results")
        await robot.hears(cluster_id)
        assert robot.session.draft.plan is None
