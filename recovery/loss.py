"""What a choice of leader destroys, as ranges of offsets.

Every other replica truncates to the new leader's log, and deletes what is before the leader's log start.
So the loss is what any replica holds and the chosen log does not, the same (epoch, offset) counted once:
by the log matching property two logs that hold the same epoch at the same offset hold the same record.
Offsets, not records: logs are compacted and transactional.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from recovery.compacted_logs import lacking
from recovery.model import NO_EPOCH, EpochSpan, Lineage, ReplicaLog, Survey, Unknown
from recovery.old_leaders import growing_logs

Place = TypeVar("Place")


class Loss(NamedTuple):
    """The loss of one choice.

    ``at_least`` counts the offsets that replicas which answered hold and the chosen log does not. ``at_most``
    also counts the offsets that are uncertain; it is None if no bound is known: a replica did not answer, its
    lineage is not known, ``compacted`` is not, or its log may still grow (:mod:`recovery.old_leaders`). ``tail``
    are the lost spans at or beyond the chosen log's start, ``head`` those before it. ``unanswered`` are the
    replicas whose logs are not known. ``first_ms`` and ``last_ms`` are the timestamps of the first and the last
    lost record (ms since the epoch), None if not known. ``compacted``: at most how many records that another
    replica still holds were compacted away in the chosen log, in the part that both share; None where that is not
    known.
    """

    at_least: int
    at_most: int | None
    tail: tuple[EpochSpan, ...]
    head: tuple[EpochSpan, ...]
    unanswered: tuple[int, ...]
    first_ms: int | None = None
    last_ms: int | None = None
    compacted: int | None = 0

    @property
    def unknown(self) -> bool:
        """Whether nothing at all is known of it."""
        return self.at_most is None and not self.at_least

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
        raise ValueError(f"broker {leader} did not report its log of {survey.tp}")
    unknown: list[int] = []
    certain: list[EpochSpan] = []
    doubtful: list[_Doubtful] = []
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
            _add_lost(
                _Log(replica.broker, log, log.lineage),
                _Log(leader, chosen, chosen.lineage),
                certain,
                doubtful,
            )
    lost = union(certain)
    compacted = compacted_away(survey, leader)
    unbounded = unknown or any(broker != leader for broker in growing_logs(survey))
    at_most = None if unbounded or compacted is None else _at_most(certain, doubtful) + compacted
    tail, head = _split(lost, chosen.log_start_offset) if lost else ((), ())
    return Loss(count(lost), at_most, tail, head, tuple(unknown), compacted=compacted)


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
    doubtful: list[_Doubtful] = []
    _add_lost(_Log(broker, log, log.lineage), _Log(leader, chosen, chosen.lineage), spans, doubtful)
    spans.extend(span for _, span in doubtful)
    return tuple(sorted(spans, key=lambda span: span.start))


def _at_most(certain: Iterable[EpochSpan], doubtful: Sequence[_Doubtful]) -> int:
    """All offsets, the uncertain ones too. Without an epoch, the same offset on two replicas may be two
    records, unless both logs go on with the same epoch: then they are equal before it.
    """
    named = [span for _, span in doubtful if span.epoch != NO_EPOCH]
    nameless: dict[int, list[EpochSpan]] = {}
    for anchor, span in doubtful:
        if span.epoch == NO_EPOCH:
            nameless.setdefault(anchor, []).append(span)
    return count(union([*certain, *named])) + sum(count(union(spans)) for spans in nameless.values())


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


class _Doubtful(NamedTuple):
    """Offsets that may be lost. ``anchor``: the epoch of the first record whose epoch the log's broker knows, or,
    where it knows none, a number of that log alone.
    """

    anchor: int
    span: EpochSpan


class _Log(NamedTuple):
    broker: int
    log: ReplicaLog
    lineage: Lineage

    @property
    def start(self) -> int:
        return self.log.log_start_offset

    @property
    def anchor(self) -> int:
        return self.lineage.spans[0].epoch if self.lineage.spans else NO_EPOCH - 1 - self.broker

    def spans(self) -> list[EpochSpan]:
        """All offsets of the log; those below the floor have no known epoch."""
        floor = self.lineage.floor
        blind = [EpochSpan(NO_EPOCH, self.start, floor)] if self.start < floor else []
        return [*blind, *self.lineage.spans]


def _add_lost(log: _Log, chosen: _Log, certain: list[EpochSpan], doubtful: list[_Doubtful]) -> None:
    """Adds what ``log`` holds and ``chosen`` does not."""
    parting = divergence(log.lineage, chosen.lineage)
    if parting is not None:
        for piece in _clip(log.spans(), 0, min(parting, chosen.start)) if chosen.start else ():
            # Without its epoch a record may be one that another replica's span already counts.
            if piece.epoch == NO_EPOCH:
                doubtful.append(_Doubtful(log.anchor, piece))
            else:
                certain.append(piece)
        certain.extend(_clip(log.lineage.spans, parting, log.log.log_end_offset))
        return
    # No epoch in common as far down as was asked. Where both logs are known the records differ; where one of
    # them was not asked (an interrupted survey), they may be the same.
    for span in log.spans():
        if span.epoch == NO_EPOCH:
            doubtful.append(_Doubtful(log.anchor, span))
        elif span.epoch > chosen.lineage.last_epoch != NO_EPOCH:
            certain.append(span)
        else:
            unclear = _clip([span], chosen.start, chosen.lineage.floor)
            doubtful.extend(_Doubtful(log.anchor, piece) for piece in unclear)
            certain.extend(_clip([span], 0, chosen.start))
            certain.extend(_clip([span], max(chosen.start, chosen.lineage.floor), log.log.log_end_offset))


def compacted_away(survey: Survey, leader: int) -> int | None:
    """At most how many records another replica still holds that compaction has removed from ``leader``'s log, in
    the part that both share; 0 where the topic is not compacted.

    None where that is not known: one of the logs was not read, and they are not of the same size. Logs that cannot
    be compared are counted elsewhere.
    """
    if survey.compacted is None:
        return 0
    chosen = survey.log(leader)
    read = survey.compacted.batches
    others = []
    shared_to = 0
    for replica in survey.replicas:
        shared = 0 if replica.broker == leader else _shared_to(chosen, survey.log(replica.broker))
        if not shared:
            continue
        if leader in read and replica.broker in read:
            others.append([batch for batch in read[replica.broker] if batch.base < shared])
            shared_to = max(shared_to, shared)
        elif not _same_size(chosen, survey.log(replica.broker)):
            return None
    if not others or chosen is None:
        return 0
    return lacking(read[leader], others, chosen.log_start_offset, shared_to)


def _shared_to(one: ReplicaLog | None, other: ReplicaLog | None) -> int:
    """The offset up to which the two logs are known to be copies of one another, 0 if they are not."""
    if one is None or other is None or isinstance(one.lineage, Unknown) or isinstance(other.lineage, Unknown):
        return 0
    parting = divergence(one.lineage, other.lineage) or 0
    return parting if parting > max(one.log_start_offset, other.log_start_offset) else 0


def _same_size(one: ReplicaLog | None, other: ReplicaLog | None) -> bool:
    return (
        one is not None
        and other is not None
        and one.size == other.size >= 0
        and one.log_start_offset == other.log_start_offset
        and one.lineage == other.lineage
    )


def _clip(spans: Iterable[EpochSpan], low: int, high: int) -> list[EpochSpan]:
    if low >= high:
        return []  # as for every head where no log start has risen
    clipped = []
    for epoch, start, end in spans:
        first, beyond = max(start, low), min(end, high)
        if first < beyond:
            clipped.append(EpochSpan(epoch, first, beyond))
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


def union_by(
    placed: Iterable[tuple[Place, Iterable[EpochSpan]]],
) -> dict[Place, tuple[EpochSpan, ...]]:
    """The union of the spans of each place; a place may come several times."""
    found: dict[Place, tuple[EpochSpan, ...]] = {}
    for place, spans in placed:
        found[place] = union((*found.get(place, ()), *spans))
    return found


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
