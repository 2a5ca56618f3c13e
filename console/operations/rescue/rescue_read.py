"""Reads what a plan's elections cut off from the brokers that hold it, before the elections are sent."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from backends.base.answers import Depth, LogPosition, RawBatches, SurveyRequest
from backends.base.errors import BackendError, NotAllowed
from backends.base.protocol import Backend, Progress
from console.errors import ConsoleError, StalePlan
from console.journal.journal_lines import moment
from console.operations.elections.election_batches import described
from console.operations.elections.plan_comparison import PreparedPlan, prepare
from console.operations.rescue.byte_rate import ByteRate
from console.provenance import made_by, now
from console.rescue.branch_writer import BranchError, BranchWriter, RescueDiskError
from console.rescue.manifest import BranchManifest, RescueHeader
from console.rescue.rescue_directory import RescueDirectory
from console.version import version
from recovery.model import Survey, TopicPartition, Unknown
from recovery.plan.judgement import Judgement, RowDecision
from recovery.plan.values import Plan
from recovery.plan.write import digest
from recovery.rescue_branches import RescueBranch, UnreadReplica, rescue_branches, unread_replicas
from recovery.wording.quantity_text import human_bytes, lasting

SURVEY_SECONDS = 30.0
ANSWER_BYTES = 8 << 20
"""Bytes of one answer: with the brokers read at once, this bounds the memory."""
OPEN_BRANCHES = 64
"""Branches that are read from one broker in turn; each has a file open."""
ATTEMPTS = 4
PAUSES = (0.5, 1.0, 2.0)
"""Seconds before a broker that failed is asked again."""


@dataclass(frozen=True, slots=True)
class RescueRequest:
    """Where to write to, and how many bytes each broker is asked for per second at most; None: no limit.

    ``elect_anyway``, where elections follow: those of partitions whose rescue is not whole are sent too.
    """

    directory: Path
    rate: int | None = None
    elect_anyway: bool = False


class BranchResult(NamedTuple):
    """One branch: ``size`` in bytes; ``problem`` is None if all of it was read."""

    branch: RescueBranch
    size: int
    problem: str | None


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


@dataclass(frozen=True, slots=True)
class RescueReading:
    """A plan's rescue without its elections: the plan compared before and after the reading."""

    before: PreparedPlan
    rescued: Rescued
    after: PreparedPlan

    @property
    def problems(self) -> Mapping[TopicPartition, str]:
        """The partitions that are not rescued, each with why: their row is stale, or a branch is not whole."""
        found = {
            check.tp: f"{check.decision}: {check.detail}"
            for check in self.before.checks
            if not readable(check)
        }
        moved = (check for check in self.after.checks if not readable(check))
        found |= {check.tp: f"while it was read: {check.decision}: {check.detail}" for check in moved}
        return found | dict(self.rescued.problems)


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
    return RescueReading(before, rescued, await prepare(backend, part, cluster_id, progress))


async def rescue_plan(
    backend: Backend, plan: Plan, request: RescueRequest, progress: Progress | None = None
) -> Rescued:
    """Reads every branch that the plan's elections cut off. Raises InputError, BackendError.

    A branch that cannot be read is a result with its problem, and the others go on. Where the disk is full,
    nothing more is read.
    """
    leaders = {row.tp: row.leader for row in plan.rows}
    surveys = [survey for survey in await _surveys(backend, leaders, progress) if survey.state.offline]
    branches = [branch for survey in surveys for branch in rescue_branches(survey, leaders[survey.tp])]
    unread = tuple(one for survey in surveys for one in unread_replicas(survey, leaders[survey.tp]))
    header = RescueHeader(
        plan.header.cluster_id, plan.header.plan_id, digest(plan), moment(now()), made_by(), version()
    )
    directory = await asyncio.to_thread(RescueDirectory, request.directory, header, branches, unread, now)
    try:
        run = _RescueRun(backend, directory, request.rate, branches, progress)
        return replace(await run.run(unread), gone=_told_before(plan, unread))
    finally:
        directory.close()


def _told_before(plan: Plan, unread: Iterable[UnreadReplica]) -> tuple[UnreadReplica, ...]:
    rows = {row.tp: row for row in plan.rows}
    return tuple(one for one in unread if rows[one.tp].candidate(one.broker) is not None)


async def _surveys(
    backend: Backend, partitions: Iterable[TopicPartition], progress: Progress | None
) -> tuple[Survey, ...]:
    """With the logs' sizes, for the room that is needed."""
    found = await described(backend, list(partitions))
    if not found.states:
        return ()
    asked = SurveyRequest(found.states, SURVEY_SECONDS, Depth.DIVERGENCE, log_dirs=True)
    return (await backend.survey(asked, progress)).surveys


