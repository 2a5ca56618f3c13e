"""``ktriage pipeline exposure``."""

from __future__ import annotations

from typing import Any

from console.cli.pipeline.spark_job import Wanted, moment, run_job
from console.exit_status import Status
from console.output.pipeline_report import show_result
from console.program import Program
from pipeline import exposure_job
from pipeline.results import JobOutput
from pipeline.snapshot_sources import find
from pipeline.storage import StoragePath


def exposure(program: Program, wanted: Wanted) -> int:
    """Looks for what would fail next; returns the exit status."""
    sources = find(wanted.roots, wanted.cluster_ids, moment(wanted.at, "--at"))

    def body(spark: Any, directory: StoragePath) -> JobOutput:
        exposure_job.run(spark, sources, directory)
        told = exposure_job.summarise(spark, sources, directory)
        return JobOutput((exposure_job.EXPOSURES, exposure_job.TOPICS), sources.asked, told)

    result = run_job(wanted, body)
    show_result(program.screen, result, wanted.rows, json=wanted.json)
    return Status.PARTLY if sources.refused or result.summary["quarantined"] else Status.DONE
