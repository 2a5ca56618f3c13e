"""``ktriage pipeline exposure``."""

from __future__ import annotations

from typing import Any

from console.cli.pipeline_running import Wanted, moment, run_job
from console.cli.run import Program
from console.cli.status import Status
from console.output.pipeline import show_result
from pipeline.exposure import job
from pipeline.places import Place
from pipeline.sources import find


def exposure(program: Program, wanted: Wanted) -> int:
    """Looks for what would fail next; returns the exit status."""
    sources = find(wanted.roots, wanted.cluster_ids, moment(wanted.at, "--at"))

    def body(spark: Any, directory: Place) -> tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]:
        job.run(spark, sources, directory)
        return (job.EXPOSURES, job.TOPICS), sources.asked, job.summarise(spark, sources, directory)

    result = run_job(wanted, body)
    show_result(program.screen, result, wanted.rows, json=wanted.json)
    return Status.PARTLY if sources.refused or result.summary["quarantined"] else Status.DONE
