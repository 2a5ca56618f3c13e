"""Writes rescued records back: to a topic of their own, or behind the records of their source."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from backends.base.answers import LogPosition
from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from console.change.access import Access
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question
from console.errors import InputError, NotDone, Status
from console.jobs.rescue.newer_keys import newer_keys
from console.jobs.rescue.restore_run import RestoredBranch, RestoreRun, TargetPartition, key_of
from console.jobs.rescue.restore_target import (
    MIN_ISR,
    RestoreTarget,
    TopicChecks,
    source_target,
    too_few_text,
    topic_target,
)
from console.journal.change_kinds import RESTORE_RECORDS
from console.journal.recorded_restores import RecordedRestore, RestorePlace, recorded_restores, spans_detail
from console.journal.run_records import read_runs
from console.journal.unfinished_entries import STOPPED, refused_for_good, unfinished
from console.new_files import locked
from console.provenance import now, now_ms
from console.reading.consumer_reading import ConsumerReading, contradicted, read_back_as_consumer
from console.rescue_files.rescued_branch import DamagedRescue, RescueContents, RescuedBranch, open_rescue
from console.rescue_files.restore_journal import RestoreJournal, restored_records
from console.rescue_files.restore_selection import (
    LARGEST_BY_DEFAULT,
    REFUSED_BY,
    BranchCounts,
    RestoreSelection,
    TargetLimits,
    chosen_spans,
    count_branch,
)
from recovery.consumer_sight import Expected
from recovery.model import NO_LEADER, TopicPartition, Unknown, Why
from recovery.rescue_branches import RescueBranch
from recovery.wording.quantity_text import counted

# What somebody who writes rescued records back has to know before, in lines.

_PRODUCER_KNOWN = 86_400.0
"""Seconds that a broker remembers an idle producer by default (producer.id.expiration.ms)."""


def damaged_lines(branches: Sequence[RescuedBranch]) -> tuple[str, ...]:
    """What of damaged files is not written back, one line for each part."""
    return tuple(
        f"not written back: {rescued.branch.tp}, {rescued.branch.part} of broker {rescued.branch.broker}:"
        f" {part.offsets_text} ({part.text})"
        for rescued in branches
        for part in rescued.damaged()
    )


def refused_lines(rows: Sequence[TargetPartition]) -> Iterator[str]:
    """Records that the target would not take, or not keep."""
    for name, (setting, words) in REFUSED_BY.items():
        counts = {row.tp.topic: getattr(row.counts, name) for row in rows if getattr(row.counts, name)}
        if counts:
            total = sum(getattr(row.counts, name) for row in rows)
            why = words.format(setting, ", ".join(sorted(counts)))
            yield (
                f"{counted(total, 'record')} or more will be refused: {why}; change it, or write them to a new"
                " topic with --to-topic"
            )
    expired = sum(row.counts.expired for row in rows)
    topics = ", ".join(sorted({row.tp.topic for row in rows if row.counts.expired}))
    instead = "raise it, or write them to a new topic with --to-topic"
    if expired:
        yield (
            f"{counted(expired, 'record')} may soon be deleted again: older than {topics}'s retention.ms; {instead}"
        )


def forgotten(journal: RestoreJournal, at: float) -> Iterator[str]:
    """What an earlier run may have sent last is told apart by its producer, which a cluster forgets."""
    if journal.appended() and at - journal.modified > _PRODUCER_KNOWN:
        yield (
            "an earlier run wrote last more than a day ago: if it was killed, and the cluster has forgotten its"
            " producer (producer.id.expiration.ms), then the last batch of each partition that was sent and not"
            " noted may stand there twice; the count at the end tells"
        )


def other_runs(directory: Path, journal: RestoreJournal, target: str) -> tuple[str, ...]:
    """What was written to the same target by another selection."""
    others = [
        records
        for path, written_to, records in restored_records(directory)
        if written_to == target and path != journal.path
    ]
    if not sum(others):
        return ()
    return (
        f"{sum(others):,} records were written to the same target with other options: those that both select will"
        " stand there twice",
    )


def repeated_lines(
    restores: Iterable[RecordedRestore], branches: Sequence[tuple[RescueBranch, str]]
) -> Iterator[str]:
    """What those restores of other directories took from the same offsets and wrote to the same places."""
    for restore in restores:
        same = sum(
            restore.same_offsets(RestorePlace(branch.tp, branch.topic_id, to_topic), branch.spans)
            for branch, to_topic in branches
        )
        if same:
            yield (
                f"{counted(same, 'offset')} of this rescue were written to the same target before, from"
                f" {restore.directory} ({restore.at}): records that both select will stand there twice"
            )


# Counts on the brokers what restores have written back.

COUNT_BYTES = 8 << 20


async def count_written(cluster: Backend, journal: RestoreJournal) -> Mapping[TopicPartition, int | Unknown]:
    """The records of the journal's producer in each partition of the target, read back from their leaders."""
    tps = list(journal.appended())
    leaders = await _leaders(cluster, tps)
    return {tp: await _count_in(cluster, tp, leaders.get(tp, NO_LEADER), journal) for tp in tps}


