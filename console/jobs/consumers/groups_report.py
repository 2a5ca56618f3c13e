"""Consumer groups and their offsets, and what came of a fix, as text and as JSON (docs/output.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from console.jobs.consumers.fix_groups import FixedGroups, NotFixed, OffsetFix, PreparedGroupFix
from console.jobs.consumers.group_offsets import GroupOffset, GroupOffsets, StayingLog
from console.output.json_document import document
from recovery.groups.group_values import CommittedOffset, GroupKind, GroupMembers
from recovery.groups.offset_judgement import OffsetJudgement
from recovery.model import Unknown
from recovery.wording.group_text import PENDING, committed_text, judgement_text
from recovery.wording.quantity_text import counted, printable, some_of
from widgets.text_table import TextColumn, table

_COLUMNS = (
    TextColumn("GROUP"),
    TextColumn("PARTITION"),
    TextColumn("COMMITTED", right=True),
    TextColumn("LOG END", right=True),
    TextColumn("LAG", right=True),
    TextColumn("LAST READ"),
    TextColumn("WHAT IT MEANS", below=True),
)
_FIX_COLUMNS = (
    TextColumn("GROUP"),
    TextColumn("PARTITION"),
    TextColumn("COMMITTED", right=True),
    TextColumn("WILL BE", right=True),
    TextColumn("WHY", below=True),
)
_LEFT_COLUMNS = (TextColumn("GROUP"), TextColumn("PARTITION"), TextColumn("NOT CHANGED", below=True))


def group_lines(offsets: GroupOffsets, limit: int, *, every: bool) -> Iterator[str]:
    """Counts, what could not be read, then the offsets: those that are concerned first. ``every``: also the
    others.
    """
    yield from _summary(offsets)
    concerned = sorted(offsets.concerned, key=_order)
    rows = concerned if not every else [*concerned, *(row for row in offsets.rows if not row.concerned)]
    if not rows:
        return
    yield ""
    yield from group_table(rows, offsets, limit)
    yield from _members(offsets, {row.group.name for row in rows[: limit or None]})


def group_table(rows: Sequence[GroupOffset], offsets: GroupOffsets, limit: int) -> Iterator[str]:
    """A line for each offset, as many as ``limit`` says (0: all)."""
    shown = rows[: limit or None]
    yield from table(_COLUMNS, [_row(row, offsets) for row in shown])
    if len(shown) < len(rows):
        yield f"… and {len(rows) - len(shown):,} more (--rows 0, or --output json, shows all)"


def _order(row: GroupOffset) -> tuple[bool, int]:
    judgement = row.judgement
    return isinstance(judgement, Unknown), 0 if isinstance(judgement, Unknown) else -judgement.gone


def _summary(offsets: GroupOffsets) -> Iterator[str]:
    kinds = Counter(group.kind for group in offsets.listing.groups)
    which = f" ({', '.join(f'{n:,} {kind}' for kind, n in kinds.items())})" if len(kinds) > 1 else ""
    with_offsets = len({row.group.name for row in offsets.rows})
    found = f"{counted(len(offsets.listing.groups), 'consumer group')} listed{which}"
    yield f"{found}; {with_offsets:,} with {counted(len(offsets.rows), 'committed offset')} here"
    places = Counter(
        "not known" if isinstance(row.judgement, Unknown) else str(row.judgement.place)
        for row in offsets.rows
    )
    if places:
        yield "last record read: " + ", ".join(f"{n:,} {place}" for place, n in places.items())
    shares = [group.name for group in offsets.listing.groups if group.kind is GroupKind.SHARE]
    if shares:
        yield f"share groups have no committed offsets, and are not judged: {some_of(shares)}"
    for why in offsets.listing.not_listed:
        yield f"there may be other groups: {printable(str(why))}"
    for name, why in list(offsets.unread.items())[:5]:
        yield f"the offsets of group {printable(name)} are not known: {printable(str(why))}"
    if len(offsets.unread) > 5:
        yield f"… and those of {len(offsets.unread) - 5:,} more groups"


def _row(row: GroupOffset, offsets: GroupOffsets) -> tuple[str, ...]:
    use = offsets.uses.get(row.group.name)
    place = "?" if isinstance(row.judgement, Unknown) else str(row.judgement.place)
    return (
        printable(row.group.name) + (f" ({use}?)" if use else ""),
        str(row.tp),
        committed_text(row.committed),
        "?" if row.log_end < 0 else f"{row.log_end:,}",
        "-" if row.lag is None else f"{row.lag:,}",
        place,
        PENDING if row.committed.pending else printable(judgement_text(row.judgement, row.committed.epoch)),
    )


def _members(offsets: GroupOffsets, shown: set[str]) -> Iterator[str]:
    for name, members in offsets.members.items():
        if name not in shown:
            continue
        if isinstance(members, GroupMembers):
            who = some_of([f"{m.client_id}@{m.host.lstrip('/')}" for m in members.members])
            yield f"members of {printable(name)}: {printable(who)}"
        else:
            yield f"members of {printable(name)}: not known ({printable(str(members))})"


def prepared_fix_lines(prepared: PreparedGroupFix, limit: int) -> Iterator[str]:
    """What is committed for whom, and what is left as it is."""
    if prepared.offsets is not None:
        yield from _summary(prepared.offsets)
        yield ""
    yield f"{counted(len(prepared.fixes), 'offset')} of {counted(prepared.groups, 'group')} to be committed"
    yield from _fix_table(prepared.fixes, limit)
    if prepared.undone:
        yield f"{counted(prepared.undone, 'offset')} already undone: as before the fix"
    if prepared.after_stopping:
        yield ""
        yield "of groups that have members: Kafka refuses these until the members are stopped"
        yield from _fix_table(prepared.after_stopping, limit)
        if prepared.offsets is not None:
            yield from _members(prepared.offsets, {fix.group.name for fix in prepared.after_stopping})
    yield from _left_lines(prepared.left, limit)


def _fix_table(fixes: Sequence[OffsetFix], limit: int) -> Iterator[str]:
    shown = fixes[: limit or None]
    rows = [
        (
            printable(fix.group.name),
            str(fix.tp),
            committed_text(fix.before),
            committed_text(fix.after),
            "as it was before the fix"
            if fix.judgement is None
            else judgement_text(fix.judgement, fix.before.epoch),
        )
        for fix in shown
    ]
    if rows:
        yield from table(_FIX_COLUMNS, rows)
    if len(shown) < len(fixes):
        yield f"… and {len(fixes) - len(shown):,} more"


def _left_lines(left: Sequence[NotFixed], limit: int) -> Iterator[str]:
    if not left:
        return
    yield ""
    shown = left[: limit or None]
    yield from table(_LEFT_COLUMNS, [(printable(n.group), str(n.tp), printable(n.why)) for n in shown])
    if len(shown) < len(left):
        yield f"… and {len(left) - len(shown):,} more"


def fixed_lines(fixed: FixedGroups) -> Iterator[str]:
    """How many offsets are committed now."""
    if not fixed.sent:
        yield "nothing was sent"
        return
    done = len(fixed.prepared.fixes) - len(fixed.failures)
    yield f"{counted(done, 'offset')} committed and read back"


def groups_document(offsets: GroupOffsets) -> Iterator[str]:
    """``ktriage.groups/1``."""
    return document(
        "groups",
        {
            "complete": offsets.complete,
            "notListed": [str(why) for why in offsets.listing.not_listed],
            "groups": [
                {
                    "group": group.name,
                    "coordinator": group.coordinator,
                    "type": str(group.kind),
                    "protocolType": group.protocol_type,
                    "state": group.state,
                    "empty": group.empty,
                    "guessedUse": offsets.uses.get(group.name),
                    "unread": str(offsets.unread[group.name]) if group.name in offsets.unread else None,
                    "members": _members_json(offsets.members.get(group.name)),
                }
                for group in offsets.listing.groups
            ],
            "offsets": (offset_json(row, offsets) for row in offsets.rows),
        },
    )


def _members_json(members: GroupMembers | Unknown | None) -> object:
    if isinstance(members, GroupMembers):
        return [member._asdict() for member in members.members]
    return None if members is None else str(members)


def offset_json(row: GroupOffset, offsets: GroupOffsets) -> dict[str, object]:
    """A *group offset* of docs/output.md."""
    log = offsets.logs[row.tp]
    return {
        "group": row.group.name,
        "topic": row.tp.topic,
        "partition": row.tp.partition,
        **_committed_json(row.committed),
        "logEnd": None if row.log_end < 0 else row.log_end,
        "lag": row.lag,
        "pending": row.committed.pending,
        "elected": log.elected if isinstance(log, StayingLog) else None,
        **_judgement_json(row.judgement),
    }


def _committed_json(committed: CommittedOffset) -> dict[str, object]:
    return {"offset": committed.offset, "epoch": None if committed.epoch < 0 else committed.epoch}


def _judgement_json(judgement: OffsetJudgement | Unknown) -> dict[str, object]:
    if isinstance(judgement, Unknown):
        return {"place": None, "notKnown": str(judgement)}
    return {
        "place": judgement.place.name.lower().replace("_", "-"),
        "goBackTo": judgement.go_back_to,
        "exact": judgement.exact,
        "beyondEnd": judgement.beyond_end,
        "gone": judgement.gone,
        "neverSeen": judgement.never_read,
        "readAgain": judgement.read_again,
    }


def fixed_document(fixed: FixedGroups) -> Iterator[str]:
    """``ktriage.groups-fix/1``."""
    prepared = fixed.prepared
    failed = {(failure.group, failure.tp): failure.why for failure in fixed.failures}
    return document(
        "groups-fix",
        {
            "sent": fixed.sent,
            "offsets": [
                {**_fix_json(fix), "problem": failed.get((fix.group.name, fix.tp))} for fix in prepared.fixes
            ],
            "afterStopping": [_fix_json(fix) for fix in prepared.after_stopping],
            "notChanged": [
                {"group": n.group, "topic": n.tp.topic, "partition": n.tp.partition, "reason": n.why}
                for n in prepared.left
            ],
        },
    )


def _fix_json(fix: OffsetFix) -> dict[str, object]:
    return {
        "group": fix.group.name,
        "topic": fix.tp.topic,
        "partition": fix.tp.partition,
        "before": _committed_json(fix.before),
        "after": _committed_json(fix.after),
    }
