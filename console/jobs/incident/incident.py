"""An incident as it was recorded: runs of the journal, plans, rescues, and the cluster's own metadata log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from console.errors import InputError
from console.jobs.consumers.hanging_transactions import PartitionsTransactions
from console.jobs.timeline.timeline import TimelineSource
from console.journal.change_kinds import KINDS
from console.journal.cluster_lock import LockHolder
from console.journal.errors import JournalError
from console.journal.journal import cluster_directory, running
from console.journal.planned_elections import PLANNED, PlannedElection, planned_elections
from console.journal.recorded_keeps import keeps_of
from console.journal.recorded_restores import RecordedRestore, recorded_restores
from console.journal.run_records import (
    EntryBegun,
    RunRecord,
    of_other_clusters,
    other_runs_lines,
    read_runs,
    unread_lines,
)
from console.journal.unfinished_entries import Unfinished, left_open
from console.plan_files import read, read_regular
from console.reading.cluster_reading import ClusterReading
from console.rescue_files.manifest import BranchManifest, RescueHeader
from console.rescue_files.rescued_branch import open_rescue
from console.rescue_files.restore_journal import restored_records
from recovery.heal_plan import ReplicaMove
from recovery.membership.controllers_asked import ControllersAsked
from recovery.metadata_log.outages import Outage, fenced_since, outages
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.metadata_log.timeline import ClusterEvent
from recovery.model import TopicPartition, Unknown, Why
from recovery.plan.values import Plan, PlanRow
from recovery.plan.write import digest
from recovery.rescue_branches import UnreadReplica
from recovery.wording.quantity_text import counted, some_of


class PlanFile(NamedTuple):
    """A plan as it was found on disk; ``problem`` says why it was not, "" where it was."""

    path: Path
    plan: Plan | None
    digest: str = ""
    problem: str = ""


class ElectionRound(NamedTuple):
    """The elections of one run. ``file`` is None where they were by no plan."""

    run: RunRecord
    begun: EntryBegun
    elections: tuple[PlannedElection, ...]
    file: PlanFile | None

    def row(self, election: PlannedElection) -> PlanRow | None:
        """The row of the plan, if the plan still says what was elected."""
        plan = None if self.file is None else self.file.plan
        row = None if plan is None else plan.row(election.tp)
        return row if row is not None and row.leader == election.planned_leader else None


class PlanTransactions(NamedTuple):
    """What is open on the partitions of one plan; Unknown: why it was not read."""

    file: PlanFile
    found: PartitionsTransactions | Unknown

    @property
    def unread(self) -> tuple[str, ...]:
        """Why there may be other hanging transactions, in partitions that somebody leads."""
        if isinstance(self.found, Unknown):
            return (str(self.found),)
        return self.found.unread_reasons


class RescuedBranchState(NamedTuple):
    """What was read of one branch; ``manifest`` None: its reading was never finished."""

    name: str
    offsets: int
    manifest: BranchManifest | None

    @property
    def whole(self) -> bool:
        return self.manifest is not None and self.manifest.whole


class RescueState(NamedTuple):
    """A rescue directory as it is now. ``unread`` are lines; ``restored`` are (target, records)."""

    directory: Path
    header: RescueHeader | None
    branches: tuple[RescuedBranchState, ...] = ()
    unread: tuple[str, ...] = ()
    restored: tuple[tuple[str, int], ...] = ()
    problem: str = ""
    unread_by_broker: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IncidentSources:
    """Where an incident is read from. ``plans`` and ``rescues`` were named beside those that the journal names.

    ``timeline`` and ``now`` (the cluster's present state) are None where they were not read; then ``gaps`` says
    why, one line each. ``virtual``: the times of the timeline are a simulation's. ``rebuilt``: where the metadata
    log says that the quorum was rebuilt; ``asked``: what each controller answers then, None: nobody asked.
    ``rebuild``: the last rebuild that was carried out on this host, in one line.
    """

    cluster_id: str
    since_ms: int
    until_ms: int
    plans: tuple[Path, ...] = ()
    rescues: tuple[Path, ...] = ()
    timeline: TimelineSource | None = None
    now: ClusterReading | None = None
    virtual: bool = False
    gaps: tuple[str, ...] = ()
    rebuilt: RebuiltLog | None = None
    asked: ControllersAsked | None = None
    rebuild: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """Everything that is known of it. ``runs`` are those of the period, oldest first; ``unfinished`` is what any
    run left open, and ``going_on`` the run that holds the lock now. ``fenced``: since when brokers are, in ms, by
    the whole metadata log. ``earlier`` are runs before the period that sent something: what they left is not looked
    at, but for what ``unfinished`` has. ``transactions`` is None where nobody asked for them, and empty
    where they could not be read (``sources.gaps``). ``recorded``: whether the journal could be read. ``keeps`` are
    the moves that were to keep logs.
    """

    sources: IncidentSources
    runs: tuple[RunRecord, ...]
    rounds: tuple[ElectionRound, ...]
    plans: tuple[PlanFile, ...]
    rescues: tuple[RescueState, ...]
    restores: tuple[RecordedRestore, ...]
    events: tuple[ClusterEvent, ...]
    outages: tuple[Outage, ...]
    unfinished: Unfinished
    going_on: LockHolder | None
    fenced: Mapping[int, int] = field(default_factory=dict)
    earlier: tuple[RunRecord, ...] = ()
    transactions: tuple[PlanTransactions, ...] | None = None
    recorded: bool = True
    keeps: Mapping[TopicPartition, ReplicaMove] = field(default_factory=dict)


def collect(sources: IncidentSources) -> Incident:
    """Reads the journal and the files that it names. Raises JournalError, and InputError for a named file or the
    state directory.
    """
    return _collected(*_of_this_cluster(sources, read_runs(sources.cluster_id)))


def collect_for_handover(sources: IncidentSources) -> Incident:
    """As :func:`collect`, but a journal that cannot be read is a gap: the next person on call needs the state of
    the cluster all the same.
    """
    try:
        recorded = read_runs(sources.cluster_id)
    except (InputError, JournalError) as error:
        gaps = (*sources.gaps, f"The journal was not read: {error}")
        return replace(_collected(replace(sources, gaps=gaps), ()), recorded=False)
    return _collected(*_of_this_cluster(sources, recorded))


def _of_this_cluster(
    sources: IncidentSources, recorded: Sequence[RunRecord]
) -> tuple[IncidentSources, tuple[RunRecord, ...]]:
    """The runs that may have been on the cluster as it is now, and a gap for the others; all where it was not
    read.
    """
    if sources.now is None:
        return sources, tuple(recorded)
    own, others = of_other_clusters(recorded, sources.now.cluster_marks)
    gaps = (f"{line[:1].upper()}{line[1:]}." for line in other_runs_lines(others))
    return replace(sources, gaps=(*sources.gaps, *gaps)), own


def _collected(sources: IncidentSources, recorded: Sequence[RunRecord]) -> Incident:
    runs = tuple(run for run in recorded if _within(run, sources))
    unread = (f"The journal was not read whole: {line}." for run in runs for line in unread_lines(run))
    sources = replace(sources, gaps=(*sources.gaps, *unread))
    named = [_plan_file(path, must=True) for path in sources.plans]
    files = _PlanFiles(sources.cluster_id, named)
    rounds = tuple(_rounds(runs, files))
    wanted = {file.plan.header.plan_id for file in named if file.plan is not None}
    if wanted:
        rounds = tuple(one for one in rounds if one.begun.detail.get("planId") in wanted)
    source = sources.timeline
    reported = () if source is None else tuple(source.timeline.events())
    rebuilt = None if source is None else source.timeline.history.rebuilt
    of_plan = {row.tp for file in named if file.plan is not None for row in file.plan.rows}
    events = tuple(event for event in reported if _tells(event, sources, of_plan))
    return Incident(
        sources,
        runs,
        rounds,
        tuple(files.used()),
        tuple(_rescue(path) for path in _rescue_directories(runs, sources.rescues)),
        recorded_restores(runs),
        events,
        tuple(outage for outage in outages(reported, rebuilt) if _lasted(outage, sources, of_plan)),
        left_open(recorded),
        running(sources.cluster_id),
        fenced_since(event for event in reported if sources.virtual or event.time_ms <= sources.until_ms),
        tuple(run for run in recorded if run.events and _before(run, sources)),
        keeps=keeps_of(recorded),
    )


def _within(run: RunRecord, sources: IncidentSources) -> bool:
    """Whether it began in the period; a run that did not say when is never left out."""
    at = _began_ms(run)
    return at is None or sources.since_ms <= at <= sources.until_ms


def _before(run: RunRecord, sources: IncidentSources) -> bool:
    at = _began_ms(run)
    return at is not None and at < sources.since_ms


def _began_ms(run: RunRecord) -> float | None:
    try:
        return datetime.fromisoformat(str(run.header.get("at", ""))).timestamp() * 1000
    except ValueError:
        return None


def _tells(event: ClusterEvent, sources: IncidentSources, of_plan: Iterable[object]) -> bool:
    if not (sources.virtual or sources.since_ms <= event.time_ms <= sources.until_ms):
        return False
    return not of_plan or not event.moves or any(move.tp in of_plan for move in event.moves)


def _lasted(outage: Outage, sources: IncidentSources, of_plan: Iterable[object]) -> bool:
    """An outage that began before the period and reached into it belongs to it."""
    if of_plan and outage.tp not in of_plan:
        return False
    ended_before = outage.until_ms is not None and outage.until_ms < sources.since_ms
    return sources.virtual or (outage.since_ms <= sources.until_ms and not ended_before)


class _PlanFiles:
    """Plans by their id: those that were named, and those that the journal names, each read once."""

    def __init__(self, cluster_id: str, named: Sequence[PlanFile]) -> None:
        self._saved = cluster_directory(cluster_id) / "plans"
        self._by_path = {file.path: file for file in named}

    def of(self, begun: EntryBegun) -> PlanFile | None:
        """The plan of an entry; None where its elections were by none."""
        plan_id, name = begun.detail.get("planId"), str(begun.detail.get("file", ""))
        if not plan_id:
            return None
        for file in self._by_path.values():
            if file.plan is not None and file.plan.header.plan_id == plan_id:
                return file
        path = Path(name)
        # A relative path was relative to where that run was started.
        places = [path] if path.is_absolute() else [path, self._saved / path.name]
        found = PlanFile(path, None, problem="the file is not where the run found it")
        for place in places if name else ():
            file = self._by_path.get(place) or _plan_file(place)
            self._by_path[place] = file
            if file.plan is not None and file.plan.header.plan_id == plan_id:
                return file
            if file.plan is not None:
                found = PlanFile(path, None, problem="the file holds another plan now")
            elif place.exists():
                found = file
        return found

    def used(self) -> Iterator[PlanFile]:
        return (file for file in self._by_path.values() if file.plan is not None)


def _plan_file(path: Path, *, must: bool = False) -> PlanFile:
    """Raises InputError where it ``must`` be a plan."""
    try:
        # What a journal names may have become a pipe that nobody writes to.
        plan = read(path) if must else read_regular(path, lambda: False)
    except InputError as error:
        if must:
            raise
        return PlanFile(path, None, problem=str(error))
    if not isinstance(plan, Plan):
        if must:
            raise InputError(f"{path}: names leaders only, and is no plan of ktriage")
        return PlanFile(path, None, problem="it names leaders only")
    return PlanFile(path, plan, digest(plan))


def _rounds(runs: Iterable[RunRecord], files: _PlanFiles) -> Iterator[ElectionRound]:
    for run in runs:
        for begun, ended in run.entries(PLANNED):
            yield ElectionRound(run, begun, planned_elections(begun, ended), files.of(begun))


def _rescue_directories(runs: Sequence[RunRecord], named: Iterable[Path]) -> list[Path]:
    found = [
        Path(str(begun.detail["directory"]))
        for run in runs
        for begun, ended in run.entries(*(kind.action for kind in KINDS.values() if kind.rescue))
        if "directory" in begun.detail and not (ended is not None and "notBegun" in ended.result)
    ]
    return list({path.absolute(): path for path in (*found, *named)}.values())


def _rescue(directory: Path) -> RescueState:
    try:
        contents = open_rescue(directory)
        back = tuple((target, records) for _, target, records in restored_records(directory))
    except InputError as error:
        return RescueState(directory, None, problem=str(error))
    branches = tuple(
        RescuedBranchState(
            f"{one.branch.tp} of broker {one.branch.broker}", one.branch.end - one.branch.start, one.manifest
        )
        for one in contents.branches
    )
    unread = tuple(f"{one.tp} of broker {one.broker}: {one.why}" for one in contents.index.unread)
    brief = tuple(_not_rescued(contents.index.unread))
    return RescueState(directory, contents.index.header, branches, unread, back, unread_by_broker=brief)


def _not_rescued(unread: Iterable[UnreadReplica]) -> Iterator[str]:
    """One line for each broker, whatever the number of partitions; the reason where it is not that it is silent."""
    by_broker: dict[int, list[UnreadReplica]] = {}
    for one in unread:
        by_broker.setdefault(one.broker, []).append(one)
    for broker, replicas in by_broker.items():
        silent = all(one.why.startswith(Why.NOT_ANSWERED.value) for one in replicas)
        why = "" if silent else f" ({replicas[0].why})"
        who = f"{'silent ' if silent else ''}broker {broker}"
        names = some_of(list(dict.fromkeys(one.tp for one in replicas)), 3)
        yield f"{counted(len(replicas), 'partition')} of {who}: {names}{why}"
