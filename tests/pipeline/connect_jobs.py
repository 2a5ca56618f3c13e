"""Runs every job on the caller's session with a Spark Connect server, and prints what came of it as JSON."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.exposure import exposure_job, fix_job
from pipeline.exposure.fix_choice import FixLimits
from pipeline.history import history_job
from pipeline.history.history_sources import find_history
from pipeline.job_run import JobBody, JobRun, execute
from pipeline.plan import plan_job
from pipeline.results import JobOutput, RunTarget, run_target
from pipeline.snapshot.state_sources import find
from pipeline.spark_session import SparkSettings
from pipeline.storage import StoragePath, storage_path
from recovery.strategy import Strategy

ZONE = "spark.sql.session.timeZone"


def main(server: str, lake: str, racks: str, out: str) -> None:
    """``server``: its URL, ``sc://…``. ``racks``: the snapshots for the fixes."""
    caller: Any = SparkSession.builder.remote(server).getOrCreate()
    caller.conf.set(ZONE, "America/New_York")
    caller.range(3).createOrReplaceTempView("mine")
    found: dict[str, Any] = {
        name: _summary(name, storage_path(out), job)
        for name, job in _jobs(storage_path(lake), storage_path(racks)).items()
    }
    active: Any = SparkSession.getActiveSession()
    found["caller"] = {
        "zone": caller.conf.get(ZONE),
        "rows": caller.table("mine").count(),
        "active": active is caller,
        "kind": type(caller).__module__,
    }
    caller.stop()
    sys.stdout.write(json.dumps(found, default=str))


def _jobs(lake: StoragePath, racks: StoragePath) -> dict[str, JobBody]:

    def plan(spark: Any, target: RunTarget) -> JobOutput:
        options = plan_job.PlanOptions(strategy=Strategy.AGGRESSIVE)
        return plan_job.outcome(spark, find([lake]), options, target)

    def history(spark: Any, target: RunTarget) -> JobOutput:
        return history_job.outcome(spark, find_history([lake], results=target.root), (), target)

    def fail(spark: Any, _target: RunTarget) -> JobOutput:
        spark.sql("SELECT raise_error('it broke')").collect()
        raise AssertionError("it went on")

    return {
        "plan": plan,
        "exposure": lambda spark, target: exposure_job.outcome(spark, find([lake]), target),
        "fixes": lambda spark, target: fix_job.outcome(spark, find([racks]), target, FixLimits()),
        "history": history,
        "history again": history,
        "failing": fail,
    }


def _summary(name: str, out: StoragePath, body: JobBody) -> Any:
    now = datetime.now(UTC)
    job, _, again = name.partition(" ")
    run = JobRun(job, run_target(out, job, now, again or "t"), now, "test")
    try:
        return dict(execute(run, SparkSettings(), partial(body)).summary)
    except PipelineError as error:
        return str(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