async def _leaders(cluster: Backend, partitions: list[TopicPartition]) -> Mapping[TopicPartition, int]:
    try:
        found = await cluster.partitions(list(dict.fromkeys(tp.topic for tp in partitions)))
    except BackendError:
        return {}
    return {state.tp: state.leader for state in found.states}


async def _count_in(
    cluster: Backend, tp: TopicPartition, leader: int, journal: RestoreJournal
) -> int | Unknown:
    appended, identity = journal.appended()[tp], journal.identity
    assert identity is not None
    at, records = appended.first, 0
    while at <= appended.last:
        try:
            found = (await cluster.read_batches(leader, [LogPosition(tp, at)], COUNT_BYTES))[tp]
        except BackendError as error:
            return Unknown(Why.FAILED, str(error))
        if isinstance(found, Unknown):
            return found
        reader = SegmentReader(SegmentBytes(found.data), check_from=None)
        for batch in reader:
            header = batch.header
            if header.base_offset >= at and header.producer_id == identity.producer_id:
                records += header.record_count
        if reader.next_offset is None:
            return Unknown(Why.FAILED, f"nothing is at offset {at} any more")
        at = reader.next_offset
    return records


def wrong_count(written: int, found: int | Unknown) -> str | None:
    """Why a partition does not hold just what was written to it, None if it does."""
    if isinstance(found, Unknown):
        return f"could not be counted afterwards: {found}"
    if found == written:
        return None
    twice = f": {found - written:,} stand there twice" if found > written else ""
    return f"{found:,} records found afterwards, {written:,} were written{twice}"


@dataclass(frozen=True, slots=True)
class PreparedRestore:
    """What would be written. An earlier run of the same selection has written ``written_before`` of it.

    It began at ``written_at`` ("": the journal does not say). ``repeated``: what restores of other directories
    wrote to the same places, one line each; ``damaged``: what of damaged files is left out, one line each; both
    are in ``notes`` too. ``places``: of each row, the offsets that are written, and the topic that they go to.
    ``recounted``, where nothing is left to write: how many records earlier runs wrote to each partition, and how
    many of them are there now; the run that wrote the last of them may have been killed before it counted.
    ``too_few``: where too few replicas are in sync now, one line each; these are in ``notes`` too.
    """

    contents: RescueContents
    to: RestoreTarget
    rows: tuple[TargetPartition, ...]
    notes: tuple[str, ...]
    written_before: int
    repeated: tuple[str, ...] = ()
    written_at: str = ""
    damaged: tuple[str, ...] = ()
    places: tuple[tuple[RescueBranch, str], ...] = ()
    recounted: Mapping[TopicPartition, tuple[int, int | Unknown]] = field(default_factory=dict)
    too_few: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return self.to.name

    @property
    def creates(self) -> str | None:
        """The topic that has to be made first, None if it is there."""
        return self.to.topic if self.to.creates else None

    @property
    def records(self) -> int:
        """Records that are still to be written."""
        return sum(row.counts.selected for row in self.rows) - self.written_before


