"""Reads what elections cut off: from the brokers that hold it, before the elections are sent, and from disks."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from backends.base.answers import Depth, SurveyRequest
from backends.base.protocol import Backend, Progress
from backends.disk_scan.log_dir_scan import scan_log_dirs
from console.disk_evidence_files import readings_of_scan
from console.errors import InputError, StalePlan
from console.jobs.rescue.rescue_run import BranchResult, RescueRun, RescueSource
from console.journal.journal_lines import moment
from console.journal.unread_disks import DiskPartition
from console.provenance import made_by, now, version
from console.reading.disk_evidence import refuse_other_clusters
from console.reading.partition_selection import described
from console.reading.plan_comparison import prepare
from console.rescue_files.disk_batches import DiskBatches
from console.rescue_files.manifest import RescueHeader
from console.rescue_files.rescue_directory import RescueDirectory
from recovery.disk_evidence import DiskLog, DiskReading
from recovery.loss import without
from recovery.model import NO_EPOCH, PartitionState, Survey, TopicPartition, Unknown
from recovery.plan.judgement import Judgement, RowDecision
from recovery.plan.values import Plan, PlanRow
from recovery.plan.write import digest
from recovery.rescue_branches import (
    DiskCopy,
    RescueBranch,
    UnreadReplica,
    branches_with_disks,
    rescue_branches,
    unread_replicas,
)
from recovery.wording.quantity_text import counted
from recovery.wording.unread_disk_text import left_out_text

# Log dirs of brokers that are down, as sources of a rescue.


@dataclass(frozen=True, slots=True)
class RescueDisks:
    """What was read from them, one reading for each broker."""

    readings: tuple[DiskReading, ...]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        found = {tp for reading in self.readings for tp in reading.logs}
        found.update(stray.tp for reading in self.readings for stray in reading.strays)
        return tuple(sorted(found))

    def copies(self, state: PartitionState) -> tuple[DiskCopy, ...]:
        """The partition's logs on the disks, strays too. A log that lost its tail counts as far as it goes."""
        return tuple(
            DiskCopy(broker, disk.log) for broker, disk in self._of(state) if _refusal(state, disk) is None
        )

    def unread(self, state: PartitionState) -> tuple[UnreadReplica, ...]:
        """What of the partition cannot be had from the disks, and why."""
        found = []
        for broker, disk in self._of(state):
            refusal = _refusal(state, disk)
            reasons = (refusal,) if refusal is not None else (disk.lost_tail, _old_messages(disk))
            found += [
                UnreadReplica(state.tp, broker, f"its disk: {why}", partly=refusal is None)
                for why in reasons
                if why is not None
            ]
        return tuple(found)

    def sources(self, branches: Iterable[RescueBranch]) -> list[RescueSource]:
        """One for each broker whose disk has some of the branches; one more for each stray of a partition."""
        strays = {stray.folder for reading in self.readings for stray in reading.strays}
        apart: dict[tuple[int, str], list[RescueBranch]] = {}
        for branch in branches:
            if branch.log_dir:
                own = branch.log_dir if branch.log_dir in strays else ""
                apart.setdefault((branch.broker, own), []).append(branch)
        found = []
        for (_, stray), mine in apart.items():
            folders = {
                one.tp: Path(stray or Path(one.log_dir, f"{one.tp.topic}-{one.tp.partition}")) for one in mine
            }
            found.append(RescueSource(DiskBatches(folders).read, tuple(mine)))
        return found

    def _of(self, state: PartitionState) -> list[tuple[int, DiskLog]]:
        """A stray's folder stands in the place of its log dir, as what is read of it is named by that."""
        found = []
        for one in self.readings:
            if state.tp in one.logs:
                found.append((one.broker, one.logs[state.tp]))
            for stray in one.strays:
                if stray.tp == state.tp:
                    log = stray.disk.log._replace(log_dir=stray.folder)
                    found.append((one.broker, stray.disk._replace(log=log)))
        return found


async def read_rescue_disks(
    log_dirs: Sequence[Path], cluster_id: str, progress: Progress | None
) -> RescueDisks:
    """Scans the dirs. Raises InputError where one cannot be read, or is of another cluster."""

    def scanned(done: int, of: int) -> None:
        if progress is not None:
            progress("reading partitions of the disk", done, of)

    if not log_dirs:
        return RescueDisks(())
    now_ms = int(time.time() * 1000)
    dirs = [str(path) for path in log_dirs]
    scan = await asyncio.to_thread(scan_log_dirs, dirs, socket.gethostname(), now_ms, progress=scanned)
    readings = readings_of_scan(scan)
    refuse_other_clusters(readings, cluster_id)
    return RescueDisks(readings)


