"""The course of ``ktriage readiness``."""

from __future__ import annotations

import shlex
from functools import partial

from backends.base.check_report import CheckReport
from backends.base.protocol import Backend
from console.cli.base.run import PageOutput, Run
from console.errors import Status
from console.jobs.status.readiness_facts import read_facts
from console.jobs.status.readiness_report import (
    ReadinessReport,
    readiness_document,
    recalled_runs,
    report_blocks,
    saved_runs,
    text_lines,
)
from console.last_healthy import recall, remember
from console.provenance import made_text, now_ms
from console.signals import StopRequest
from recovery.readiness import ReadinessFacts, Weight, readiness

MEMORY = "readiness"
"""The name under which the scores of a cluster are saved."""


def show_readiness(run: Run, fail_on: Weight, output: PageOutput) -> int:
    """Looks, prints, and saves the score; returns the exit status."""

    async def job(backend: Backend, _stop: StopRequest) -> tuple[CheckReport, ReadinessFacts]:
        return await read_facts(backend, at_ms)

    run.refuse_bundle("readiness")
    at_ms = now_ms()
    checked, facts = run.read(job)
    cluster_id = checked.cluster.cluster_id
    report = ReadinessReport(
        checked.cluster,
        readiness(facts),
        recalled_runs(recall(cluster_id, MEMORY)),
        at_ms,
        lambda line: _completed(run, line),
    )
    title = f"Readiness of cluster {cluster_id}"
    blocks = report_blocks(report, made_text(at_ms))
    run.out_page(output, title, blocks, text_lines(report), partial(readiness_document, report))
    if report.this_run is not None:
        remember(cluster_id, MEMORY, saved_runs((*report.earlier, report.this_run)))
    return Status.PARTLY if report.found.at_least(fail_on) else Status.DONE


def _completed(run: Run, line: str) -> str:
    """A command that can be copied: with the words that name the cluster, or a broker's address; "" where it could
    not be run, as Kafka's tools on a simulation.
    """
    name, _, words = line.partition(" ")
    if run.target.kind == "simulated" and (name != "ktriage" or "--broker" in words):
        return ""
    if not line or name == "ktriage":
        return run.target.command(*words.split()) if line else ""
    config = run.target.command_config
    security = "" if config is None else f" --command-config {shlex.quote(str(config))}"
    return line.replace("BOOTSTRAP", f"{run.target.bootstrap or 'HOST:PORT'}{security}")
