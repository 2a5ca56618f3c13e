"""The console opens what a pipeline has planned, and applies it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from console.jobs.pipeline.snapshot_series import Series, SnapshotSettings
from pipeline.plan.decide_rows import planned
from pipeline.results import JobResult, RunTarget, commit
from pipeline.snapshot.state_sources import find
from pipeline.storage import storage_path
from pipeline.tables.delta_table import append
from pipeline.tables.schemas import PLANNED, PLANS
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from tests.console.robot import console
from tests.unit.pipeline.read_states import batches_of

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SCENARIO = "last-replica-standing"


async def _result(home: Path) -> str:
    """What the plan job leaves of a snapshot of the scenario; returns the cluster's id."""
    backend = SimulatorBackend(read(SCENARIO), 1)
    await backend.open()
    lake = storage_path(str(home / "lake"))
    taken = await Series(backend, SnapshotSettings(lake, 5.0, lambda: NOON, lambda: "t", "0.1.0")).full()
    await backend.close()
    told = [
        batch
        for rows in batches_of(find([lake]))
        for batch in planned(rows, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    ]
    rows = pa.Table.from_batches(told, schema=PLANNED)
    target = RunTarget(storage_path(str(home / "results")), "plan-1")
    rows = rows.add_column(0, PLANS.schema.field("run_id"), [[target.run_id] * rows.num_rows])
    append(target.root, PLANS, lambda: rows)
    asked = {"clusters": {taken.cluster_id: []}, "ranking": "last-record", "strategy": "aggressive"}
    commit(JobResult(target, "plan", NOON, "0.1.0", asked, {}))
    return taken.cluster_id


@pytest.mark.parametrize("text", ["results", "results/plan-1"])
async def test_a_result_is_opened_as_a_plan_and_applied(home: Path, text: str) -> None:
    cluster_id = await _result(home)
    async with console(SCENARIO) as robot:
        await robot.press("o")
        await robot.answers(text)
        await robot.until(lambda: robot.session.draft.plan is not None, "a plan")
        plan = robot.session.draft.plan
        assert plan is not None and plan.header.cluster_id == cluster_id
        assert plan.header.strategy is Strategy.AGGRESSIVE and len(plan.rows) == 1
        await robot.arms()
        await robot.applies(plan.rows[0].tp.topic, "drill")
        await robot.hears(f"leads {plan.rows[0].tp}")


async def test_a_result_of_another_cluster_is_refused_and_says_whose_it_is(home: Path) -> None:
    cluster_id = await _result(home)
    async with console("zone-power-loss") as robot:
        await robot.press("o")
        await robot.answers("results")
        await robot.hears(cluster_id)
        assert robot.session.draft.plan is None
