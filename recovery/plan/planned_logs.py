"""The logs of a planned row, derived from the losses of its candidates, for the diagram of the logs.

A plan has no lineages. A candidate's loss is what any other replica has and the candidate has not. So a candidate
has those parts of all candidates' losses that are not in its own loss. The rest of its log is the same in every
known log.
"""

from __future__ import annotations

from typing import NamedTuple

from recovery.loss import union, without
from recovery.model import EpochSpan
from recovery.plan.values import PlanCandidate, PlanRow


class PlannedLog(NamedTuple):
    """One candidate's log from ``start`` to ``end`` (exclusive). ``own`` are the spans that not every log has, and
    ``cut`` the part of them that electing the row's leader cuts off; None: the epochs of the log were not known.
    """

    broker: int
    start: int
    end: int
    high_watermark: int
    own: tuple[EpochSpan, ...] | None
    cut: tuple[EpochSpan, ...] = ()


def planned_logs(row: PlanRow) -> tuple[PlannedLog, ...]:
    """Of every candidate, in the plan's order."""
    pool = union(span for candidate in row.candidates for span in _lost(candidate))
    lost = _lost(row.chosen)
    return tuple(_log(candidate, pool, lost) for candidate in row.candidates)


def _lost(candidate: PlanCandidate) -> tuple[EpochSpan, ...]:
    return union((*candidate.loss.tail, *candidate.loss.head))


def _log(candidate: PlanCandidate, pool: tuple[EpochSpan, ...], lost: tuple[EpochSpan, ...]) -> PlannedLog:
    start, end = max(candidate.log_start, 0), candidate.log_end
    log = PlannedLog(candidate.broker, start, end, candidate.high_watermark, None)
    if candidate.last_epoch is None:
        return log
    own = without(pool, _lost(candidate))
    clipped = (span._replace(start=max(span.start, start), end=min(span.end, end)) for span in own)
    remaining = tuple(
        sorted((span for span in clipped if span.start < span.end), key=lambda span: span.start)
    )
    return log._replace(own=remaining, cut=without(remaining, without(remaining, lost)))
