"""What a choice of leader destroys, as ranges of offsets.

Every other replica truncates to the new leader's log, and deletes what is before the leader's log start.
So the loss is what any replica holds and the chosen log does not, the same (epoch, offset) counted once:
by the log matching property two logs that hold the same epoch at the same offset hold the same record.
Offsets, not records: logs are compacted and transactional.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from recovery.model import NO_EPOCH, EpochSpan, Lineage, ReplicaLog, Survey, Unknown


class Loss(NamedTuple):
    """The loss of one choice.

    ``at_least`` counts the offsets that replicas which answered hold and the chosen log does not. ``at_most``
    also counts the offsets that are uncertain; it is None if no bound is known: a replica did not answer, or
    its lineage is not known. ``tail`` are the lost spans at or beyond the chosen log's start, ``head`` those
    before it. ``unanswered`` are the replicas whose logs are not known. ``first_ms`` and ``last_ms`` are the
    timestamps of the first and the last lost record (ms since the epoch), None if not known.
    """

    at_least: int
    at_most: int | None
    tail: tuple[EpochSpan, ...]
    head: tuple[EpochSpan, ...]
    unanswered: tuple[int, ...]
    first_ms: int | None = None
    last_ms: int | None = None

    @property
    def none(self) -> bool:
        """True only when it is certain that nothing is lost."""
        return self.at_most == 0


def loss(survey: Survey, leader: int) -> Loss:
    """What electing ``leader`` destroys.

    Raises ValueError if ``leader`` is not a replica of the partition, or did not answer.
    """
    chosen = survey.log(leader)
    if chosen is None:
        raise ValueError(f"broker {leader} did not tell its log of {survey.tp}")
    unknown: list[int] = []
    certain: list[EpochSpan] = []
    doubtful: list[EpochSpan] = []
    for replica in survey.replicas:
        log = replica.log
        if replica.broker == leader:
            continue
        if (
            isinstance(log, Unknown)
            or isinstance(log.lineage, Unknown)
            or isinstance(chosen.lineage, Unknown)
        ):
            unknown.append(replica.broker)
        elif log.lineage != chosen.lineage or log.log_start_offset != chosen.log_start_offset:
            _add_lost(_Log(log, log.lineage), _Log(chosen, chosen.lineage), certain, doubtful)
    lost = union(certain)
    at_most = None if unknown else _at_most(certain, doubtful)
    tail, head = _split(lost, chosen.log_start_offset)
    return Loss(count(lost), at_most, tail, head, tuple(unknown))


def lost_spans(survey: Survey, leader: int, broker: int) -> tuple[EpochSpan, ...]:
    """What the replica on ``broker`` holds and the log of ``leader`` does not, or may not, by ascending offset.

    Spans of which the epoch is not known are among them. Nothing where either lineage is not known.
    """
    chosen, log = survey.log(leader), survey.log(broker)
    if (
        chosen is None
        or log is None
        or isinstance(chosen.lineage, Unknown)
        or isinstance(log.lineage, Unknown)
    ):
        return ()
    spans: list[EpochSpan] = []
    _add_lost(_Log(log, log.lineage), _Log(chosen, chosen.lineage), spans, spans)
    return tuple(sorted(spans, key=lambda span: span.start))


def _at_most(certain: Iterable[EpochSpan], doubtful: Iterable[EpochSpan]) -> int:
    """All offsets, the uncertain ones too. Without an epoch, the same offset on two replicas may be two
    records.
    """
    named = [span for span in doubtful if span.epoch != NO_EPOCH]
    nameless = [span for span in doubtful if span.epoch == NO_EPOCH]
    return count(union([*certain, *named])) + count(nameless)


def divergence(one: Lineage, other: Lineage) -> int | None:
    """The offset from which two logs differ, or None where they are not known to have an epoch in common.

    In the highest epoch that both logs hold, one is a prefix of the other; behind it they differ, and before
    it they are the same wherever both still hold records.
    """
    ends = {span.epoch: span.end for span in one.spans}
    for span in reversed(other.spans):
        if span.epoch in ends:
            return min(ends[span.epoch], span.end)
    return None


class _Log(NamedTuple):
    log: ReplicaLog
    lineage: Lineage

    @property
    def start(self) -> int:
        return self.log.log_start_offset

    def spans(self) -> list[EpochSpan]:
        """All offsets of the log; those below the floor have no known epoch."""
        floor = self.lineage.floor
        blind = [EpochSpan(NO_EPOCH, self.start, floor)] if self.start < floor else []
        return [*blind, *self.lineage.spans]


def _add_lost(log: _Log, chosen: _Log, certain: list[EpochSpan], doubtful: list[EpochSpan]) -> None:
    """Adds what ``log`` holds and ``chosen`` does not."""
    parting = divergence(log.lineage, chosen.lineage)
    if parting is not None:
        for piece in _clip(log.spans(), 0, min(parting, chosen.start)):
            # Without its epoch a record may be one that another replica's span already counts.
            (doubtful if piece.epoch == NO_EPOCH else certain).append(piece)
        certain.extend(_clip(log.lineage.spans, parting, log.log.log_end_offset))
        return
    # No epoch in common as far down as was asked. Where both logs are known the records differ; where one of
    # them was not asked (an interrupted survey), they may be the same.
    for span in log.spans():
        if span.epoch == NO_EPOCH:
            doubtful.append(span)
        elif span.epoch > chosen.lineage.last_epoch:
            certain.append(span)
        else:
            doubtful.extend(_clip([span], chosen.start, chosen.lineage.floor))
            certain.extend(_clip([span], 0, chosen.start))
            certain.extend(_clip([span], max(chosen.start, chosen.lineage.floor), log.log.log_end_offset))


def _clip(spans: Iterable[EpochSpan], low: int, high: int) -> list[EpochSpan]:
    if low >= high:
        return []  # as for every head where no log start has risen
    clipped = []
    for epoch, start, end in spans:
        kept, limit = max(start, low), min(end, high)
        if kept < limit:
            clipped.append(EpochSpan(epoch, kept, limit))
    return clipped


class Branch(StrEnum):
    """What kind of records a choice truncates, seen from the chosen log's last epoch.

    STALE: written by an earlier leader, and missing on a later leader; records acknowledged with acks=all
    since then are not among them. FURTHER: written by the same leader, and not copied yet by the chosen log.
    NEWER: written by a later leader than any in the chosen log; a choice by log length destroys these.
    """

    STALE = "stale"
    FURTHER = "further"
    NEWER = "newer"


def branches(lost: Loss, last_epoch: int) -> Mapping[Branch, int]:
    """How many offsets of each kind are in the tail of ``lost``; ``last_epoch`` is that of the chosen log."""
    counts: dict[Branch, int] = {}
    for span in lost.tail:
        if span.epoch == NO_EPOCH:
            continue
        newer = span.epoch > last_epoch
        kind = Branch.NEWER if newer else Branch.STALE if span.epoch < last_epoch else Branch.FURTHER
        counts[kind] = counts.get(kind, 0) + span.end - span.start
    return counts


class Witness(NamedTuple):
    """A replica that holds a record, by broker and offset."""

    broker: int
    offset: int


def witnesses(survey: Survey, lost: Loss) -> tuple[Witness, Witness] | None:
    """The replicas that hold the first and the last lost record after the divergence; None: none.

    Their timestamps are what ``first_ms`` and ``last_ms`` are filled with.
    """
    if not lost.tail:
        return None
    first = _holder(survey, lost.tail[0].epoch, lost.tail[0].start)
    last = _holder(survey, lost.tail[-1].epoch, lost.tail[-1].end - 1)
    return None if first is None or last is None else (first, last)


def _holder(survey: Survey, epoch: int, offset: int) -> Witness | None:
    for replica in survey.replicas:
        log = survey.log(replica.broker)
        if log is None or isinstance(log.lineage, Unknown):
            continue
        if any(span.epoch == epoch and span.start <= offset < span.end for span in log.lineage.spans):
            return Witness(replica.broker, offset)
    return None


def union(spans: Iterable[EpochSpan]) -> tuple[EpochSpan, ...]:
    """The spans joined per epoch, ascending by (epoch, start), overlaps counted once."""
    merged: list[EpochSpan] = []
    for span in sorted(spans):
        last = merged[-1] if merged else None
        if last is not None and last.epoch == span.epoch and span.start <= last.end:
            merged[-1] = EpochSpan(span.epoch, last.start, max(last.end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def without(spans: Iterable[EpochSpan], others: Iterable[EpochSpan]) -> tuple[EpochSpan, ...]:
    """The parts of ``spans`` that none of ``others`` of the same epoch covers."""
    left = list(spans)
    for epoch, start, end in others:
        cut: list[EpochSpan] = []
        for span in left:
            if span.epoch != epoch:
                cut.append(span)
                continue
            below, above = span._replace(end=min(span.end, start)), span._replace(start=max(span.start, end))
            cut.extend(piece for piece in (below, above) if piece.start < piece.end)
        left = cut
    return tuple(left)


def count(spans: Iterable[EpochSpan]) -> int:
    """How many (epoch, offset) pairs the spans hold; they must not overlap."""
    return sum(span.end - span.start for span in spans)


def _split(
    spans: tuple[EpochSpan, ...], log_start: int
) -> tuple[tuple[EpochSpan, ...], tuple[EpochSpan, ...]]:
    end = max((span.end for span in spans), default=0)
    tail = _clip(spans, log_start, end)
    head = _clip(spans, 0, log_start)
    return tuple(tail), tuple(head)
