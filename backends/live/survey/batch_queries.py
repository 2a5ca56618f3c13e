"""Asks a broker's replicas in batches of one topic, until the last epoch of each log is known.

A replica with an error, or with a log that changes meanwhile, leaves its batch as :class:`NeedsRow`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backends.live.connections.connection import BrokerConnection
from backends.live.survey import log_queries
from backends.live.survey.log_ends import LogEnds
from backends.live.survey.log_queries import LogQueryError, ReplicaLogEnd
from backends.live.survey.topic_batch import LogEndColumns, TopicBatch
from recovery.epoch_probe import EpochAnswer, EpochProbe, EpochProbeError, OutOfRange, advance, start
from recovery.model import PartitionState, TopicPartition, Unknown, Why

LEFT_OUT = LogQueryError(Unknown(Why.FAILED, "the broker left the partition out"), retryable=False)


class NeedsRow(NamedTuple):
    """A replica that left its batch: what it answered last, and what was known of it before (None: nothing).

    ``at`` is the index of the partition in the survey.
    """

    state: PartitionState
    at: int
    known: tuple[ReplicaLogEnd, EpochProbe] | None
    answer: ReplicaLogEnd | EpochAnswer | OutOfRange | LogQueryError


async def ask_ends(
    connection: BrokerConnection, ends: LogEnds, batches: Sequence[TopicBatch], timeout: float
) -> list[NeedsRow]:
    """Ask for the log ends of ``batches``, each of another topic. Raises BrokerError."""
    odd = []
    reported = await ends.ask_of(connection, batches, timeout)
    for batch, answer in zip(batches, reported, strict=True):
        odd += _usual_ends(batch, answer) if isinstance(answer, LogEndColumns) else _ends(batch, answer)
    return odd


def _usual_ends(batch: TopicBatch, ends: LogEndColumns) -> list[NeedsRow]:
    try:
        batch.begin(ends)
    except EpochProbeError:
        rows = zip(ends.leader_epochs, ends.offsets, strict=True)
        return _ends(batch, dict(zip(batch.tps(), map(ReplicaLogEnd._make, rows), strict=True)))
    return []


def _ends(
    batch: TopicBatch, answers: Mapping[TopicPartition, ReplicaLogEnd | LogQueryError]
) -> list[NeedsRow]:
    reported = [answers.get(tp, LEFT_OUT) for tp in batch.tps()]
    odd = [
        (position, NeedsRow(state, index, None, answer))
        for position, (state, index, answer) in enumerate(
            zip(batch.states, batch.indices, reported, strict=True)
        )
        if isinstance(answer, LogQueryError) or not _starts(state, answer)
    ]
    batch.drop(position for position, _ in odd)
    gone = {position for position, _ in odd}
    usual = [answer for position, answer in enumerate(reported) if position not in gone]
    ends = [answer for answer in usual if isinstance(answer, ReplicaLogEnd)]
    batch.begin(LogEndColumns([end.offset for end in ends], [end.leader_epoch for end in ends]))
    return [one for _, one in odd]


def _starts(state: PartitionState, end: ReplicaLogEnd) -> bool:
    try:
        start(end.offset, max(end.leader_epoch, state.leader_epoch), state.offline)
    except EpochProbeError:
        return False
    return True


async def ask_epochs(
    connection: BrokerConnection, batches: Sequence[TopicBatch], timeout: float
) -> list[NeedsRow]:
    """Ask the next question about every log of ``batches`` that is not settled. Raises BrokerError."""
    odd = []
    asked = [batch for batch in batches if batch.left]
    reported = await log_queries.probe_epochs_of(connection, asked, timeout)
    for batch, answer in zip(asked, reported, strict=True):
        if isinstance(answer, Mapping):
            tps = batch.tps()
            odd += _answers(batch, [answer.get(tps[position], LEFT_OUT) for position in batch.left])
        else:
            odd += _usual_answers(batch, answer)
    return odd


def _usual_answers(batch: TopicBatch, answers: Sequence[EpochAnswer | OutOfRange]) -> list[NeedsRow]:
    try:
        batch.advance(answers)
    except EpochProbeError:
        return _answers(batch, answers)
    return []


def _answers(
    batch: TopicBatch, answers: Sequence[EpochAnswer | OutOfRange | LogQueryError]
) -> list[NeedsRow]:
    odd = {}
    usual = []
    for position, answer in zip(batch.left, answers, strict=True):
        probe = batch.probes[position]
        if isinstance(answer, LogQueryError) or not _advances(probe, answer):
            end = ReplicaLogEnd(batch.ends.leader_epochs[position], batch.ends.offsets[position])
            odd[position] = NeedsRow(batch.states[position], batch.indices[position], (end, probe), answer)
        else:
            usual.append(answer)
    batch.drop(odd)
    batch.advance(usual)
    return list(odd.values())


def _advances(probe: EpochProbe, answer: EpochAnswer | OutOfRange) -> bool:
    try:
        advance(probe, answer)
    except EpochProbeError:
        return False
    return True