class _RescueRun:
    def __init__(
        self,
        backend: Backend,
        directory: RescueDirectory,
        rate: int | None,
        branches: Sequence[RescueBranch],
        progress: Progress | None,
    ) -> None:
        self._backend = backend
        self._directory = directory
        self._rate = rate
        self._branches = branches
        self._progress = _RescueProgress(progress, branches)
        self._results: dict[RescueBranch, BranchResult] = {}
        self._disk: str | None = None

    async def run(self, unread: tuple[UnreadReplica, ...]) -> Rescued:
        began = time.monotonic()
        by_broker: dict[int, deque[RescueBranch]] = {}
        before = 0
        for branch in self._branches:
            manifest = await asyncio.to_thread(self._directory.read_before, branch)
            if manifest is not None:
                before += 1
                self._ended(branch, manifest)
            else:
                by_broker.setdefault(branch.broker, deque()).append(branch)
        async with asyncio.TaskGroup() as readers:
            for broker, pending in by_broker.items():
                readers.create_task(self._read_broker(broker, pending))
        results = tuple(self._results[branch] for branch in self._branches)
        return Rescued(self._directory.path, results, unread, before, time.monotonic() - began)

    async def _read_broker(self, broker: int, pending: deque[RescueBranch]) -> None:
        """Reads the branches of one broker, some at a time; one answer is written before the next is asked for."""
        writers: deque[BranchWriter] = deque()
        pace = ByteRate(self._rate)
        try:
            while True:
                await self._open_more(writers, pending)
                if not writers or self._disk is not None:
                    break
                try:
                    answer = await self._ask(broker, writers, pace)
                except BackendError as error:
                    for writer in writers:
                        await self._end(writer, str(error))
                    writers.clear()
                    for branch in pending:
                        self._failed(branch, str(error))
                    pending.clear()
                    break
                await self._take(answer, writers, pace)
        finally:
            for writer in writers:
                writer.close()
        for branch in (*(writer.branch for writer in writers), *pending):
            self._failed(branch, self._disk or "not read")

    async def _open_more(self, writers: deque[BranchWriter], pending: deque[RescueBranch]) -> None:
        """One branch of a partition at a time: a request asks for one offset of it."""
        asked = {writer.branch.tp for writer in writers}
        for _ in range(len(pending)):
            if len(writers) >= OPEN_BRANCHES or self._disk is not None:
                return
            branch = pending.popleft()
            if branch.tp in asked:
                pending.append(branch)
                continue
            asked.add(branch.tp)
            try:
                writer = await asyncio.to_thread(self._directory.writer, branch)
            except BranchError as error:
                self._failed(branch, str(error), disk=isinstance(error, RescueDiskError))
                continue
            self._progress.advanced(writer.next_offset - branch.start, 0)
            if writer.done:
                await self._end(writer, None)
            else:
                writers.append(writer)

    async def _ask(
        self, broker: int, writers: Iterable[BranchWriter], pace: ByteRate
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        """Raises BackendError when the broker still fails after some attempts."""
        positions = [LogPosition(writer.branch.tp, writer.next_offset) for writer in writers]
        await pace.wait()
        for pause in (*PAUSES, None):
            try:
                return await self._backend.read_batches(broker, positions, pace.most(ANSWER_BYTES))
            except NotAllowed:
                raise
            except BackendError:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _take(
        self,
        answer: Mapping[TopicPartition, RawBatches | Unknown],
        writers: deque[BranchWriter],
        pace: ByteRate,
    ) -> None:
        """Writes an answer. Branches that got nothing stand first in the next request."""
        first = writers[0]
        hungry: list[BranchWriter] = []
        served: list[BranchWriter] = []
        for writer in list(writers):
            found = answer.get(writer.branch.tp)
            if isinstance(found, RawBatches):
                problem, grown = await self._write(writer, found, pace)
                if grown == 0 and problem is None and writer is first and not writer.done:
                    problem = f"the log has no whole batch at offset {writer.next_offset} any more"
            else:
                problem, grown = str(found) if found else "the answer leaves this partition out", 0
            if writer.done or problem is not None:
                await self._end(writer, None if writer.done else problem)
            else:
                (served if grown else hungry).append(writer)
        writers.clear()
        writers.extend((*hungry, *served))

    async def _write(self, writer: BranchWriter, found: RawBatches, pace: ByteRate) -> tuple[str | None, int]:
        """What went wrong, and by how many offsets the branch has grown."""
        before, size = writer.next_offset, writer.size
        problem = None
        try:
            await asyncio.to_thread(writer.take, found.data)
        except BranchError as error:
            problem = str(error)
            if isinstance(error, RescueDiskError):
                self._disk = problem
        grown = writer.next_offset - before
        pace.used(len(found.data))
        self._progress.advanced(grown, writer.size - size)
        return problem, grown

    async def _end(self, writer: BranchWriter, problem: str | None) -> None:
        directory = self._directory
        try:
            if problem is None:
                manifest = await asyncio.to_thread(directory.whole, writer)
            elif self._disk is not None:
                writer.close()  # what is there is continued when there is room
                self._results[writer.branch] = BranchResult(writer.branch, writer.size, problem)
                return
            else:
                manifest = await asyncio.to_thread(directory.ended_early, writer, problem)
        except (RescueDiskError, ConsoleError) as error:
            self._failed(writer.branch, str(error), disk=True)
            return
        self._ended(writer.branch, manifest)

    def _ended(self, branch: RescueBranch, manifest: BranchManifest) -> None:
        self._results[branch] = BranchResult(branch, manifest.size, manifest.problem)

    def _failed(self, branch: RescueBranch, problem: str, *, disk: bool = False) -> None:
        if disk:
            self._disk = problem
        self._results.setdefault(branch, BranchResult(branch, 0, problem))


class _RescueProgress:
    """Counts offsets, of which the total is known, and tells bytes, rate and time left."""

    def __init__(self, progress: Progress | None, branches: Iterable[RescueBranch]) -> None:
        self._progress = progress
        self._of = sum(branch.end - branch.start for branch in branches)
        self._began = time.monotonic()
        self._done = 0
        self._moved = 0
        self._bytes = 0

    def advanced(self, offsets: int, size: int) -> None:
        self._done += offsets
        self._bytes += size
        if size:
            self._moved += offsets
        if self._progress is None:
            return
        seconds = max(time.monotonic() - self._began, 0.001)
        left = (self._of - self._done) * seconds / self._moved if self._moved else 0.0
        rate = human_bytes(round(self._bytes / seconds))
        what = f"rescue: {human_bytes(self._bytes)} read, {rate}/s, about {lasting(left)} left; offsets"
        self._progress(what, min(self._done, self._of), self._of)
