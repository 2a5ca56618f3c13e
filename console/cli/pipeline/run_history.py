"""``ktriage pipeline history``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from console.cli.pipeline.job_options import JobOptions
from console.cli.pipeline.spark_job import parsed_time, run_job, storage_paths
from console.exit_status import Status
from console.journal.run_records import EntryBegun, EntryEnded, RunRecord, read_runs
from console.output.pipeline_report import show_result
from pipeline.errors import PipelineError
from pipeline.history import history_job
from pipeline.history.history_job import HistorySources
from pipeline.history.timeline import timeline, usable
from pipeline.results import JobOutput
from pipeline.snapshot.catalog import read_catalogs
from pipeline.snapshot_sources import RefusedSnapshot, readable
from pipeline.storage import StoragePath

LISTED = 100
"""Rows of each list in the summary."""

_BASELESS = "the full snapshot that its changes build on is missing"


class _Found(NamedTuple):
    """``sources``: root, manifests and timeline of each cluster. ``looks``: how many usable snapshots each has."""

    sources: HistorySources
    looks: dict[str, int]
    refused: list[RefusedSnapshot]


def run_history(
    job: JobOptions, sources: Sequence[str], cluster_ids: Sequence[str], *, since: str | None, journal: bool
) -> int:
    """Finds the incidents since the given time; returns the exit status.

    ``journal``: adds who recovered what, from the journals on this host. Raises InputError, PipelineError.
    """
    found = _find(storage_paths(sources), cluster_ids, parsed_time(since, "--since"))
    actions = [action for one in found.looks for action in _actions(one)] if journal else []

    def body(spark: Any, directory: StoragePath) -> JobOutput:
        history_job.run(spark, found.sources, actions, directory)
        summary = history_job.summarise(spark, directory, LISTED)
        gaps = {moments[0].cluster_id: moments[-1].segment for _, _, moments in found.sources.parts}
        asked = {"clusters": found.looks, "since": since, "journal": journal}
        more = {"gaps": gaps, "refused": [one._asdict() for one in found.refused]}
        return JobOutput((history_job.INCIDENTS, history_job.EVENTS), asked, summary | more)

    result = run_job(job, "history", body)
    show_result(job.program.screen, result, job.rows, json=job.json)
    return Status.PARTLY if found.refused or result.summary["quarantined"] else Status.DONE


def _find(roots: Sequence[StoragePath], cluster_ids: Sequence[str], since: datetime | None) -> _Found:
    """The snapshots that can be used, and those that cannot. Raises PipelineError if none can."""
    parts = []
    looks: dict[str, int] = {}
    refused: list[RefusedSnapshot] = []

    def meant(cluster_id: str) -> bool:
        return not cluster_ids or cluster_id in cluster_ids

    for catalog in read_catalogs(roots):
        mine = [RefusedSnapshot(*one, -1) for one in catalog.broken if meant(one.cluster_id)]
        for cluster_id in filter(meant, catalog.clusters):
            manifests, unreadable = readable(catalog.root, usable(catalog, cluster_id, since))
            mine += unreadable
            unreadable_names = [one.snapshot for one in mine if one.cluster_id == cluster_id]
            moments = timeline(cluster_id, manifests, unreadable_names)
            if manifests and not moments:
                mine.append(RefusedSnapshot(cluster_id, manifests[-1].snapshot, _BASELESS, -1))
            looks[cluster_id] = len(moments)
            parts.append((catalog.root, manifests, moments))
        refused += mine
    missing = [one for one in cluster_ids if one not in looks]
    if missing:
        raise PipelineError(f"there is no snapshot of cluster {', '.join(missing)}")
    if refused and not any(looks.values()):
        raise PipelineError(refused[0].reason)
    return _Found(HistorySources(parts), looks, refused)


def _actions(cluster_id: str) -> Iterator[tuple[Any, ...]]:
    """The elections in this host's journal: partition, time, user and command."""
    for run in read_runs(cluster_id):
        yield from _actions_of_run(cluster_id, run)


def _actions_of_run(cluster_id: str, run: RunRecord) -> Iterator[tuple[Any, ...]]:
    who = f"{run.header.get('user', '?')}@{run.header.get('host', '?')}"
    begun = {event.entry: event for event in run.events if isinstance(event, EntryBegun)}
    for event in run.events:
        before = begun.get(event.entry) if isinstance(event, EntryEnded) else None
        if not isinstance(event, EntryEnded) or before is None or before.action == "restore":
            continue
        for tp in event.applied:
            yield (cluster_id, tp.topic, tp.partition, datetime.fromisoformat(event.at), who, before.action)
