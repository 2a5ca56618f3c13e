"""Reads which transactions are open in the logs of partitions, and judges what became of each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from backends.base.answers import Depth, LogPosition, Partitions, RawBatches, SurveyRequest
from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from backends.base.transactions import LEADERLESS, CoordinatorAnswers, Transactions
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from console.jobs.consumers.group_offsets import refuse_unknown_topics
from console.reading.partition_selection import described
from console.rescue_files.record_batches import CannotUnpack, MalformedRecord, records_of
from console.rescue_files.rescued_branch import RescueContents, rescued_markers
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.plan.values import BarePlan, Plan
from recovery.transactions.decision_records import decision_of, state_partition, transactional_id_of
from recovery.transactions.transaction_judgement import TransactionJudgement, judge_transaction
from recovery.transactions.transaction_values import (
    CoordinatedTransaction,
    EndedTransaction,
    OpenTransaction,
    PartitionTransactions,
    RescuedMarker,
)
from recovery.wording.cluster_health_text import hidden_topic_texts
from recovery.wording.quantity_text import counted

# Reads from the log of __transaction_state how transactions were decided.

FETCH_BYTES = 4 << 20
MOST_BYTES = 256 << 20
"""Bytes of one partition's log; a longer one is not read, and its decisions stay unknown."""

Decisions = tuple[EndedTransaction, ...] | Unknown


async def read_decisions(cluster: Backend, transactional_ids: Sequence[str]) -> Mapping[str, Decisions]:
    """The decisions about each id that are still in the log, oldest first. Needs READ on __transaction_state."""
    if not transactional_ids:
        return {}
    try:
        states = (await cluster.partitions((TRANSACTIONS_TOPIC,))).states
    except BackendError as error:
        return dict.fromkeys(transactional_ids, Unknown(Why.NOT_ANSWERED, str(error)))
    if not states:
        return dict.fromkeys(
            transactional_ids, Unknown(Why.NOT_ALLOWED, f"{TRANSACTIONS_TOPIC} may not be described")
        )
    by_partition: dict[int, list[str]] = {}
    for name in transactional_ids:
        by_partition.setdefault(state_partition(name, len(states)), []).append(name)
    found: dict[str, Decisions] = {}
    for state in states:
        names = by_partition.get(state.partition)
        if names:
            found.update(await _of_partition(cluster, state, names))
    return found


async def _of_partition(
    cluster: Backend, state: PartitionState, names: Sequence[str]
) -> dict[str, Decisions]:
    decisions: dict[str, list[EndedTransaction]] = {name: [] for name in names}
    try:
        problem = await _read_log(cluster, state, decisions)
    except BackendError as error:
        problem = Unknown(Why.NOT_ANSWERED, str(error))
    except (MalformedRecord, CannotUnpack, MalformedRecordError) as error:
        problem = Unknown(Why.FAILED, f"{state.tp}: {error}")
    if problem is not None:
        return dict.fromkeys(names, problem)
    return {name: tuple(rows) for name, rows in decisions.items()}


async def _read_log(
    cluster: Backend, state: PartitionState, decisions: Mapping[str, list[EndedTransaction]]
) -> Unknown | None:
    """Reads the committed log from its start to its end; why it was not read, None if it was."""
    if state.offline:
        return Unknown(Why.NOT_ANSWERED, f"{state.tp} has no leader")
    offset = await _log_start(cluster, state)
    read = 0
    while not isinstance(offset, Unknown) and read < MOST_BYTES:
        batches = await _fetch(cluster, state, offset)
        if isinstance(batches, Unknown):
            return batches
        read += len(batches.data)
        end = _take(batches, offset, decisions)
        if end == offset:
            return None
        offset = end
    return offset if isinstance(offset, Unknown) else _too_long(state)


def _too_long(state: PartitionState) -> Unknown:
    return Unknown(Why.FAILED, f"{state.tp} holds more than {MOST_BYTES >> 20} MiB")


async def _log_start(cluster: Backend, state: PartitionState) -> int | Unknown:
    request = SurveyRequest((state,), 10.0, Depth.LAST, log_dirs=False, leaders_only=True)
    (survey,) = (await cluster.survey(request)).surveys
    log = survey.log(state.leader)
    if log is None or log.log_start_offset < 0:
        return Unknown(Why.NOT_ANSWERED, f"the log start of {state.tp} is not known")
    return log.log_start_offset


async def _fetch(cluster: Backend, state: PartitionState, offset: int) -> RawBatches | Unknown:
    found = await cluster.read_batches(state.leader, (LogPosition(state.tp, offset),), FETCH_BYTES)
    return found.get(state.tp, Unknown(Why.NOT_ANSWERED, f"{state.tp} was left out"))


