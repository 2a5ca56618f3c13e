"""Runs ``ktriage report`` and ``ktriage handover``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from backends.base.errors import BackendError
from backends.base.membership import Membership
from backends.base.protocol import Backend
from backends.base.simulated_clusters import is_simulated
from console.change.own_changes import OwnChanges, own_changes
from console.cli.base.option_values import moment_ms
from console.cli.base.quorum_run import read_quorum
from console.cli.base.run import PageOutput, Run
from console.errors import ConsoleError, InputError, Status
from console.jobs.incident.handover_report import handover_blocks
from console.jobs.incident.incident import (
    Incident,
    IncidentSources,
    collect,
    collect_for_handover,
)
from console.jobs.incident.incident_json import report_document
from console.jobs.incident.incident_report import report_blocks
from console.jobs.incident.plan_transactions import read_plan_transactions
from console.jobs.timeline.timeline import VIRTUAL, EventFilter, TimelineSource, from_directory, gaps
from console.output.report_markdown import plain_lines
from console.paths import records_dir
from console.plan_files import read
from console.provenance import made_text, now_ms
from console.reading.cluster_reading import ClusterReading
from console.reading.read_cluster import read_cluster
from console.reading.remembered_voters import applied_rebuild, ask_every_controller
from console.signals import StopRequest
from recovery.membership.controllers_asked import ControllersAsked
from recovery.membership.quorum import Quorum
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.metadata_log.timeline import MetadataTimeline
from recovery.plan.values import Plan

ANSWERS_SECONDS = 10.0
"""So long brokers have to tell their logs: a report must not wait for a dead one."""


@dataclass(frozen=True, slots=True)
class IncidentOptions:
    """What was asked for; times as the options have them."""

    cluster_id: str | None
    since: str
    until: str | None = None
    plans: tuple[Path, ...] = ()
    rescues: tuple[Path, ...] = ()
    metadata_dir: Path | None = None


def write_report(run: Run, options: IncidentOptions, *, html: bool) -> int:
    """Prints the report; returns the exit status. Raises InputError, JournalError."""
    incident = _with_answers(run, collect(_sources(run, options)))
    blocks = list(report_blocks(incident, _title(run), made_text(now_ms()), _arguments(run)))
    form = PageOutput.JSON if run.json else PageOutput.HTML if html else PageOutput.MARKDOWN
    title = f"Incident report: {incident.sources.cluster_id}"
    run.out_page(form, title, blocks, (), partial(report_document, incident))
    run.screen.say(*incident.sources.gaps)
    return Status.DONE


def write_handover(run: Run, options: IncidentOptions) -> int:
    """Prints the hand-over page; returns the exit status. Raises InputError."""
    incident = _with_answers(run, collect_for_handover(_sources(run, options)))
    if run.json:
        run.screen.out(report_document(incident))
    else:
        run.screen.out(plain_lines(handover_blocks(incident, made_text(now_ms()), _arguments(run))))
    run.screen.say(*incident.sources.gaps)
    return Status.DONE


def _with_answers(run: Run, incident: Incident) -> Incident:
    now, progress = incident.sources.now, run.screen.progress
    if now is None or not any(file.plan is not None for file in incident.plans):
        return incident

    async def job(backend: Backend, _stop: StopRequest) -> Incident:
        await backend.open()
        read = await read_plan_transactions(backend, incident.plans, ANSWERS_SECONDS, progress)
        return replace(incident, transactions=read or None)

    try:
        return run.read(job)
    except BackendError as error:
        gaps = (
            *incident.sources.gaps,
            f"Transactions were not read: {error}",
        )
        return replace(incident, sources=replace(incident.sources, gaps=gaps), transactions=())


def _title(run: Run) -> str:
    return "" if run.named is None else run.named.title


def _arguments(run: Run) -> Sequence[str]:
    return () if run.named is None else run.named.arguments


def _period(options: IncidentOptions) -> tuple[int, int]:
    """Its beginning and end, in ms since 1970. Raises InputError."""
    since = moment_ms("--since", options.since)
    until = now_ms() if options.until is None else moment_ms("--until", options.until)
    if since >= until:
        raise InputError(f"--since {options.since}: that is after the end of the period")
    return since, until


def _sources(run: Run, options: IncidentOptions) -> IncidentSources:
    _period(options)  # a mistake in it is told before anything is asked
    found: list[str] = []
    now = _present_state(run, found)
    since, until = _period(options)  # of a bundle, which is open now, the times are those of its reading
    cluster_id = options.cluster_id or _named_by(now, options.plans) or _only_recorded(run, found)
    virtual = run.named is not None and (
        run.named.kind == "simulated" or (run.named.kind == "bundle" and is_simulated(cluster_id))
    )
    timeline = _timeline(run, options.metadata_dir, cluster_id, now, found)
    plans, rescues = options.plans, options.rescues
    rebuilt = None if timeline is None else timeline.timeline.history.rebuilt
    asked = None if rebuilt is None or now is None else _asked(run, cluster_id, rebuilt, found)
    if asked is not None and now is not None and isinstance(now.quorum, Quorum):
        now = now.with_parts(second_quorum=asked.second_quorum(now.quorum))
    done = applied_rebuild(cluster_id)
    return IncidentSources(
        cluster_id, since, until, plans, rescues, timeline, now, virtual, tuple(found), rebuilt, asked, done
    )


def _asked(run: Run, cluster_id: str, rebuilt: RebuiltLog, problems: list[str]) -> ControllersAsked | None:
    """Of a rebuilt quorum: who answers at each controller's address, those of the old voters too."""

    async def job(quorum: Membership, _stop: StopRequest) -> ControllersAsked:
        await quorum.open()
        return await ask_every_controller(quorum, cluster_id, rebuilt)

    try:
        return read_quorum(run, job)
    except (BackendError, ConsoleError) as error:
        problems.append(f"Whether old voters of the rebuilt quorum run was not asked: {error}")
        return None