def _old_messages(disk: DiskLog) -> str | None:
    """What of the log is of a format that is not rescued: nobody can say whether the leader has the same."""
    if not disk.old_messages:
        return None
    return (
        f"{counted(disk.old_messages, 'message')} of formats 0 and 1, before offset {disk.old_end}, are neither"
        " compared nor rescued; a broker of today serves them from this disk"
    )


def _refusal(state: PartitionState, disk: DiskLog) -> str | None:
    """Why the log on the disk is not one of this partition's."""
    if not disk.topic_id:
        return "it does not tell the topic's id (no partition.metadata)"
    if disk.topic_id != state.topic_id:
        return f"another topic id: the disk has {disk.topic_id}, the cluster {state.topic_id}"
    return None


SURVEY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RescueRequest:
    """Where to write to, and how many bytes each broker is asked for per second at most; None: no limit.

    ``elect_anyway``, where elections follow: those of partitions whose rescue is not whole are sent too.
    ``log_dirs`` are those of brokers that are down; they are read too.
    """

    directory: Path
    rate: int | None = None
    elect_anyway: bool = False
    log_dirs: tuple[Path, ...] = ()


class DiskUse(NamedTuple):
    """What of one broker's disks, given by their log dir, is in a rescue: ``offsets`` that no broker told.

    ``partitions`` of those that were asked for are on them; ``strays`` of the logs the broker has set aside.
    ``answers``: the broker itself told its logs too.
    ``read`` are those of the partitions whose logs were compared, and whose branches are whole. ``reading``: what
    the scan told. ``compared``: so many offsets of those logs, by epoch and offset.
    """

    broker: int
    log_dir: str
    partitions: int
    offsets: int
    answers: bool
    strays: int = 0
    read: tuple[DiskPartition, ...] = ()
    reading: DiskReading | None = None
    compared: int = 0

    @property
    def useless(self) -> bool:
        """Whether it may be the wrong disk."""
        return not self.offsets and (self.answers or not self.partitions)


@dataclass(frozen=True, slots=True)
class Rescued:
    """What was read; ``read_before`` branches were there already. ``unread`` are replicas that cannot be read;
    ``gone`` are those of them that told their log when the plan was made.
    """

    directory: Path
    results: tuple[BranchResult, ...]
    unread: tuple[UnreadReplica, ...]
    read_before: int
    seconds: float
    gone: tuple[UnreadReplica, ...] = ()
    disks: tuple[DiskUse, ...] = ()

    @property
    def size(self) -> int:
        return sum(result.size for result in self.results)

    @property
    def offsets(self) -> int:
        """Offsets of the branches that were read as a whole."""
        return sum(one.branch.end - one.branch.start for one in self.results if one.problem is None)

    @property
    def problems(self) -> Mapping[TopicPartition, str]:
        """The partitions of which something that the plan saw was not read, each with the first reason."""
        found: dict[TopicPartition, str] = {}
        for one in self.gone:
            found.setdefault(one.tp, f"broker {one.broker} told its log to the plan, and not now: {one.why}")
        for result in self.results:
            if result.problem is not None:
                where = f"{result.branch.part} on broker {result.branch.broker}"
                found.setdefault(result.branch.tp, f"{where}: {result.problem}")
        return found


class RescueReading(NamedTuple):
    """A rescue without elections. ``problems``: the partitions that are not rescued, each with why: their row is
    stale, a branch is not whole, or (``leaderless``) a plan has to say first who is to lead.
    """

    rescued: Rescued
    problems: Mapping[TopicPartition, str]
    leaderless: tuple[TopicPartition, ...] = ()


def readable(check: Judgement) -> bool:
    """Whether the partition is still without a leader, with the logs that the plan saw."""
    gone = (RowDecision.STALE, RowDecision.ALREADY_ONLINE, RowDecision.OTHER_LEADER)
    return check.decision not in gone


async def read_plan(
    backend: Backend, plan: Plan, cluster_id: str, request: RescueRequest, progress: Progress | None = None
) -> RescueReading:
    """Compares the plan, reads its branches, and compares again. Raises InputError, BackendError, and StalePlan
    where no row of it can be read any more.
    """
    before = await prepare(backend, plan, cluster_id, progress)
    wanted = {check.tp for check in before.checks if readable(check)}
    if not wanted:
        first = before.checks[0]
        raise StalePlan(f"nothing was read: {first.tp}: {first.decision}: {first.detail}")
    part = replace(plan, rows=tuple(row for row in plan.rows if row.tp in wanted))
    rescued = await rescue_plan(backend, part, request, progress)
    after = await prepare(backend, part, cluster_id, progress)
    problems = {
        check.tp: f"{check.decision}: {check.detail}" for check in before.checks if not readable(check)
    }
    moved = (check for check in after.checks if not readable(check))
    problems |= {check.tp: f"while it was read: {check.decision}: {check.detail}" for check in moved}
    return RescueReading(rescued, problems | dict(rescued.problems))