def _take(batches: RawBatches, offset: int, decisions: Mapping[str, list[EndedTransaction]]) -> int:
    """Adds the decisions of these batches to those of their transactional ids; returns the offset behind the last
    committed batch.
    """
    reader = SegmentReader(SegmentBytes(batches.data))
    for batch in reader:
        header = batch.header
        if header.next_offset > batches.high_watermark:
            return offset
        offset = header.next_offset
        if header.is_control:
            continue
        for record in records_of(batches.data[batch.position : batch.position + header.size]):
            if record.key is None or record.value is None:
                continue
            name, decision = transactional_id_of(record.key), decision_of(record.value)
            if name is not None and name in decisions and decision is not None:
                decisions[name].append(decision)
    return offset


class JudgedTransaction(NamedTuple):
    """One open transaction of one partition. ``coordinated`` is None where no coordinator names its producer, and
    ``decisions`` says why the log of __transaction_state could not be read, None where it was.
    """

    transaction: OpenTransaction
    coordinated: CoordinatedTransaction | None
    judgement: TransactionJudgement | Unknown
    decisions: Unknown | None = None

    @property
    def hanging(self) -> bool:
        """Whether it may never end by itself."""
        return isinstance(self.judgement, Unknown) or self.judgement.hanging


@dataclass(frozen=True, slots=True)
class PartitionsTransactions:
    """``unread`` are partitions whose leader reported nothing. ``not_asked`` says why coordinators may know more.
    ``waiting`` are the groups whose committed offset on a partition is its last stable offset: they stand still, if
    they read committed records only. It is Unknown where groups could not be read.
    ``hidden_topics`` says why there are, or may be, topics that this caller does not see, where all were asked for.
    """

    partitions: Mapping[TopicPartition, PartitionTransactions]
    rows: tuple[JudgedTransaction, ...]
    unread: Mapping[TopicPartition, Unknown]
    not_asked: tuple[Unknown, ...] = ()
    waiting: Mapping[TopicPartition, tuple[str, ...]] = field(default_factory=dict)
    groups_not_listed: tuple[Unknown, ...] = ()
    hidden_topics: tuple[str, ...] = ()

    @property
    def hanging(self) -> tuple[JudgedTransaction, ...]:
        return tuple(row for row in self.rows if row.hanging)

    @property
    def complete(self) -> bool:
        return not self.unread and not self.not_asked and not self.hidden_topics

    @property
    def leaderless(self) -> int:
        """How many partitions were not read because nobody leads them."""
        return sum(why == LEADERLESS for why in self.unread.values())

    @property
    def unread_reasons(self) -> tuple[str, ...]:
        """Why there may be other hanging transactions, in partitions that somebody leads; one line each."""
        unread = Counter(str(why) for why in self.unread.values() if why != LEADERLESS)
        rest = (f"{counted(number, 'partition')}: {why}" for why, number in unread.items())
        return (*self.hidden_topics, *map(str, self.not_asked), *rest)


async def read_transactions(
    cluster: Backend,
    partitions: Sequence[TopicPartition] | None,
    topics: Sequence[str] = (),
    progress: Progress | None = None,
    rescue: RescueContents | None = None,
    *,
    plan: Plan | BarePlan | None = None,
) -> PartitionsTransactions:
    """Of the partitions given, or of all partitions of ``topics``, or of the cluster. Markers in ``rescue`` are
    evidence, and so is what the elections of ``plan`` cut off in __transaction_state. Raises BackendError;
    InputError where the rescue is damaged.
    """
    described_now = await _described(cluster, partitions, topics)
    states = described_now.states
    if progress is not None:
        progress("asking leaders for open transactions", 0, len(states))
    api = cluster.transactions()
    reported = await api.open_in({state.tp: state.leader for state in states})
    found = {tp: one for tp, one in reported.items() if isinstance(one, PartitionTransactions)}
    unread = {tp: one for tp, one in reported.items() if isinstance(one, Unknown)}
    missing = Unknown(Why.FAILED, "the partition does not exist any more, or may not be seen")
    unread |= {tp: missing for tp in partitions or () if tp not in reported}
    open_ones = [transaction for one in found.values() for transaction in one.open]
    answers = CoordinatorAnswers({})
    if open_ones:
        answers = await api.coordinated(sorted({one.producer_id for one in open_ones}))
    wanted = [answers.known.get(one.producer_id) for one in open_ones]
    ids = {
        c.transactional_id
        for one, c in zip(open_ones, wanted, strict=True)
        if c and one.tp not in c.partitions
    }
    decisions = await read_decisions(cluster, sorted(ids))
    markers = await _markers(rescue, states, open_ones)
    cut_off = await _cut_off_coordinators(cluster, plan) if open_ones else _CutOffCoordinators()
    rows = tuple(_judged(one, answers, decisions, markers, cut_off) for one in open_ones)
    hidden_topics = (
        tuple(hidden_topic_texts(described_now.hidden, described_now.not_compared))
        if partitions is None
        else ()
    )
    listed = PartitionsTransactions(found, rows, unread, answers.not_asked, hidden_topics=hidden_topics)
    result = await _open_still(api, listed)
    return await _with_groups(cluster, result)


