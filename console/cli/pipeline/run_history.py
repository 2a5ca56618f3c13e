"""``ktriage pipeline history``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from console.cli.pipeline.spark_job import Wanted, moment, run_job
from console.exit_status import Status
from console.journal.reading import After, Before, RunRecord, read_runs
from console.output.pipeline_report import show_result
from console.program import Program
from pipeline.errors import PipelineError
from pipeline.history import history_job
from pipeline.history.timeline import timeline, usable
from pipeline.results import JobOutput
from pipeline.snapshot.catalog import read_catalogs
from pipeline.snapshot_sources import RefusedSnapshot, readable
from pipeline.storage import StoragePath

LISTED = 100

_BASELESS = "the full snapshot that its changes build on is not there"


def history(program: Program, wanted: Wanted) -> int:
    """Tells what happened; returns the exit status."""
    since = moment(wanted.since, "--since")
    parts = []
    clusters: dict[str, int] = {}
    refused: list[RefusedSnapshot] = []
    for catalog in read_catalogs(wanted.roots):
        mine = [RefusedSnapshot(*one, -1) for one in catalog.broken if wanted.means(one.cluster_id)]
        for cluster_id in filter(wanted.means, catalog.clusters):
            manifests, unreadable = readable(catalog.root, usable(catalog, cluster_id, since))
            mine += unreadable
            spoiled = [one.snapshot for one in mine if one.cluster_id == cluster_id]
            moments = timeline(cluster_id, manifests, spoiled)
            if manifests and not moments:
                mine.append(RefusedSnapshot(cluster_id, manifests[-1].snapshot, _BASELESS, -1))
            clusters[cluster_id] = len(moments)
            parts.append((catalog.root, manifests, moments))
        refused += mine
    missing = [one for one in wanted.cluster_ids if one not in clusters]
    if missing:
        raise PipelineError(f"no snapshot of cluster {', '.join(missing)} is there")
    if refused and not any(clusters.values()):
        raise PipelineError(refused[0].reason)
    looked = history_job.HistorySources(parts)
    acts = [act for one in clusters for act in _acts(one)] if wanted.journal else []

    def body(spark: Any, directory: StoragePath) -> JobOutput:
        history_job.run(spark, looked, acts, directory)
        summary = history_job.summarise(spark, directory, LISTED)
        gaps = {moments[0].cluster_id: moments[-1].segment for _, _, moments in looked.parts}
        asked = {"clusters": clusters, "since": wanted.since, "journal": wanted.journal}
        told = {"gaps": gaps, "refused": [one._asdict() for one in refused]}
        return JobOutput((history_job.INCIDENTS, history_job.EVENTS), asked, summary | told)

    result = run_job(wanted, body)
    show_result(program.screen, result, wanted.rows, json=wanted.json)
    return Status.PARTLY if refused or result.summary["quarantined"] else Status.DONE


def _acts(cluster_id: str) -> Iterator[tuple[Any, ...]]:
    """What this host's journal says was done to which partition: when, by whom, with what."""
    for run in read_runs(cluster_id):
        yield from _of_run(cluster_id, run)


def _of_run(cluster_id: str, run: RunRecord) -> Iterator[tuple[Any, ...]]:
    who = f"{run.header.get('user', '?')}@{run.header.get('host', '?')}"
    begun = {event.entry: event for event in run.events if isinstance(event, Before)}
    for event in run.events:
        before = begun.get(event.entry) if isinstance(event, After) else None
        if not isinstance(event, After) or before is None or before.action == "restore":
            continue
        for tp in event.applied:
            yield (cluster_id, tp.topic, tp.partition, datetime.fromisoformat(event.at), who, before.action)