async def rescue_plan(
    backend: Backend, plan: Plan, request: RescueRequest, progress: Progress | None = None
) -> Rescued:
    """Reads every branch that the plan's elections cut off. Raises InputError, BackendError.

    A branch that cannot be read is a result with its problem, and the others go on. Where the disk is full,
    nothing more is read.
    """
    rows = {row.tp: row for row in plan.rows}
    disks = await read_rescue_disks(request.log_dirs, plan.header.cluster_id, progress)
    found = await described(backend, list(rows))
    surveys = await _surveys(backend, found.states, disks, progress)
    offline = [one for one in surveys if one.state.offline]
    lost = [_with_evidence(_cut_off(one, rows[one.tp].leader, disks), rows[one.tp]) for one in offline]
    header = RescueHeader(
        plan.header.cluster_id, plan.header.plan_id, digest(plan), moment(now()), made_by(), version()
    )
    rescued = await _read(backend, lost, disks, header=header, request=request, progress=progress)
    uses = _disk_uses(disks, {one.tp for one in surveys}, surveys, rescued.results, offline)
    return replace(rescued, gone=_answered_for_plan(plan, rescued.unread), disks=uses)


async def planned_branches(
    backend: Backend, plan: Plan, progress: Progress | None = None
) -> tuple[RescueBranch, ...]:
    """What :func:`rescue_plan` would read now from the brokers, with the sizes as far as they are told. Raises
    BackendError.
    """
    leaders = {row.tp: row.leader for row in plan.rows}
    found = await described(backend, list(leaders))
    surveys = await _surveys(backend, found.states, RescueDisks(()), progress)
    return tuple(
        branch
        for survey in surveys
        if survey.state.offline
        for branch in rescue_branches(survey, leaders[survey.tp])
    )


async def read_disks(
    backend: Backend,
    cluster_id: str,
    request: RescueRequest,
    topics: Collection[str],
    progress: Progress | None = None,
) -> RescueReading:
    """Reads what the log dirs of ``request`` hold and the leaders of now do not. Raises InputError, BackendError.

    ``topics``: only these; empty: all that are on the disks.
    """
    disks = await read_rescue_disks(request.log_dirs, cluster_id, progress)
    wanted = [tp for tp in disks.partitions if not topics or tp.topic in topics]
    if not wanted:
        beside = "".join(f"; {text}" for text in map(left_out_text, disks.readings) if text)
        raise InputError(
            f"{request.log_dirs[0]}: holds no partition of {', '.join(topics) or 'any topic'}{beside}"
        )
    found = await described(backend, wanted)
    led = tuple(state for state in found.states if not state.offline)
    leaderless = tuple(state.tp for state in found.states if state.offline)
    problems = {one.tp: "it has no leader: make a plan for it, and give that plan" for one in found.states}
    problems |= dict.fromkeys(set(wanted) - set(problems), "the cluster has no such partition, or hides it")
    if not led:
        return RescueReading(Rescued(request.directory, (), (), 0, 0.0), problems, leaderless)
    surveys = await _surveys(backend, led, disks, progress, leaders_only=True)
    lost = [_cut_off(_leader_alone(one), one.state.leader, disks) for one in surveys]
    header = RescueHeader(cluster_id, "", "", moment(now()), made_by(), version())
    rescued = await _read(backend, lost, disks, header=header, request=request, progress=progress)
    rescued = replace(rescued, disks=_disk_uses(disks, set(wanted), (), rescued.results, surveys))
    for survey in surveys:
        log = survey.log(survey.state.leader)
        if log is not None and not isinstance(log.lineage, Unknown):
            del problems[survey.tp]
        else:
            problems[survey.tp] = f"the log of its leader, broker {survey.state.leader}, is not known"
    return RescueReading(rescued, problems | dict(rescued.problems), leaderless)


class _CutOff(NamedTuple):
    """What one choice of leader cuts off, and what of it cannot be read."""

    branches: tuple[RescueBranch, ...]
    unread: tuple[UnreadReplica, ...]


def _cut_off(survey: Survey, leader: int, disks: RescueDisks) -> _CutOff:
    copies = disks.copies(survey.state)
    unread = (*unread_replicas(survey, leader, copies), *disks.unread(survey.state))
    return _CutOff(branches_with_disks(survey, leader, copies), unread)


