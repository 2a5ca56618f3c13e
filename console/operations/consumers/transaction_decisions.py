"""Reads from the log of __transaction_state how transactions were decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.answers import Depth, LogPosition, RawBatches, SurveyRequest
from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from backends.base.errors import BackendError
from backends.base.protocol import Backend
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from console.rescue.record_batches import CannotUnpack, MalformedRecord, records_of
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.model import PartitionState, Unknown, Why
from recovery.transactions.decision_records import decision_of, state_partition, transactional_id_of
from recovery.transactions.transaction_values import EndedTransaction

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