def _present_state(run: Run, problems: list[str]) -> ClusterReading | None:
    """The cluster as it is now; None where no broker is named or answers."""
    if run.named is None or run.named.kind == "controllers":
        problems.append("The cluster's present state was not read: no broker was named.")
        return None

    async def job(backend: Backend, _stop: StopRequest) -> ClusterReading:
        return await read_cluster(backend, ANSWERS_SECONDS, now_ms() / 1000, run.screen.progress)

    try:
        return run.read(job)
    except BackendError as error:
        problems.append(f"The cluster's present state was not read: {error}")
        return None


def _named_by(now: ClusterReading | None, plans: Sequence[Path]) -> str:
    if now is not None:
        return now.cluster.cluster_id
    for path in plans:
        plan = read(path)
        if isinstance(plan, Plan):
            return plan.header.cluster_id
    return ""


def _only_recorded(run: Run, problems: Sequence[str]) -> str:
    """The cluster of the journal, if it has only one and none was named. Raises InputError."""
    root = records_dir()
    paths = root.iterdir() if root.is_dir() else ()
    known = sorted(unquote(path.name) for path in paths if any(path.glob("*.jsonl")))
    listed = f"in the journal: {', '.join(known) or 'none'}"
    if run.named is not None:
        why = "; ".join(problems)
        raise InputError(f"{why} Give --cluster-id ID with it ({listed})")
    if len(known) != 1:
        raise InputError(f"which cluster? Give --cluster-id ID or name the cluster ({listed})")
    return known[0]


def _timeline(
    run: Run, directory: Path | None, cluster_id: str, now: ClusterReading | None, problems: list[str]
) -> TimelineSource | None:
    """The metadata log; None, and why, where it cannot be read. Raises InputError for a directory."""
    if directory is not None:
        return replace(from_directory(directory, EventFilter()), own=own_changes(cluster_id)[0])
    if run.named is None:
        problems.append("The metadata log was not read: no cluster and no --metadata-dir was named.")
        return None

    if now is not None and now.lost is not None and now.lost.old_running:
        problems.append("The metadata log was not read: old voters lead, and theirs is not the cluster's.")
        return None

    async def job(quorum: Membership, _stop: StopRequest) -> TimelineSource:
        await quorum.open()
        log = await quorum.metadata_log()
        progress = run.screen.progress
        await log.read(progress=lambda done, of: progress("reading the metadata log", done, of))
        notes = ((VIRTUAL,) if quorum.simulated else ()) + gaps(log.history, log.snapshot_offset)
        own = OwnChanges() if quorum.simulated else own_changes(cluster_id)[0]
        return TimelineSource(f"Metadata log of {quorum.title}", MetadataTimeline(log.history), notes, own)

    try:
        return read_quorum(run, job)
    except (BackendError, ConsoleError) as error:
        # Why no controller leads is said of the cluster.
        why = error if now is None or now.lost is None else "no controller leads."
        problems.append(f"The metadata log was not read: {why}")
        return None
