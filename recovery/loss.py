"""What a choice of leader destroys, as ranges of offsets (design: "Rank and loss").

Every other replica truncates to the new leader's log, and gives up what lies before the leader's log start.
So the loss is what any replica holds and the chosen log does not, the same (epoch, offset) counted once:
by the log matching property two logs that hold the same epoch at the same offset hold the same record.
Offsets, not records: logs are compacted and transactional.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recovery.model import EpochSpan, Lineage, ReplicaLog, Survey, Unknown


class Loss(NamedTuple):
    """The loss of one choice.

    ``at_least`` counts the offsets that replicas which answered hold and the chosen log does not.
    ``at_most`` is the same with what is doubtful counted in, or None where no bound is known: a replica did
    not answer, or its lineage is not known. ``tail`` are the lost spans at or beyond the chosen log's start,
    ``head`` those before it. ``unanswered`` are the replicas that hold nobody knows what. ``first_ms`` and
    ``last_ms`` are the first and the last lost record's timestamps (ms since the epoch) where they were had.
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

    Raises ValueError when ``leader`` is no replica of the partition or did not answer: nothing can be said.
    """
    chosen = survey.replica(leader)
    if chosen is None:
        raise ValueError(f"{leader} is not a replica of {survey.tp}")
    if isinstance(chosen.log, Unknown):
        raise ValueError(f"{leader} did not tell its log of {survey.tp}")
    unknown: list[int] = []
    certain: list[EpochSpan] = []
    doubtful: list[EpochSpan] = []
    for replica in survey.replicas:
        if replica.broker == leader:
            continue
        log = replica.log
        if isinstance(log, Unknown):
            unknown.append(replica.broker)
        elif log != chosen.log and not _lost(log, chosen.log, certain, doubtful):
            unknown.append(replica.broker)
    lost = union(certain)
    at_most = None if unknown else count(union([*certain, *doubtful]))
    tail, head = _split(lost, chosen.log.log_start_offset)
    return Loss(count(lost), at_most, tail, head, tuple(unknown))


def divergence(one: Lineage, other: Lineage) -> int | None:
    """The offset from which two logs differ, or None where they have no epoch in common.

    In the highest epoch that both logs hold, one is a prefix of the other; behind it they differ.
    """
    ends = {span.epoch: span.end for span in one.spans}
    shared = [min(ends[span.epoch], span.end) for span in other.spans if span.epoch in ends]
    return shared[-1] if shared else None


def _lost(log: ReplicaLog, chosen: ReplicaLog, certain: list[EpochSpan], doubtful: list[EpochSpan]) -> bool:
    """Adds what ``log`` holds and ``chosen`` does not; False where the lineages do not allow to tell."""
    if isinstance(log.lineage, Unknown) or isinstance(chosen.lineage, Unknown):
        return False
    kept = {span.epoch: span for span in chosen.lineage.spans}
    # Between the chosen log's start and the floor of what was asked of it, it holds records of epochs that
    # nobody looked up: a span there may be held or not.
    blind_from, blind_to = chosen.log_start_offset, chosen.lineage.floor
    for span in log.lineage.spans:
        for piece in _without(span, kept.get(span.epoch)):
            low, high = max(piece.start, blind_from), min(piece.end, blind_to)
            if low >= high or span.epoch in kept:
                certain.append(piece)
                continue
            doubtful.append(EpochSpan(piece.epoch, low, high))
            certain.extend(
                EpochSpan(piece.epoch, start, end)
                for start, end in ((piece.start, low), (high, piece.end))
                if start < end
            )
    return True


def _without(span: EpochSpan, kept: EpochSpan | None) -> Iterable[EpochSpan]:
    if kept is None:
        return (span,)
    pieces = (
        EpochSpan(span.epoch, span.start, min(span.end, kept.start)),
        EpochSpan(span.epoch, max(span.start, kept.end), span.end),
    )
    return [piece for piece in pieces if piece.start < piece.end]


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


def count(spans: Iterable[EpochSpan]) -> int:
    """How many (epoch, offset) pairs the spans hold; they must not overlap."""
    return sum(span.end - span.start for span in spans)


def _split(
    spans: tuple[EpochSpan, ...], log_start: int
) -> tuple[tuple[EpochSpan, ...], tuple[EpochSpan, ...]]:
    if not spans:
        return (), ()
    tail = [EpochSpan(s.epoch, max(s.start, log_start), s.end) for s in spans if s.end > log_start]
    head = [EpochSpan(s.epoch, s.start, min(s.end, log_start)) for s in spans if s.start < log_start]
    return tuple(tail), tuple(head)