@dataclass(frozen=True, slots=True)
class RestoredRecords:
    """The result; ``branches`` is empty if nothing was to be sent. ``counted`` are the records of this producer
    that were found in the target's partitions afterwards, Unknown where they could not be read. ``consumer``: what
    consumers are given of these partitions, from the first record written on.
    """

    prepared: PreparedRestore
    branches: tuple[RestoredBranch, ...] = ()
    counted: Mapping[TopicPartition, int | Unknown] | None = None
    consumer: ConsumerReading | None = None

    @property
    def failures(self) -> tuple[tuple[TopicPartition, str], ...]:
        """Each partition whose records are not all there, with the reason in one line."""
        found = {one.tp: one.problem for one in self.branches if one.problem is not None}
        expected: dict[TopicPartition, int] = {}
        for one in self.branches:
            expected[one.tp] = expected.get(one.tp, 0) + one.records
        for tp, number in (self.counted or {}).items():
            wrong = wrong_count(expected.get(tp, 0), number)
            if wrong is not None:
                found.setdefault(tp, wrong)
        for tp, (written, number) in self.prepared.recounted.items():
            wrong = None if isinstance(number, Unknown) else wrong_count(written, number)
            if wrong is not None:
                found.setdefault(tp, wrong)
        return tuple(found.items())

    @property
    def records(self) -> int:
        return sum(one.records for one in self.branches)


