"""What was put right afterwards, from the journal: offsets of groups, markers of transactions, replicas moved."""

from __future__ import annotations

from collections.abc import Iterator

from console.journal.run_records import EntryBegun, EntryEnded, RunRecord
from console.operations.history.affected_groups import affected_groups, groups_unread
from console.operations.history.incident import Incident
from console.output.incident.journal_fixes import COLUMNS, Row, fix_rows
from console.output.incident.report_blocks import ReportBlock, ReportHeading, ReportTable, ReportText
from console.output.journal_report import journal_time, run_user
from recovery.groups.group_values import CommittedOffset
from recovery.wording.group_text import committed_text
from recovery.wording.quantity_text import offset

MOST_ROWS = 200


def fix_blocks(incident: Incident) -> Iterator[ReportBlock]:
    """One table of each kind. What was put right without ktriage is in no journal."""
    yield from _affected(incident)
    yield ReportHeading(2, "Groups, transactions and replicas that were put right")
    found = [
        ((*columns, "when", "by"), [row for run in incident.runs for row in _rows(run, action)])
        for action, columns in COLUMNS.items()
    ]
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


def _rows(run: RunRecord, action: str) -> Iterator[Row]:
    ends = {event.entry: event for event in run.events if isinstance(event, EntryEnded)}
    for event in run.events:
        if isinstance(event, EntryBegun) and event.action == action:
            for row in fix_rows(event, ends.get(event.entry)):
                yield *row, journal_time(event.at), run_user(run)
