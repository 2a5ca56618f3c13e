"""The course of ``ktriage readiness``."""

from __future__ import annotations

import shlex

from backends.base.check_report import CheckReport
from backends.base.protocol import Backend
from console.cli.base.run import Run
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
from console.output.report_html import html_page
from console.output.report_markdown import markdown_lines
from console.provenance import made_by, now
from console.signals import StopRequest
from recovery.readiness import ReadinessFacts, Weight, readiness
from recovery.wording.quantity_text import time_text

MEMORY = "readiness"
"""The name under which the scores of a cluster are saved."""


def show_readiness(run: Run, fail_on: str, output: str) -> int:
    """Looks, prints, and saves the score; returns the exit status."""

    async def job(backend: Backend, _stop: StopRequest) -> tuple[CheckReport, ReadinessFacts]:
        return await read_facts(backend, at_ms)

    run.refuse_bundle("readiness")
    at_ms = round(now().timestamp() * 1000)
    checked, facts = run.read(job)
    cluster_id = checked.cluster.cluster_id
    report = ReadinessReport(
        checked.cluster,
        readiness(facts),
        recalled_runs(recall(cluster_id, MEMORY)),
        at_ms,
        lambda line: _completed(run, line),
    )
    made = f"{time_text(at_ms)} by {made_by()}"
    if output == "json" or run.json:
        run.screen.out(readiness_document(report))
    elif output == "html":
        title = f"Readiness of cluster {cluster_id}"
        run.screen.out(html_page(title, report_blocks(report, made)).splitlines())
    elif output == "markdown":
        run.screen.out(markdown_lines(report_blocks(report, made)))
    else:
        run.screen.out(text_lines(report))
    if report.this_run is not None:
        remember(cluster_id, MEMORY, saved_runs((*report.earlier, report.this_run)))
    return Status.PARTLY if report.found.at_least(Weight[fail_on.upper()]) else Status.DONE


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
