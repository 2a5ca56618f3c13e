"""Committed offsets and their judgement in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from recovery.groups.group_values import CommittedOffset
from recovery.groups.offset_judgement import LastReadPlace, OffsetJudgement
from recovery.model import NO_EPOCH, Unknown
from recovery.plan.values import AffectedGroup, PlanRow
from recovery.wording.quantity_text import counted, more, offset, printable, some_of

NAMED_OFFSETS = 5
"""So many committed offsets are shown with a plan; all are in ktriage groups show."""

_SETTLED = {
    LastReadPlace.COMMON: "reads on",
    LastReadPlace.KEPT: "reads on",
    LastReadPlace.BEFORE_START: "its next records are deleted: auto.offset.reset decides where it reads on",
    LastReadPlace.BEYOND_END: (
        "auto.offset.reset decides where it reads on, unless the log grows past the offset first: then it skips"
        " records without an error"
    ),
}


def committed_text(committed: CommittedOffset) -> str:
    """``1,450 (epoch 2)``."""
    epoch = "no epoch" if committed.epoch == NO_EPOCH else f"epoch {committed.epoch}"
    return f"{offset(committed.offset)} ({epoch})"


PENDING = (
    "a transaction that is open has committed another offset: until it ends, no member that starts reads on"
    " (UNSTABLE_OFFSET_COMMIT); ktriage transactions shows it"
)


def judgement_text(judgement: OffsetJudgement | Unknown, epoch: int = NO_EPOCH) -> str:
    """What the group does if nothing is done, and where it should go back to. ``epoch`` is the committed one.
    Java's client checks it (4.3); librdkafka (2.16) does not in partitions that the group has assigned to it.
    """
    if isinstance(judgement, Unknown):
        return f"not known: {judgement}"
    place, back = judgement.place, judgement.go_back_to
    if place is LastReadPlace.EITHER:
        if back is None:
            return "a replica never told its log, and no epoch was committed: not known which records it has read"
        return (
            "no epoch was committed: if it read the branch that is cut off, it skips what is kept from"
            f" {back:,} on; going back to {back:,} reads up to {judgement.read_again:,} offsets again"
        )
    if place not in (LastReadPlace.CUT_OFF, LastReadPlace.BEYOND_END) or back is None:
        return _SETTLED.get(place, "")
    gone = "are cut off" if place is LastReadPlace.CUT_OFF else "no log that is known holds"
    words = [f"has read {judgement.gone:,} offsets that {gone}"]
    if epoch != NO_EPOCH:
        words.append("Java's client notices by the committed epoch and goes back itself, others may not")
    if judgement.beyond_end:
        words.append("auto.offset.reset decides, until the log has grown past its offset")
    if judgement.never_read:
        skips = "would then skip" if judgement.beyond_end else "skips"
        words.append(f"{skips} {judgement.never_read:,} kept offsets without an error")
    where = f"go back to {back:,}" if judgement.exact else f"go back to {back:,}, or before it"
    return f"{'; '.join(words)}: {where}"


_INTERNAL_LOSS = {
    "__consumer_offsets": "offsets that groups committed there are gone: these groups read records again",
    "__transaction_state": (
        "their coordinator then forgets what it decided there: it may abort transactions whose producers were told"
        " that they are committed, and ktriage transactions shows those that are open"
    ),
}


def internal_loss_lines(rows: Sequence[PlanRow]) -> Iterator[str]:
    """What a loss in Kafka's own topics means for groups and transactions."""
    for topic, meaning in _INTERNAL_LOSS.items():
        losing = sum(1 for row in rows if row.tp.topic == topic and not row.loss.none)
        if losing:
            yield f"{counted(losing, 'partition')} of {topic} may lose something: {meaning}"


def affected_offset_lines(groups: Sequence[AffectedGroup], most: int) -> Iterator[str]:
    """A line for each committed offset of the groups that a plan affects, at most ``most``; the rest is counted."""
    for row in groups[:most]:
        committed = committed_text(CommittedOffset(row.offset, row.epoch))
        back = "where to go back to is not known" if row.go_back_to is None else f"back to {row.go_back_to:,}"
        yield f"{printable(row.group)} on {row.tp}: committed {committed}, last read {row.place}: {back}"
    yield from more(len(groups) - most, " (ktriage groups show PLAN)", noun="committed offset")


def affected_group_lines(groups: Sequence[AffectedGroup], unread: Sequence[str]) -> Iterator[str]:
    """A line that counts the groups that a plan affects and says on which branch their offsets lie, and a line for
    each reason (``unread``) why other groups may be missing.
    """
    unsure = [row for row in groups if row.place is LastReadPlace.EITHER and row.go_back_to is None]
    sure = [row for row in groups if row.place is not LastReadPlace.EITHER or row.go_back_to is not None]
    if sure:
        names = sorted({printable(row.group) for row in sure})
        places = Counter(row.place for row in sure)
        where = ", ".join(f"{number:,} {place}" for place, number in places.items())
        yield (
            f"{counted(len(names), 'consumer group')} affected ({some_of(names)}): committed offsets {where};"
            " after the election: ktriage groups fix"
        )
    if unsure:
        names = sorted({printable(row.group) for row in unsure})
        yield (
            f"{counted(len(names), 'consumer group')} may be affected ({some_of(names)}): no epoch was committed,"
            " and a replica that did not tell its log may have held other records there"
        )
    yield from (f"there may be other consumer groups: {why}" for why in unread)


def affected_groups_in_short(groups: Sequence[AffectedGroup], unread: Sequence[str]) -> Iterator[str]:
    """The same as warnings before the elections, whose reasons stand with the plan."""
    sure = {
        row.group for row in groups if row.place is not LastReadPlace.EITHER or row.go_back_to is not None
    }
    unsure = {row.group for row in groups} - sure
    for names, need in (
        (sure, "another offset after the election (ktriage groups fix)"),
        (unsure, "a look after the election: they may have read what is cut off"),
    ):
        if names:
            needs = "needs" if len(names) == 1 else "need"
            named = some_of(sorted(map(printable, names)), 2)
            yield f"{counted(len(names), 'group')} ({named}) {needs} {need}."
    if unread:
        yield "Not all groups could be read: others may be affected (the plan says why)."
