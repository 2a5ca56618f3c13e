"""Sends the batches of rescued branches: each partition's in order, several partitions and brokers at once."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from backends.base.errors import BackendError, NotAllowed
from backends.base.protocol import Backend, Progress, Stop
from backends.base.record_writer import AppendResult, BatchToAppend, RecordWriter
from console.errors import InputError
from console.jobs.rescue.byte_rate import ByteRate
from console.jobs.rescue.restore_target import MIN_ISR, too_few_text
from console.journal.unfinished_entries import STOPPED
from console.rescue_files.manifest import branch_directory
from console.rescue_files.record_batches import producible
from console.rescue_files.rescued_branch import RescuedBranch
from console.rescue_files.restore_journal import RestoreJournal
from console.rescue_files.restore_selection import (
    BatchToRestore,
    BranchCounts,
    RestoreSelection,
    TargetLimits,
    batches_to_restore,
)
from recovery.model import NO_LEADER, PartitionState, TopicPartition, Unknown
from recovery.wording.quantity_text import human_bytes, lasting

REQUEST_BYTES = 4 << 20
"""Bytes of one request, or one batch if that is larger."""
REQUEST_PARTITIONS = 64
ROUNDS = 20
"""How often a failing partition is tried again without progress."""
PAUSE = 0.5
TOO_FEW = "NOT_ENOUGH_REPLICAS"


class TargetPartition(NamedTuple):
    """A branch, where its records go, and how many of them."""

    rescued: RescuedBranch
    tp: TopicPartition
    counts: BranchCounts
    limits: TargetLimits


class RestoredBranch(NamedTuple):
    """One branch: how many of its records are in ``tp`` now, those of earlier runs included; ``problem`` is None if
    that is all of them.
    """

    rescued: RescuedBranch
    tp: TopicPartition
    records: int
    problem: str | None


class RestoreRun:
    """Writes branches back once; ``journal`` says what an earlier run has written."""

    def __init__(
        self,
        cluster: Backend,
        writer: RecordWriter,
        journal: RestoreJournal,
        *,
        selection: RestoreSelection,
        rate: int | None,
        stop: Stop,
        progress: Progress | None,
    ) -> None:
        self._cluster = cluster
        self._writer = writer
        self._journal = journal
        self._selection = selection
        self._rate = ByteRate(rate)
        self._stop = stop
        self._progress = progress
        self._states: Mapping[TopicPartition, PartitionState] = {}

    async def run(self, rows: Sequence[TargetPartition]) -> tuple[RestoredBranch, ...]:
        """Sends everything that is not there yet. Raises InputError, BackendError before anything was sent."""
        if self._journal.identity is None:
            self._journal.begin(await self._writer.new_identity())
        else:
            self._journal.resume()
        by_partition: dict[TopicPartition, list[TargetPartition]] = {}
        for row in rows:
            by_partition.setdefault(row.tp, []).append(row)
        lanes = [_Lane(tp, mine, self._journal, self._selection) for tp, mine in by_partition.items()]
        positions = (self._journal.position(key_of(row.rescued)) for row in rows)
        before = sum(position.records for position in positions if position is not None)
        meter = _Meter(self._progress, sum(row.counts.selected for row in rows), before)
        await self._send_all(lanes, meter)
        problems = await self._explained({lane.tp: lane.problem for lane in lanes})
        written = []
        for rescued, tp, counts, _ in rows:
            position = self._journal.position(key_of(rescued))
            records = 0 if position is None else position.records
            problem = None if records >= counts.selected else problems[tp] or STOPPED
            written.append(RestoredBranch(rescued, tp, records, problem))
        return tuple(written)

    async def _send_all(self, lanes: Sequence[_Lane], meter: _Meter) -> None:
        left = list(lanes)
        for round_ in itertools.count():
            left = [lane for lane in left if not lane.ended]
            if not left or self._stop:
                return
            if round_:
                await asyncio.sleep(PAUSE)
            leaders = await self._leaders([lane.tp for lane in left])
            by_broker: dict[int, list[_Lane]] = {}
            for lane in left:
                leader = leaders.get(lane.tp, NO_LEADER)
                if leader == NO_LEADER:
                    lane.failed_once("it has no leader")
                else:
                    by_broker.setdefault(leader, []).append(lane)
            async with asyncio.TaskGroup() as senders:
                for broker, mine in by_broker.items():
                    senders.create_task(self._send_to(broker, mine, meter))

    async def _leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        try:
            found = await self._cluster.partitions(list(dict.fromkeys(tp.topic for tp in partitions)))
        except BackendError:
            return {}
        self._states = {state.tp: state for state in found.states}
        return {state.tp: state.leader for state in found.states}

    async def _explained(
        self, problems: Mapping[TopicPartition, str | None]
    ) -> Mapping[TopicPartition, str | None]:
        """With what to do where min.insync.replicas is why a leader takes nothing."""
        short = [
            tp for tp, problem in problems.items() if problem is not None and problem.startswith(TOO_FEW)
        ]
        if not short:
            return problems
        try:
            configs = await self._cluster.topic_configs(sorted({tp.topic for tp in short}))
        except BackendError:
            configs = {}
        return {**problems, **{tp: self._too_few(tp, configs.get(tp.topic)) for tp in short}}

    def _too_few(self, tp: TopicPartition, config: Mapping[str, str] | Unknown | None) -> str:
        state = self._states.get(tp)
        least = "" if config is None or isinstance(config, Unknown) else config.get(MIN_ISR, "")
        short = too_few_text(tp.topic, state, int(least)) if state is not None and least.isdecimal() else None
        return f"{TOO_FEW}: {short or f'fewer replicas are in sync than {MIN_ISR} asks for'}"

    async def _send_to(self, broker: int, lanes: Sequence[_Lane], meter: _Meter) -> None:
        """Sends to one leader until its lanes are empty, or one after the other has failed."""
        turn = deque(lanes)
        while turn and not self._stop:
            chosen = await self._filled(turn)
            if not chosen:
                continue
            await self._rate.wait()
            batches = [BatchToAppend(lane.tp, lane.batch) for lane in chosen]
            try:
                results = await self._writer.append(broker, batches)
            except NotAllowed as error:
                results = {lane.tp: AppendResult(-1, str(error)) for lane in chosen}
            except BackendError as error:
                results = {lane.tp: AppendResult(-1, str(error), retryable=True) for lane in chosen}
            self._rate.used(sum(len(batch.data) for batch in batches))
            for lane in chosen:
                result = results.get(lane.tp, AppendResult(-1, "the answer leaves it out", retryable=True))
                if result.error is None:
                    self._note(lane, result.base_offset, meter)
                    turn.append(lane)
                elif result.retryable:
                    lane.failed_once(result.error)
                else:
                    lane.problem = result.error

    @staticmethod
    def _note(lane: _Lane, base_offset: int, meter: _Meter) -> None:
        try:
            meter.sent(*lane.appended(base_offset))
        except InputError as error:
            lane.problem = str(error)

    async def _filled(self, turn: deque[_Lane]) -> list[_Lane]:
        """The lanes of the next request, each with its next batch; lanes without another batch are left out."""
        chosen: list[_Lane] = []
        size = 0
        most = self._rate.most(REQUEST_BYTES)
        while turn and len(chosen) < REQUEST_PARTITIONS and size < most:
            lane = turn.popleft()
            if lane.problem is None and await asyncio.to_thread(lane.load):
                chosen.append(lane)
                size += len(lane.batch)
        return chosen


class _Lane:
    """The batches of one partition of the target, one after the other."""

    def __init__(
        self,
        tp: TopicPartition,
        rows: Sequence[TargetPartition],
        journal: RestoreJournal,
        selection: RestoreSelection,
    ) -> None:
        self.tp = tp
        self.problem: str | None = None
        self.batch = b""
        self._journal = journal
        self._selection = selection
        self._source = self._batches(rows)
        self._pending: tuple[str, BatchToRestore] | None = None
        self._empty = False
        self._attempts = 0

    @property
    def ended(self) -> bool:
        return self._empty or self.problem is not None

    def load(self) -> bool:
        """Makes the next batch ready, the same one after a failure. Blocking. False: there is none."""
        if self._pending is not None:
            return True
        identity = self._journal.identity
        assert identity is not None
        try:
            self._pending = next(self._source, None)
            if self._pending is None:
                self._empty = True
                return False
            data = self._pending[1].data
            self.batch = producible(data, *identity, self._journal.sequence(self.tp))
        except InputError as error:
            self.problem = str(error)
            return False
        return True

    def appended(self, base_offset: int) -> tuple[int, int]:
        """The batch is there; returns its records and bytes. Raises InputError where that cannot be noted."""
        assert self._pending is not None
        key, batch = self._pending
        self._pending, self._attempts = None, 0
        self._journal.note(key, self.tp, batch.next_offset, batch.records, base_offset)
        return batch.records, len(self.batch)

    def failed_once(self, why: str) -> None:
        """The batch stays for another attempt; after many, ``why`` is the partition's problem."""
        self._attempts += 1
        if self._attempts >= ROUNDS:
            self.problem = why

    def _batches(self, rows: Sequence[TargetPartition]) -> Iterator[tuple[str, BatchToRestore]]:
        for row in rows:
            key = key_of(row.rescued)
            position = self._journal.position(key)
            start = 0 if position is None else position.next_offset
            for batch in batches_to_restore(row.rescued, self._selection, start, row.limits):
                yield key, batch


def key_of(rescued: RescuedBranch) -> str:
    """The branch's name in the journal: its place in the rescue directory."""
    return str(branch_directory(rescued.branch))


class _Meter:
    """Counts records, and tells bytes, rate and time left."""

    def __init__(self, progress: Progress | None, of: int, done: int) -> None:
        self._progress = progress
        self._of, self._done = of, done
        self._sent = self._bytes = 0
        self._began = time.monotonic()

    def sent(self, records: int, size: int) -> None:
        self._done += records
        self._sent += records
        self._bytes += size
        if self._progress is not None:
            seconds = max(time.monotonic() - self._began, 0.001)
            left = lasting((self._of - self._done) * seconds / self._sent)
            rate = human_bytes(round(self._bytes / seconds))
            what = f"writing back: {human_bytes(self._bytes)}, {rate}/s, about {left} left; records"
            self._progress(what, self._done, self._of)