def _with_evidence(cut_off: _CutOff, row: PlanRow) -> _CutOff:
    """Without the silent replicas whose disks told the plan that they hold nothing beyond what is read here."""
    lost = (*row.loss.tail, *row.loss.head)
    left = without(lost, [span for branch in cut_off.branches for span in branch.spans])
    if left or any(span.epoch == NO_EPOCH for span in lost):
        return cut_off
    disks = {one.broker for one in row.candidates if one.disk_read_ms is not None}
    return cut_off._replace(unread=tuple(one for one in cut_off.unread if one.broker not in disks))


def _leader_alone(survey: Survey) -> Survey:
    """Its followers are cut off by nobody any more."""
    return survey._replace(
        replicas=tuple(one for one in survey.replicas if one.broker == survey.state.leader)
    )


async def _read(
    backend: Backend,
    lost: Sequence[_CutOff],
    disks: RescueDisks,
    *,
    header: RescueHeader,
    request: RescueRequest,
    progress: Progress | None,
) -> Rescued:
    branches = [branch for one in lost for branch in one.branches]
    unread = tuple(replica for one in lost for replica in one.unread)
    directory = await asyncio.to_thread(RescueDirectory, request.directory, header, branches, unread, now)
    try:
        sources = [
            *disks.sources(branches),
            *(
                RescueSource(partial(backend.read_batches, broker), mine)
                for broker, mine in _by_broker(branches).items()
            ),
        ]
        results, before, seconds = await RescueRun(directory, request.rate, sources, progress).run()
        return Rescued(directory.path, results, unread, before, seconds)
    finally:
        directory.close()


def _disk_uses(
    disks: RescueDisks,
    asked: Collection[TopicPartition],
    surveys: Sequence[Survey],
    results: Sequence[BranchResult],
    compared: Sequence[Survey],
) -> tuple[DiskUse, ...]:
    """Without ``surveys``, of the brokers only the leaders' logs are asked for. ``compared`` are the partitions
    whose chosen log, or leader's, the disks were compared with.
    """
    return tuple(
        DiskUse(
            reading.broker,
            reading.source,
            len(_on_disk(reading).intersection(asked)),
            sum(
                one.branch.end - one.branch.start
                for one in results
                if one.branch.log_dir and one.branch.broker == reading.broker
            ),
            any(one.log(reading.broker) is not None for one in surveys),
            sum(stray.tp in asked for stray in reading.strays),
            _read_of(disks, reading.broker, results, compared),
            reading,
            _offsets_compared(disks, reading.broker, compared),
        )
        for reading in disks.readings
    )


def _on_disk(reading: DiskReading) -> set[TopicPartition]:
    return {*reading.logs, *(stray.tp for stray in reading.strays)}


def _offsets_compared(disks: RescueDisks, broker: int, compared: Sequence[Survey]) -> int:
    return sum(
        copy.log.log_end_offset - max(copy.log.log_start_offset, 0)
        for survey in compared
        for copy in disks.copies(survey.state)
        if copy.broker == broker
    )


def _read_of(
    disks: RescueDisks, broker: int, results: Sequence[BranchResult], compared: Sequence[Survey]
) -> tuple[DiskPartition, ...]:
    """A log that lost its tail counts: nothing more can be read of it."""
    broken = {one.branch.tp for one in results if one.problem is not None and one.branch.broker == broker}
    return tuple(
        DiskPartition(survey.tp, survey.state.topic_id)
        for survey in compared
        if survey.tp not in broken and any(copy.broker == broker for copy in disks.copies(survey.state))
    )


def _by_broker(branches: Iterable[RescueBranch]) -> Mapping[int, tuple[RescueBranch, ...]]:
    found: dict[int, tuple[RescueBranch, ...]] = {}
    for branch in branches:
        if not branch.log_dir:
            found[branch.broker] = (*found.get(branch.broker, ()), branch)
    return found


def _answered_for_plan(plan: Plan, unread: Iterable[UnreadReplica]) -> tuple[UnreadReplica, ...]:
    """Replicas whose broker answered when the plan was made. Evidence from a disk does not count: an election does
    not change that disk.
    """
    rows = {row.tp: row for row in plan.rows}
    candidates = ((one, rows[one.tp].candidate(one.broker)) for one in unread)
    return tuple(
        one for one, candidate in candidates if candidate is not None and candidate.disk_read_ms is None
    )


async def _surveys(
    backend: Backend,
    states: tuple[PartitionState, ...],
    disks: RescueDisks,
    progress: Progress | None,
    *,
    leaders_only: bool = False,
) -> tuple[Survey, ...]:
    """With the logs' sizes, for the room that is needed; with all epochs where disks are compared with them."""
    if not states:
        return ()
    depth = Depth.FULL if disks.readings else Depth.DIVERGENCE
    asked = SurveyRequest(states, SURVEY_SECONDS, depth, log_dirs=True, leaders_only=leaders_only)
    return tuple((await backend.survey(asked, progress)).surveys)