@dataclass(frozen=True, slots=True)
class RestoreRecords(Change[Backend, PreparedRestore, RestoredRecords]):
    """Writes what is in ``directory`` to ``to_topic``, or to the source's own partitions where that is None.

    ``dry_run``: only shows what would be written. ``again``: writes without a question, also what a
    restore of another directory wrote already. ``title`` names the cluster in the question. ``compared``: as a
    screen prepared it before it asked.
    """

    directory: Path
    to_topic: str | None
    selection: RestoreSelection
    title: str
    reason: str
    rate: int | None = None
    dry_run: bool = False
    compared: PreparedRestore | None = None
    again: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The target and the selection, as options of the command."""
        target = ("--to-source",) if self.to_topic is None else ("--to-topic", self.to_topic)
        return (*target, *self.selection.words)

    def without_lock(self, cluster_id: str) -> None:
        index = open_rescue(self.directory).index
        if index.header.cluster_id != cluster_id:
            raise InputError(
                f"{self.directory}: rescued from cluster {index.header.cluster_id}, and this is {cluster_id};"
                " nothing was sent"
            )

    async def settle(self, access: Access[Backend], run: ChangeRun[PreparedRestore]) -> None:
        """Elections that an earlier run left unfinished do not matter here. An earlier run of the same command that
        was killed after its last record is closed.
        """
        command = ("restore", str(self.directory.absolute()), *self.words)
        killed = [
            one.entry for one in unfinished(run.cluster_id).of(RESTORE_RECORDS) if one.command == command
        ]
        if killed and not self.dry_run:
            left = (await self.read(access.reading, run.cluster_id, run.operator.progress)).records
            if left <= 0:
                run.journal.settle("every record of the rescue is written", entries=killed)

    async def prepare(
        self, cluster: Backend, cluster_id: str, operator: Operator[PreparedRestore]
    ) -> PreparedRestore:
        now = await self.read(cluster, cluster_id, operator.progress)
        agreed = operator.asks or self.again or self.dry_run
        # Who goes on with a restore agreed when it began.
        if now.repeated and not agreed and now.records > 0 and not now.written_before:
            raise NotDone(f"{now.repeated[0]}; nothing was sent. To write them anyway, give --again")
        return now if self.compared is None else _unchanged(self.compared, now)

    async def read(self, cluster: Backend, cluster_id: str, progress: Progress | None) -> PreparedRestore:
        """What would be written now. Raises InputError, BackendError."""
        contents = await asyncio.to_thread(open_rescue, self.directory)
        topics = self.selection.topics
        chosen = [one for one in contents.branches if not topics or one.branch.tp.topic in topics]
        if not chosen:
            raise InputError(f"{self.directory}: holds no branch of {', '.join(topics) or 'any topic'}")
        sound_only = self.selection.incomplete
        branches = [replace(one, sound_only=sound_only) for one in chosen if self._wanted(one)]
        target = await self._target(cluster, branches)
        journal = RestoreJournal(self.directory, cluster_id, target.name, self.selection.name)
        rows = []
        for number, rescued in enumerate(branches):
            if progress is not None:
                progress("reading the rescue", number, len(branches))
            limits = await self._limits(cluster, target, rescued, journal, progress)
            counts = await self._counts(rescued, limits)
            rows.append(TargetPartition(rescued, target.partition(rescued), counts, limits))
        positions = (journal.position(key_of(one)) for one in branches)
        before = sum(position.records for position in positions if position is not None)
        recorded = recorded_restores(await asyncio.to_thread(read_runs, cluster_id))
        own = str(self.directory.absolute())
        places = await asyncio.to_thread(self._places, rows)
        repeated = tuple(repeated_lines((one for one in recorded if one.directory != own), places))
        at = "".join(one.at for one in recorded if (one.directory, one.words) == (own, self.words))
        damaged = await asyncio.to_thread(damaged_lines, branches) if sound_only else ()
        too_few = await self._too_few(cluster, target, rows)
        notes = (
            *target.notes,
            *damaged,
            *refused_lines(rows),
            *too_few,
            *forgotten(journal, now().timestamp()),
            *other_runs(self.directory, journal, target.name),
            *repeated,
        )
        found = PreparedRestore(
            contents, target, tuple(rows), notes, before, repeated, at, damaged, places, too_few=too_few
        )
        return found if found.records > 0 or not before else await _recounted(cluster, found, journal)

    async def _too_few(
        self, cluster: Backend, target: RestoreTarget, rows: Sequence[TargetPartition]
    ) -> tuple[str, ...]:
        """Where so few replicas are in sync that no record is taken now, with what to do first."""
        if target.creates:
            up = sum(broker.fenced is not True for broker in (await cluster.cluster()).brokers)
            if up >= int(target.min_isr or 0):
                return ()
            return (
                f"{target.topic} will take no record now: its {MIN_ISR} will be {target.min_isr} as that of the"
                f" source, and {counted(up, 'broker')} {'is' if up == 1 else 'are'} up: bring back the others, or"
                f" create the topic before with a lower {MIN_ISR}; then run the same command again",
            )
        found = {}
        for row in rows:
            state, checks = target.states.get(row.tp), target.checks.get(row.tp.topic, TopicChecks())
            if row.counts.selected and state is not None:
                found[row.tp] = too_few_text(row.tp.topic, state, checks.min_isr)
        return tuple(f"{tp} takes no record now: {why}" for tp, why in found.items() if why is not None)

    def _places(self, rows: Iterable[TargetPartition]) -> tuple[tuple[RescueBranch, str], ...]:
        found = ((row, chosen_spans(row.rescued, self.selection.only)) for row in rows)
        return tuple((row.rescued.branch._replace(spans=spans), row.tp.topic) for row, spans in found)

    async def _target(self, cluster: Backend, branches: Sequence[RescuedBranch]) -> RestoreTarget:
        missing_keys = self.selection.only.missing_keys
        if self.to_topic is None:
            return await source_target(cluster, branches, missing_keys=missing_keys)
        if missing_keys:
            raise InputError("--only-keys-missing compares with the source: give it with --to-source")
        return await topic_target(cluster, branches, self.to_topic)

    async def _limits(
        self,
        cluster: Backend,
        target: RestoreTarget,
        rescued: RescuedBranch,
        journal: RestoreJournal,
        progress: Progress | None,
    ) -> TargetLimits:
        tp = target.partition(rescued)
        most = target.most.get(tp.topic, LARGEST_BY_DEFAULT)
        newer: Collection[bytes] = frozenset()
        if self.selection.only.missing_keys:
            own = None if journal.identity is None else journal.identity.producer_id
            newer = await newer_keys(cluster, target.states[tp], rescued.branch, own, progress)
        checks, at = target.checks.get(tp.topic, TopicChecks()), _now_ms(cluster)
        oldest, deleted_before = (
            None if age is None else at - age for age in (checks.taken_ms, checks.retained_ms)
        )
        newest = None if checks.ahead_ms is None else at + checks.ahead_ms
        return TargetLimits(most, newer, oldest, deleted_before, newest, checks.keys, checks.packed)

    async def _counts(self, rescued: RescuedBranch, limits: TargetLimits) -> BranchCounts:
        """Raises InputError, with the way on where a file is damaged."""
        try:
            return await asyncio.to_thread(count_branch, rescued, self.selection, limits)
        except DamagedRescue as error:
            raise InputError(
                f"{error}; read it again, or give --incomplete to write back the batches that are sound; nothing"
                " was sent"
            ) from None

    def _wanted(self, rescued: RescuedBranch) -> bool:
        """Raises InputError for a damaged branch, unless ``--incomplete`` was given."""
        if rescued.problem is not None and not self.selection.incomplete:
            branch = rescued.branch
            raise InputError(
                f"{rescued.directory}: {branch.tp} of broker {branch.broker} is not whole ({rescued.problem});"
                " read it again, or give --incomplete to write back what there is; nothing was sent"
            )
        return rescued.manifest is not None

    def nothing_to_send(self, prepared: PreparedRestore) -> RestoredRecords | None:
        return RestoredRecords(prepared) if self.dry_run or prepared.records <= 0 else None

    def question(self, prepared: PreparedRestore) -> Question:
        """As strict as an election's: a number from the text is typed."""
        where = "their source" if self.to_topic is None else f"topic {self.to_topic}"
        text = (
            f"{prepared.records:,} records will be written to {where} on cluster"
            f" {prepared.contents.index.header.cluster_id} ({self.title})."
        )
        warnings = ("What is written back cannot be taken out again.", *prepared.notes)
        return Question.number(text, "the number of records", prepared.records, warnings)

    async def recheck(
        self,
        cluster: Backend,
        prepared: PreparedRestore,
        answer: str,
        operator: Operator[PreparedRestore],
    ) -> PreparedRestore:
        cluster_id = prepared.contents.index.header.cluster_id
        return _unchanged(prepared, await self.prepare(cluster, cluster_id, operator))

    async def execute(
        self, cluster: Backend, prepared: PreparedRestore, run: ChangeRun[PreparedRestore]
    ) -> RestoredRecords:
        lock = locked(self.directory)
        try:
            return await self._write_back(cluster, prepared, run)
        finally:
            os.close(lock)

    async def _write_back(
        self, cluster: Backend, prepared: PreparedRestore, run: ChangeRun[PreparedRestore]
    ) -> RestoredRecords:
        entry = run.journal.before(RESTORE_RECORDS, self._recorded(prepared))
        writer = cluster.record_writer()
        to = prepared.to
        if prepared.creates is not None:
            try:
                await writer.create_topic(prepared.creates, to.partitions, to.replicas, to.configs)
            except BackendError as error:
                refused = {row.tp: str(error) for row in prepared.rows}
                run.journal.after(entry, {"records": prepared.written_before, "refused": refused})
                raise
        journal = RestoreJournal(self.directory, run.cluster_id, to.name, self.selection.name)
        work = RestoreRun(
            cluster,
            writer,
            journal,
            selection=self.selection,
            rate=self.rate,
            stop=run.stop,
            progress=run.operator.progress,
        )
        try:
            with run.stop.in_flight():
                branches = await work.run(prepared.rows)
            counted = await count_written(cluster, journal)
        finally:
            journal.close()
        expected = {} if run.stop else _for_consumers(journal, counted)
        result = RestoredRecords(prepared, branches, counted, await read_back_as_consumer(cluster, expected))
        done = {"records": result.records, "refused": dict(result.failures)}
        instead = self._to_other_topics(result)
        run.journal.after(entry, {**done, "instead": instead} if instead else done)
        return result

    def _recorded(self, prepared: PreparedRestore) -> dict[str, object]:
        """For the journal: what goes where, and what the command that finishes it needs."""
        return {
            "directory": str(self.directory.absolute()),
            "target": prepared.target,
            "topics": sorted({row.tp.topic for row in prepared.rows}),
            "records": prepared.records,
            "options": self.words,
            "branches": spans_detail(prepared.places),
        }

    def conclusion(self, result: RestoredRecords) -> Conclusion:
        partly = result.failures or contradicted(result.consumer)
        status = Status.PARTLY if partly else Status.DONE
        counts = {"records written back": result.records} if result.records else {}
        return Conclusion(status, counts, next=self._next(result))

    def _next(self, result: RestoredRecords) -> tuple[str, ...]:
        """The command that goes on; of what a broker refuses, and would refuse again, the one that writes it to a
        topic that is made so that it takes everything.
        """
        command, now = ("restore", str(self.directory)), result.prepared
        instead = self._to_other_topics(result)
        if instead:
            return (*command, *instead[0])
        # What took nothing at all fails again, until somebody has done what the reason says.
        goes_on = now.records > 0 and not now.too_few if self.dry_run else _went_on(result)
        return (*command, *self.words) if goes_on else ()

    def _to_other_topics(self, result: RestoredRecords) -> list[tuple[str, ...]]:
        """For each topic that does not take its records, the target and the selection that write them to a new
        one."""
        rows, failed = result.prepared.rows, dict(result.failures)
        if self.dry_run:
            refused = {row.rescued.branch.tp.topic: None for row in rows if row.counts.refused}
        else:
            final = {tp for tp, why in failed.items() if refused_for_good(why)}
            refused = {row.rescued.branch.tp.topic: None for row in rows if row.tp in final}
        only = self.selection.only._replace(missing_keys=False)
        found = []
        for topic in refused:
            new = f"{topic}-rescued"
            new += "-2" if new == self.to_topic else ""
            found.append(("--to-topic", new, *replace(self.selection, topics=(topic,), only=only).words))
        return found