class _CutOffCoordinators(NamedTuple):
    """Partitions of __transaction_state, of ``size``, whose log an election may have cut off."""

    numbers: frozenset[int] = frozenset()
    size: int = 0

    def coordinate(self, coordinated: CoordinatedTransaction | None) -> bool:
        if coordinated is None or not self.numbers:
            return False
        return state_partition(coordinated.transactional_id, self.size) in self.numbers


async def _cut_off_coordinators(cluster: Backend, plan: Plan | BarePlan | None) -> _CutOffCoordinators:
    rows = plan.rows if isinstance(plan, Plan) else ()
    numbers = frozenset(
        row.tp.partition for row in rows if row.tp.topic == TRANSACTIONS_TOPIC and not row.loss.none
    )
    if not numbers:
        return _CutOffCoordinators()
    states = (await cluster.partitions((TRANSACTIONS_TOPIC,))).states
    return _CutOffCoordinators(numbers, len(states)) if states else _CutOffCoordinators()


async def _markers(
    rescue: RescueContents | None, states: Sequence[PartitionState], open_ones: Sequence[OpenTransaction]
) -> tuple[RescuedMarker, ...]:
    concerned = {one.tp for one in open_ones}
    if rescue is None or not concerned:
        return ()
    topic_ids = {(state.tp, state.topic_id) for state in states if state.tp in concerned}
    return await asyncio.to_thread(rescued_markers, rescue, topic_ids)


async def _open_still(api: Transactions, result: PartitionsTransactions) -> PartitionsTransactions:
    """Without those that have ended meanwhile: a coordinator calls a transaction complete once all its markers are
    written, so only what is open after its answer is hanging.
    """
    concerned = {row.transaction.tp for row in result.hanging}
    if not concerned:
        return result
    reported = await api.open_in({tp: result.partitions[tp].leader for tp in concerned})
    again = {tp: one for tp, one in reported.items() if isinstance(one, PartitionTransactions)}
    unread = {tp: one for tp, one in reported.items() if isinstance(one, Unknown)}
    still = {(one.tp, one.producer_id, one.start_offset) for part in again.values() for one in part.open}
    rows = tuple(
        row
        for row in result.rows
        if row.transaction.tp not in concerned
        or (row.transaction.tp, row.transaction.producer_id, row.transaction.start_offset) in still
    )
    partitions = {tp: one for tp, one in {**result.partitions, **again}.items() if tp not in unread}
    return replace(result, partitions=partitions, rows=rows, unread={**result.unread, **unread})


async def _described(
    cluster: Backend, partitions: Sequence[TopicPartition] | None, topics: Sequence[str]
) -> Partitions:
    if partitions is not None:
        return await described(cluster, partitions) if partitions else Partitions(())
    found: Partitions = await cluster.partitions(tuple(topics) or None)
    refuse_unknown_topics(topics, found)
    return found


def _judged(
    transaction: OpenTransaction,
    answers: CoordinatorAnswers,
    decisions: Mapping[str, Decisions],
    rescued: Sequence[RescuedMarker],
    cut_off: _CutOffCoordinators,
) -> JudgedTransaction:
    coordinated = answers.known.get(transaction.producer_id)
    if coordinated is None and answers.not_asked:
        return JudgedTransaction(transaction, None, answers.not_asked[0])
    unreported = Unknown(Why.NOT_OFFERED, "its transactional id is not known")
    reported = unreported if coordinated is None else decisions.get(coordinated.transactional_id, unreported)
    judgement = judge_transaction(
        transaction, coordinated, reported, rescued, coordinator_cut_off=cut_off.coordinate(coordinated)
    )
    return JudgedTransaction(
        transaction, coordinated, judgement, reported if isinstance(reported, Unknown) else None
    )


async def _with_groups(cluster: Backend, result: PartitionsTransactions) -> PartitionsTransactions:
    """Adds the groups that have read to the last stable offset of a partition with a hanging transaction."""
    concerned = {row.transaction.tp for row in result.hanging}
    if not concerned:
        return result
    api = cluster.consumer_groups()
    listing = await api.listed()
    commits = await api.committed(listing.groups, concerned)
    waiting: dict[TopicPartition, list[str]] = {}
    for group, offsets in commits.items():
        if isinstance(offsets, Unknown):
            continue
        for tp, committed in offsets.items():
            if committed.offset == result.partitions[tp].last_stable:
                waiting.setdefault(tp, []).append(group)
    names = {tp: tuple(sorted(groups)) for tp, groups in waiting.items()}
    return replace(result, waiting=names, groups_not_listed=listing.not_listed)
