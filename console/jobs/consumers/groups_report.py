"""Consumer groups and their offsets, and what came of a fix, as text and as JSON (docs/output.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from console.change.change import ChangeReport
from console.jobs.consumers.fix_groups import FixedGroups, NotFixed, OffsetFix, PreparedGroupFix
from console.jobs.consumers.group_offsets import GroupOffset, GroupOffsets, StayingLog
from console.output.json_document import document
from console.reading.consumer_reading import MOST_LINES, offset_lines, offsets_as_consumer_json
from recovery.groups.group_values import CommittedOffset, GroupKind, GroupMembers
from recovery.groups.offset_judgement import OffsetJudgement
from recovery.model import Unknown
from recovery.wording.group_text import PENDING, committed_text, judgement_text
from recovery.wording.quantity_text import counted, printable, some_of
from widgets.fields import Field, data_field, json_of, partition_fields, text_field, text_rows


def offset_fields(offsets: GroupOffsets) -> tuple[Field[GroupOffset], ...]:
    """A *group offset* of docs/output.md, and its line; what is judged of it stands in :func:`offsets_json`."""

    def group(row: GroupOffset) -> str:
        use = offsets.uses.get(row.group.name)
        return printable(row.group.name) + (f" ({use}?)" if use else "")

    def elected(row: GroupOffset) -> int | None:
        log = offsets.logs[row.tp]
        return log.elected if isinstance(log, StayingLog) else None

    return (
        Field("group", "GROUP", lambda r: r.group.name, group),
        *partition_fields(lambda r: r.tp),
        Field(
            "offset",
            "COMMITTED",
            lambda r: r.committed.offset,
            lambda r: committed_text(r.committed),
            right=True,
        ),
        data_field("epoch", lambda r: _known(r.committed.epoch)),
        Field(
            "logEnd",
            "LOG END",
            lambda r: _known(r.log_end),
            lambda r: "?" if r.log_end < 0 else f"{r.log_end:,}",
            right=True,
        ),
        Field("lag", "LAG", lambda r: r.lag, lambda r: "-" if r.lag is None else f"{r.lag:,}", right=True),
        data_field("pending", lambda r: r.committed.pending),
        data_field("elected", elected),
        text_field(
            "LAST READ", lambda r: "?" if isinstance(r.judgement, Unknown) else str(r.judgement.place)
        ),
        text_field("WHAT IT MEANS", _meaning, below=True),
    )


def _meaning(row: GroupOffset) -> str:
    return PENDING if row.committed.pending else printable(judgement_text(row.judgement, row.committed.epoch))


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _why(fix: OffsetFix) -> str:
    if fix.judgement is None:
        return "as it was before the fix"
    return judgement_text(fix.judgement, fix.before.epoch)


def _committed_json(committed: CommittedOffset) -> dict[str, object]:
    return {"offset": committed.offset, "epoch": _known(committed.epoch)}


FIX: tuple[Field[OffsetFix], ...] = (
    Field("group", "GROUP", lambda f: f.group.name, lambda f: printable(f.group.name)),
    *partition_fields(lambda f: f.tp),
    Field(
        "before",
        "COMMITTED",
        lambda f: _committed_json(f.before),
        lambda f: committed_text(f.before),
        right=True,
    ),
    Field(
        "after", "WILL BE", lambda f: _committed_json(f.after), lambda f: committed_text(f.after), right=True
    ),
    text_field("WHY", _why, below=True),
)
NOT_FIXED: tuple[Field[NotFixed], ...] = (
    Field("group", "GROUP", lambda n: n.group, lambda n: printable(n.group)),
    *partition_fields(lambda n: n.tp),
    Field("reason", "NOT CHANGED", lambda n: n.why, lambda n: printable(n.why), below=True),
)


def group_lines(offsets: GroupOffsets, limit: int, *, every: bool) -> Iterator[str]:
    """Counts, what could not be read, then the offsets: those that are concerned first. ``every``: also the
    others.
    """
    yield from group_summary(offsets)
    concerned = sorted(offsets.concerned, key=_order)
    rows = concerned if not every else [*concerned, *(row for row in offsets.rows if not row.concerned)]
    if not rows:
        return
    yield ""
    yield from text_rows(offset_fields(offsets), rows, limit=limit)
    yield from _members(offsets, {row.group.name for row in rows[: limit or None]})


def _order(row: GroupOffset) -> tuple[bool, int]:
    judgement = row.judgement
    return isinstance(judgement, Unknown), 0 if isinstance(judgement, Unknown) else -judgement.gone


def group_summary(offsets: GroupOffsets) -> Iterator[str]:
    """Counts, and what could not be read."""
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
        yield from group_summary(prepared.offsets)
        yield ""
    yield f"{counted(len(prepared.fixes), 'offset')} of {counted(prepared.groups, 'group')} to be committed"
    yield from text_rows(FIX, prepared.fixes, limit=limit, rest="")
    if prepared.undone:
        yield f"{counted(prepared.undone, 'offset')} already undone: as before the fix"
    if prepared.after_stopping:
        yield ""
        yield "of groups that have members: Kafka refuses these until the members are stopped"
        yield from text_rows(FIX, prepared.after_stopping, limit=limit, rest="")
        if prepared.offsets is not None:
            yield from _members(prepared.offsets, {fix.group.name for fix in prepared.after_stopping})
    if prepared.left:
        yield ""
        yield from text_rows(NOT_FIXED, prepared.left, limit=limit, rest="")


def fixed_lines(fixed: FixedGroups) -> Iterator[str]:
    """How many offsets are committed now."""
    if not fixed.sent:
        yield "nothing was sent"
        return
    if fixed.consumer is not None:
        yield from offset_lines(fixed.consumer, MOST_LINES)
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
            "offsets": offsets_json(offsets.rows, offsets),
        },
    )


def _members_json(members: GroupMembers | Unknown | None) -> object:
    if isinstance(members, GroupMembers):
        return [member._asdict() for member in members.members]
    return None if members is None else str(members)


def offsets_json(rows: Iterable[GroupOffset], offsets: GroupOffsets) -> Iterator[dict[str, object]]:
    """Each with what is judged of it."""
    known = json_of(offset_fields(offsets))
    return ({**known(row), **_judgement_json(row.judgement)} for row in rows)


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
    prepared, fix_json = fixed.prepared, json_of(FIX)
    failed = {(failure.group, failure.tp): failure.why for failure in fixed.failures}
    return document(
        "groups-fix",
        {
            "sent": fixed.sent,
            "offsets": [
                {**fix_json(fix), "problem": failed.get((fix.group.name, fix.tp))} for fix in prepared.fixes
            ],
            "afterStopping": list(map(fix_json, prepared.after_stopping)),
            "notChanged": list(map(json_of(NOT_FIXED), prepared.left)),
            "consumer": offsets_as_consumer_json(fixed.consumer),
        },
    )


def _fix_problems(fixed: FixedGroups) -> Iterator[str]:
    return (f"not committed: group {one.group}, {one.tp}: {one.why}" for one in fixed.failures)


FIXED_GROUPS = ChangeReport(prepared_fix_lines, fixed_lines, _fix_problems, fixed_document)
