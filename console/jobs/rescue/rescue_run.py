"""Reads branches from the brokers, or disks, that hold them into a rescue directory."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from backends.base.answers import LogPosition, RawBatches
from backends.base.errors import BackendError, NotAllowed
from backends.base.protocol import Progress
from console.errors import ConsoleError, InputError
from console.jobs.rescue.byte_rate import ByteRate
from console.rescue_files.branch_writer import BranchError, BranchWriter, RescueDiskError
from console.rescue_files.manifest import BranchManifest
from console.rescue_files.rescue_directory import RescueDirectory
from recovery.model import TopicPartition, Unknown
from recovery.rescue_branches import RescueBranch
from recovery.wording.quantity_text import human_bytes, lasting

ANSWER_BYTES = 8 << 20
"""Bytes of one answer: with the sources read at once, this bounds the memory."""
OPEN_BRANCHES = 64
"""Branches that are read from one source in turn; each has a file open."""
PAUSES = (0.5, 1.0, 2.0)
"""Seconds before a broker that failed is asked again."""

ReadBatches = Callable[[Sequence[LogPosition], int], Awaitable[Mapping[TopicPartition, RawBatches | Unknown]]]
"""As Backend.read_batches, of one broker or of one broker's disk."""


class RescueSource(NamedTuple):
    """Branches that are read from the same broker or disk."""

    read: ReadBatches
    branches: tuple[RescueBranch, ...]


class BranchResult(NamedTuple):
    """One branch: ``size`` in bytes; ``problem`` is None if all of it was read."""

    branch: RescueBranch
    size: int
    problem: str | None


class BranchResults(NamedTuple):
    """``read_before`` of the branches were there already."""

    results: tuple[BranchResult, ...]
    read_before: int
    seconds: float


class RescueRun:
    """Reads branches once into ``directory``, from all sources at once. ``rate`` is for each source."""

    def __init__(
        self,
        directory: RescueDirectory,
        rate: int | None,
        sources: Sequence[RescueSource],
        progress: Progress | None,
    ) -> None:
        self._directory = directory
        self._rate = rate
        self._sources = sources
        self._progress = _RescueProgress(progress, [one for source in sources for one in source.branches])
        self._results: dict[RescueBranch, BranchResult] = {}
        self._disk: str | None = None

    async def run(self) -> BranchResults:
        """Every branch has a result: one that could not be read, its problem."""
        began = time.monotonic()
        before = 0
        async with asyncio.TaskGroup() as readers:
            for source in self._sources:
                pending: deque[RescueBranch] = deque()
                for branch in source.branches:
                    try:
                        manifest = await asyncio.to_thread(self._directory.read_before, branch)
                    except InputError as error:
                        self._failed(branch, str(error))
                        continue
                    if manifest is None:
                        pending.append(branch)
                        continue
                    before += 1
                    self._progress.advanced(branch.end - branch.start, 0)
                    self._ended(branch, manifest)
                readers.create_task(self._read_source(source.read, pending))
        results = tuple(self._results[branch] for source in self._sources for branch in source.branches)
        return BranchResults(results, before, time.monotonic() - began)

    async def _read_source(self, read: ReadBatches, pending: deque[RescueBranch]) -> None:
        """Reads the branches of one source, some at a time; one answer is written before the next is asked for."""
        writers: deque[BranchWriter] = deque()
        pace = ByteRate(self._rate)
        try:
            while True:
                await self._open_more(writers, pending)
                if not writers or self._disk is not None:
                    break
                try:
                    answer = await self._ask(read, writers, pace)
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
        self, read: ReadBatches, writers: Iterable[BranchWriter], pace: ByteRate
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        """Raises BackendError when the broker still fails after some attempts."""
        positions = [LogPosition(writer.branch.tp, writer.next_offset) for writer in writers]
        await pace.wait()
        for pause in (*PAUSES, None):
            try:
                return await read(positions, pace.most(ANSWER_BYTES))
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
                problem, grown = str(found) if found else "the broker's answer lacks this partition", 0
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
                writer.close()  # a later run goes on from here when there is room
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
