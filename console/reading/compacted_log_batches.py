"""Reads what the logs of compacted topics still hold, where that decides a choice: their batches' headers.

Brokers send whole batches, so this reads the logs themselves: small ones whole, and none beyond the limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from backends.base.answers import LogPosition
from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from backends.base.time_limit import time_limit
from backends.log_segments.batch_header import BatchHeader, batch_headers, header_defect
from recovery.compacted_logs import CompactedBatch, CompactedLogs
from recovery.model import ReplicaLog, Survey, TopicPartition, Unknown

LOG_BYTES = 16 << 20
"""A larger log is not read."""
ANSWER_BYTES = 1 << 20
SECONDS = 10.0
"""For all logs together."""


class _LogToRead(NamedTuple):
    tp: TopicPartition
    broker: int
    log: ReplicaLog


_Key = tuple[TopicPartition, int]


async def with_batches_read(
    backend: Backend,
    surveys: Sequence[Survey],
    progress: Progress | None = None,
    *,
    seconds: float = SECONDS,
) -> tuple[Survey, ...]:
    """The surveys, with what was read of the logs of compacted topics without a leader; the others as they are.

    Returns after ``seconds`` at the latest; a log that was not read by then, or could not be, is in ``unread``.
    """
    wanted = [one for survey in surveys for one in _logs_of(survey)]
    if not wanted:
        return tuple(surveys)
    # Logs of one size are the least likely to differ.
    sizes = {survey.tp: {one.log.size for one in _logs_of(survey)} for survey in surveys}
    by_broker: dict[int, list[_LogToRead]] = {}
    for one in sorted(wanted, key=lambda one: len(sizes[one.tp]) == 1):
        by_broker.setdefault(one.broker, []).append(one)
    found: dict[_Key, tuple[CompactedBatch, ...] | str] = {}
    reported = _ReadingProgress(progress, len(wanted))
    try:
        async with time_limit(backend, seconds):
            await asyncio.gather(*(_read_all(backend, mine, found, reported) for mine in by_broker.values()))
    except TimeoutError:
        pass  # what was not read is said as such
    late = f"not read within {seconds:g} s"
    return tuple(_with(survey, found, late) for survey in surveys)


def _logs_of(survey: Survey) -> Iterator[_LogToRead]:
    if survey.compacted is None or not survey.state.offline:
        return
    reported = [(r.broker, r.log) for r in survey.replicas if isinstance(r.log, ReplicaLog)]
    if len(reported) > 1:
        yield from (_LogToRead(survey.tp, broker, log) for broker, log in reported)


def _with(survey: Survey, found: dict[_Key, tuple[CompactedBatch, ...] | str], late: str) -> Survey:
    batches: dict[int, tuple[CompactedBatch, ...]] = {}
    unread: dict[int, str] = {}
    for one in _logs_of(survey):
        what = found.get((one.tp, one.broker), late)
        if isinstance(what, str):
            unread[one.broker] = what
        else:
            batches[one.broker] = what
    return survey._replace(compacted=CompactedLogs(batches, unread)) if batches or unread else survey


class _ReadingProgress:
    """Tells how many logs are read."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def next(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress("comparing compacted logs", self._done, self._total)


async def _read_all(
    backend: Backend,
    logs: Sequence[_LogToRead],
    found: dict[_Key, tuple[CompactedBatch, ...] | str],
    progress: _ReadingProgress,
) -> None:
    for one in logs:
        found[one.tp, one.broker] = await _read(backend, one)
        progress.next()


async def _read(backend: Backend, one: _LogToRead) -> tuple[CompactedBatch, ...] | str:
    """The batches of that log, or why they were not read."""
    too_large = f"its log is larger than {LOG_BYTES >> 20} MiB"
    if one.log.size > LOG_BYTES:
        return too_large
    batches: list[CompactedBatch] = []
    offset, size = max(one.log.log_start_offset, 0), 0
    while offset < one.log.log_end_offset:
        try:
            reported = await backend.read_batches(one.broker, [LogPosition(one.tp, offset)], ANSWER_BYTES)
        except BackendError as error:
            return str(error)
        answer = reported.get(one.tp)
        if answer is None or isinstance(answer, Unknown):
            return "the broker left it out" if answer is None else str(answer)
        size += len(answer.data)
        if size > LOG_BYTES:
            return too_large
        headers, problem = _headers(answer.data)
        if problem:
            return problem
        if not headers:
            break  # nothing is left behind that offset
        batches += [CompactedBatch(h.base_offset, h.last_offset, h.record_count, h.crc) for h in headers]
        offset = headers[-1].next_offset
    return tuple(batches)


def _headers(data: bytes) -> tuple[list[BatchHeader], str]:
    """The header of each batch, of a last one that is cut too; or what is wrong with them."""
    headers: list[BatchHeader] = []
    for _, header in batch_headers(data):
        if defect := header_defect(header):
            return [], f"its batch at offset {header.base_offset} is no batch: {defect}"
        headers.append(header)
    if data and not headers:
        return [], f"its broker sent {len(data)} bytes, which hold no batch"
    return headers, ""