def _went_on(result: RestoredRecords) -> bool:
    """Whether something is left, and this run was stopped or has written something."""
    stopped = any(why == STOPPED for _, why in result.failures)
    return bool(result.failures) and (stopped or result.records > result.prepared.written_before)


def _now_ms(cluster: Backend) -> int:
    """The time that the cluster compares the timestamps of records with."""
    virtual = cluster.virtual_time
    return now_ms() if virtual is None else virtual.virtual_now // 1000


def _for_consumers(
    journal: RestoreJournal, counted: Mapping[TopicPartition, int | Unknown]
) -> dict[TopicPartition, Expected]:
    """As many records as were counted here, from the first one written on."""
    written = journal.appended()
    return {
        tp: Expected(written[tp].first, number)
        for tp, number in counted.items()
        if not isinstance(number, Unknown) and number
    }


async def _recounted(cluster: Backend, now: PreparedRestore, journal: RestoreJournal) -> PreparedRestore:
    counts = await count_written(cluster, journal)
    written = journal.appended()
    return replace(now, recounted={tp: (written[tp].records, found) for tp, found in counts.items()})


def _unchanged(asked: PreparedRestore, now: PreparedRestore) -> PreparedRestore:
    """Raises NotDone where it is not what was asked about."""
    if now.records != asked.records or now.creates != asked.creates:
        raise NotDone("what is to be written changed while the question stood open; nothing was sent")
    return now
