"""``ktriage pipeline exposure``."""

from __future__ import annotations

from typing import Any

from console.cli.base.run import Program
from console.cli.pipeline.running import Wanted, moment, run_job
from console.exit_status import Status
from console.output.pipeline import show_result
from pipeline.exposure import job
from pipeline.places import Place
from pipeline.results import Outcome
from pipeline.sources import find


def exposure(program: Program, wanted: Wanted) -> int:
    """Looks for what would fail next; returns the exit status."""
    sources = find(wanted.roots, wanted.cluster_ids, moment(wanted.at, "--at"))

    def body(spark: Any, directory: Place) -> Outcome:
        job.run(spark, sources, directory)
        told = job.summarise(spark, sources, directory)
        return Outcome((job.EXPOSURES, job.TOPICS), sources.asked, told)

    result = run_job(wanted, body)
    show_result(program.screen, result, wanted.rows, json=wanted.json)
    return Status.PARTLY if sources.refused or result.summary["quarantined"] else Status.DONE
