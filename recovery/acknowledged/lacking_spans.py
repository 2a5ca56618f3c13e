"""Which spans of one log another log lacks, and how much of them is known to have been committed."""

from __future__ import annotations

from typing import NamedTuple

from recovery.loss import Loss, divergence, loss, union
from recovery.model import EpochSpan, Lineage, Replica, ReplicaLog, Standing, Survey


class LackingSpans(NamedTuple):
    """``spans`` at or beyond the chosen log's start that the other log holds and it does not. ``at_most`` counts
    them and those that are uncertain; None: not known. ``committed`` are those below the other's high watermark.
    """

    spans: tuple[EpochSpan, ...]
    at_most: int | None
    committed: tuple[EpochSpan, ...]
    expired: int


NOTHING = LackingSpans((), 0, (), 0)


def lacking(survey: Survey, chosen: ReplicaLog, other: ReplicaLog) -> LackingSpans:
    """What ``chosen`` lacks of ``other``, both with known epochs.

    Offsets before the log start of ``chosen`` are counted apart as ``expired``: a log start only rises by
    retention, by DeleteRecords, or after the leader's log start.
    """
    if chosen.lineage == other.lineage and chosen.log_start_offset == other.log_start_offset:
        return NOTHING
    found = _loss_of_pair(survey, chosen, other)
    expired = sum(span.end - span.start for span in found.head)
    at_most = None if found.at_most is None else found.at_most - expired
    return LackingSpans(found.tail, at_most, _committed(chosen, other, found.tail), expired)


def _loss_of_pair(survey: Survey, chosen: ReplicaLog, other: ReplicaLog) -> Loss:
    pair = (Replica(0, Standing.ELECTABLE, chosen), Replica(1, Standing.ELECTABLE, other))
    return loss(survey._replace(replicas=pair), 0)


def _committed(chosen: ReplicaLog, other: ReplicaLog, tail: tuple[EpochSpan, ...]) -> tuple[EpochSpan, ...]:
    """The part of ``tail`` below the other's high watermark: it is committed on the other's branch.

    A replica takes a high watermark only from a leader whose log it matches up to there.
    """
    mark = other.high_watermark
    assert isinstance(chosen.lineage, Lineage)
    assert isinstance(other.lineage, Lineage)
    if mark <= 0 or divergence(other.lineage, chosen.lineage) is None:
        return ()
    return tuple(EpochSpan(e, start, min(end, mark)) for e, start, end in tail if start < mark)


def joined(spans: tuple[EpochSpan, ...], more: tuple[EpochSpan, ...]) -> tuple[EpochSpan, ...]:
    """The union of two sets of spans; the same (epoch, offset) once."""
    return union((*spans, *more)) if spans and more else spans or more
