"""Where a committed offset lies, once an election has chosen one log and cut off the others.

A committed offset is the place where a group reads on; the record before it is the last one that it has read. If
that record is on the branch that is cut off, the offset points behind records of the chosen log that the group
has never seen: it skips them, and no error says so once the chosen log has grown past the offset. The right place
to go back to is the divergence of the two logs. The committed leader epoch (KIP-320) tells which branch it was;
without it the same offset may be of either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from recovery.groups.group_values import CommittedOffset
from recovery.model import NO_EPOCH, EpochSpan, Lineage


class LastReadPlace(StrEnum):
    """Where the last record that a group has read is."""

    COMMON = "in the common prefix"
    KEPT = "on the branch that is kept"
    CUT_OFF = "on the branch that is cut off"
    EITHER = "on either branch"
    BEYOND_END = "beyond the end"
    BEFORE_START = "before the log start"


HARMLESS = frozenset({LastReadPlace.COMMON, LastReadPlace.KEPT})
"""Nothing has to be done: the group reads on where it should."""


class SurvivingLog(NamedTuple):
    """The log that stays, or will stay: the leader's, or that of the chosen candidate."""

    lineage: Lineage
    start: int
    end: int

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at ``offset``; NO_EPOCH where the log does not hold it or does not tell."""
        return next((s.epoch for s in self.lineage.spans if s.start <= offset < s.end), NO_EPOCH)


class OffsetJudgement(NamedTuple):
    """``go_back_to`` is where to read on so that no record of the kept log is skipped, None where that is the
    committed offset itself, or not known. ``exact``: it is the divergence; otherwise it is as far ahead as it can
    be, and the divergence may lie before it.

    ``beyond_end``: the committed offset lies behind the end of the kept log: the client's auto.offset.reset
    decides, unless the log grows past it first. ``gone`` counts the offsets that the group has read and that are
    cut off, ``never_read`` those of the kept log that it would skip, ``read_again`` those that it may have read
    and that going back makes it read again.
    """

    place: LastReadPlace
    go_back_to: int | None = None
    exact: bool = True
    beyond_end: bool = False
    gone: int = 0
    never_read: int = 0
    read_again: int = 0

    @property
    def harmless(self) -> bool:
        return self.place in HARMLESS


def judge_offset(
    committed: CommittedOffset,
    surviving: SurvivingLog,
    cut_off: Sequence[EpochSpan],
    *,
    all_logs_known: bool,
    was_cut_off: bool = False,
    forgotten_below: int = 0,
    no_branch_below: int = 0,
    planned_end: int | None = None,
) -> OffsetJudgement:
    """``was_cut_off``: the same offset was committed before the election, and was on the branch that is cut off, or
    beyond the end of the chosen log. ``cut_off`` are the spans that other logs hold, or held, and the kept one does
    not (:mod:`recovery.loss`).

    ``forgotten_below``: another branch may have held other records before this offset, which are deleted.
    ``all_logs_known`` False: a replica's log was never read, and may have held another branch; not below
    ``no_branch_below`` (:func:`no_branch_below`). ``planned_end``: where the log that a plan chose ends, or ended
    before the election; None: there is no plan, or another log stayed.
    """
    if committed.offset < surviving.start:
        return OffsetJudgement(LastReadPlace.BEFORE_START)
    found = _with_epoch(committed, surviving, cut_off) if committed.epoch >= 0 else None
    if found is None:
        known = all_logs_known or committed.offset <= no_branch_below
        found = _without_epoch(committed.offset, surviving, cut_off, known)
        beyond = planned_end is not None and committed.offset > planned_end
        if was_cut_off and found.place is LastReadPlace.EITHER and found.go_back_to is not None:
            found = _cut(committed.offset, surviving, found.go_back_to)
        elif planned_end is not None and (
            found.place is LastReadPlace.BEYOND_END or (was_cut_off and beyond and found.go_back_to is None)
        ):
            # Behind the chosen log's end nobody tells what it read; before it both were the same, or a replica
            # that never told its log had another branch.
            exact = all_logs_known or no_branch_below >= planned_end
            cut = _cut(committed.offset, surviving, planned_end, exact=exact)
            found = cut._replace(place=LastReadPlace.BEYOND_END) if cut.beyond_end else cut
    if found.go_back_to is not None and found.go_back_to <= forgotten_below:
        return found._replace(exact=False)
    return found


def no_branch_below(lineage: Lineage, start: int, other_leaders: bool) -> int:
    """Up to which offset no replica can hold other records than this log, whether it told its log or not; 0: that
    is not known.

    Records of the log's first epoch are the same everywhere. Others at the same offsets are of an epoch before or
    after it, whose leader lacked this log's records: ``other_leaders`` tells whether there may have been one.
    """
    known = start == 0 and lineage.floor == 0 and lineage.spans and not other_leaders
    return lineage.spans[0].end if known else 0


def other_leaders(
    epochs: Collection[int],
    leaders: Iterable[tuple[int, int]] | None,
    leader_epoch: int,
    answered: Collection[int],
) -> bool:
    """Whether a leader may have written records of an epoch that is not among ``epochs``, those of a log.

    ``leaders`` are (leader epoch, broker) of the whole metadata log, None where it is not known; ``leader_epoch``
    is that of a partition without a leader, or of the present leader whose log it is. ``answered`` are the brokers
    whose logs are known: what these wrote would be seen.
    """
    if leaders is not None:
        return any(epoch not in epochs and broker not in answered for epoch, broker in leaders)
    # Also of an epoch before the log's first one: its records may have been at the same offsets, and lost.
    return len({epoch for epoch in epochs if 0 <= epoch < leader_epoch}) < leader_epoch


def _with_epoch(
    committed: CommittedOffset, surviving: SurvivingLog, cut_off: Sequence[EpochSpan]
) -> OffsetJudgement | None:
    """None where the epoch does not tell which branch the last record is on."""
    offset, epoch = committed.offset, committed.epoch
    if any(span.epoch == epoch and span.start < offset <= span.end for span in cut_off):
        return _cut(offset, surviving, _branch_start(offset, epoch, cut_off))
    spans = surviving.lineage.spans
    own = next((span for span in spans if span.epoch == epoch), None)
    if own is not None:
        if offset > own.end:  # both branches hold this epoch: they part where it ends in the kept log
            return _cut(offset, surviving, own.end)
        return _uncut(offset, cut_off) if offset > own.start else None
    if surviving.lineage.floor > surviving.start and (not spans or epoch < spans[0].epoch):
        return None  # the kept log may hold the epoch below what is known of it
    # No log that is known holds that epoch so far up: they part at the end of an earlier epoch, or before it.
    earlier = [span.end for span in spans if span.epoch < epoch]
    return _cut(offset, surviving, max(earlier, default=surviving.start), exact=False)


def _without_epoch(
    offset: int, surviving: SurvivingLog, cut_off: Sequence[EpochSpan], all_logs_known: bool
) -> OffsetJudgement:
    on_cut = [span for span in cut_off if span.start < offset <= span.end]
    in_surviving = offset <= surviving.end
    if not on_cut:
        if not in_surviving:
            return OffsetJudgement(LastReadPlace.BEYOND_END, beyond_end=True)
        if all_logs_known:
            return _uncut(offset, cut_off)
        return OffsetJudgement(LastReadPlace.EITHER, exact=False)
    back = min(_branch_start(offset, span.epoch, cut_off) for span in on_cut)
    if not in_surviving:
        return _cut(offset, surviving, back)
    return OffsetJudgement(LastReadPlace.EITHER, back, read_again=offset - back)


def _uncut(offset: int, cut_off: Sequence[EpochSpan]) -> OffsetJudgement:
    parting = min((span.start for span in cut_off), default=offset)
    return OffsetJudgement(LastReadPlace.COMMON if offset <= parting else LastReadPlace.KEPT)


def _cut(offset: int, surviving: SurvivingLog, back: int, *, exact: bool = True) -> OffsetJudgement:
    back = max(back, surviving.start)
    return OffsetJudgement(
        LastReadPlace.CUT_OFF,
        min(back, offset),
        exact,
        beyond_end=offset > surviving.end,
        gone=max(0, offset - back),
        never_read=max(0, min(offset, surviving.end) - back),
    )


def _branch_start(offset: int, epoch: int, cut_off: Sequence[EpochSpan]) -> int:
    """Where the branch that holds (``epoch``, ``offset`` - 1) leaves the kept log.

    Spans of several branches may lie before it; the lowest start is taken: too low reads records twice, too high
    skips them.
    """
    start = min(span.start for span in cut_off if span.epoch == epoch and span.start < offset <= span.end)
    while True:
        before = [s.start for s in cut_off if s.epoch < epoch and s.start < start <= s.end]
        if not before:
            return start
        start = min(before)
