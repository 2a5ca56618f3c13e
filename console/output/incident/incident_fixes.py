"""What was put right afterwards, from the journal: offsets of groups, markers of transactions, replicas moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from console.journal.run_records import EntryBegun, EntryEnded, RunRecord
from console.journal.unfinished_entries import COMMIT_OFFSETS, HEAL, UNREGISTER, WRITE_MARKERS
from console.operations.history.affected_groups import affected_groups, groups_unread
from console.operations.history.incident import Incident
from console.output.incident.report_blocks import ReportBlock, ReportHeading, ReportTable, ReportText
from recovery.groups.group_values import CommittedOffset
from recovery.wording.group_text import committed_text
from recovery.wording.quantity_text import ids, offset

MOST_ROWS = 200
NOT_KNOWN = "the result is not known"

Row = tuple[str, ...]


def fix_blocks(incident: Incident) -> Iterator[ReportBlock]:
    """One table of each kind. What was put right without ktriage is in no journal."""
    yield from _affected(incident)
    yield ReportHeading(2, "Groups, transactions and replicas that were put right")
    tables = (
        (("group", "partition", "offset before", "offset after", "result"), _offset_rows),
        (("producer", "partition", "ended by", "result"), _marker_rows),
        (("partition", "replicas before", "replicas after", "result"), _move_rows),
        (("broker that was unregistered", "result"), _unregistered_rows),
    )
    found = [(columns, [row for run in incident.runs for row in rows_of(run)]) for columns, rows_of in tables]
    if not any(rows for _, rows in found):
        yield ReportText(
            "Nothing of it was done with ktriage in this period. ktriage groups and ktriage transactions show who"
            " is affected now, and ktriage heal which replicas are missing."
        )
    for columns, rows in found:
        yield from _table(columns, rows)


def _affected(incident: Incident) -> Iterator[ReportBlock]:
    """The groups that read what was cut off, as the plans had them before the elections."""
    groups, unread = affected_groups(incident), groups_unread(incident)
    if not groups and not unread:
        return
    yield ReportHeading(2, "Consumer groups that these elections affected")
    rows: list[Row] = [
        (
            one.group.group,
            str(one.group.tp),
            committed_text(CommittedOffset(one.group.offset, one.group.epoch)),
            str(one.group.place),
            "not known" if one.group.go_back_to is None else offset(one.group.go_back_to),
            "yes" if one.put_right else "not with ktriage",
        )
        for one in groups
    ]
    columns = ("group", "partition", "committed before", "last record read", "to go back to", "put right")
    yield from _table(columns, rows)
    if unread:
        yield ReportText(f"There may be other groups: {'; '.join(unread)}.")


def _table(columns: tuple[str, ...], rows: list[Row]) -> Iterator[ReportBlock]:
    if rows:
        yield ReportTable(columns, tuple(rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        yield ReportText(f"{len(rows) - MOST_ROWS:,} more rows by {columns[0]} are left out.")


def _offset_rows(run: RunRecord) -> Iterator[Row]:
    for begun, ended in _entries(run, COMMIT_OFFSETS):
        failed = {(one.get("group"), one.get("partition")): one for one in _list(ended, "notCommitted")}
        for one in begun.detail.get("offsets", ()):
            name = f"{one.get('topic')}-{one.get('partition')}"
            problem = failed.get((one.get("group"), name))
            before, after = (one.get(key, {}).get("offset", "?") for key in ("before", "after"))
            yield str(one.get("group")), name, str(before), str(after), _result(ended, problem, "set")


def _marker_rows(run: RunRecord) -> Iterator[Row]:
    for begun, ended in _entries(run, WRITE_MARKERS):
        failed = {(one.get("producerId"), one.get("partition")): one for one in _list(ended, "notWritten")}
        for one in begun.detail.get("markers", ()):
            name = f"{one.get('topic')}-{one.get('partition')}"
            problem = failed.get((one.get("producerId"), name))
            producer = f"{one.get('producerId')}, epoch {one.get('producerEpoch')}"
            yield producer, name, str(one.get("result")), _result(ended, problem, "written")


def _move_rows(run: RunRecord) -> Iterator[Row]:
    for begun, ended in _entries(run, HEAL):
        ends = {one.get("partition"): one for one in _list(ended, "ended")}
        for move in begun.detail.get("moves", ()):
            name = f"{move.get('topic')}-{move.get('partition')}"
            end = ends.get(name, {})
            result = ": ".join(filter(None, (end.get("end", NOT_KNOWN), end.get("why"))))
            yield name, ids(move.get("before", ())), ids(move.get("after", ())), result


def _unregistered_rows(run: RunRecord) -> Iterator[Row]:
    for begun, ended in _entries(run, UNREGISTER):
        problem = None if ended is None else str(ended.result.get("problem", ""))
        yield str(begun.detail.get("broker", "?")), NOT_KNOWN if problem is None else problem or "done"


def _entries(run: RunRecord, action: str) -> Iterator[tuple[EntryBegun, EntryEnded | None]]:
    ends = {event.entry: event for event in run.events if isinstance(event, EntryEnded)}
    for event in run.events:
        if isinstance(event, EntryBegun) and event.action == action:
            yield event, ends.get(event.entry)


def _list(ended: EntryEnded | None, key: str) -> list[Mapping[str, Any]]:
    return [] if ended is None else list(ended.result.get(key, ()))


def _result(ended: EntryEnded | None, problem: Mapping[str, Any] | None, done: str) -> str:
    if ended is None:
        return NOT_KNOWN
    return done if problem is None else f"not {done}: {problem.get('why', '?')}"
