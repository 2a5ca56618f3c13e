"""What was put right afterwards, from the journal: offsets of groups, markers of transactions, replicas moved,
records written back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from console.jobs.incident.affected_groups import IncidentGroup, affected_groups, groups_unread
from console.jobs.incident.incident import Incident
from console.jobs.incident.journal_report import journal_time
from console.journal.change_kinds import KINDS, ChangeKind, Row
from console.journal.planned_elections import PlannedElection
from console.journal.recorded_restores import RecordedRestore, RestorePlace, shared
from console.journal.run_records import RunRecord
from console.output.report_blocks import ReportBlock, ReportHeading, ReportText, report_table
from recovery.groups.group_values import CommittedOffset
from recovery.loss import count, union, union_by
from recovery.model import NO_EPOCH, EpochSpan, TopicPartition
from recovery.rescue_branches import RescueBranch
from recovery.wording.group_text import committed_text
from recovery.wording.quantity_text import counted, offset
from widgets.fields import Field, data_field, partition_fields, text_field

MOST_ROWS = 200


def fix_blocks(incident: Incident) -> Iterator[ReportBlock]:
    """One table of each kind. What was put right without ktriage is in no journal."""
    yield from _affected(incident)
    yield ReportHeading(2, "Groups, transactions and replicas that were put right")
    found = [
        ((*kind.columns, "when", "by"), [row for run in incident.runs for row in _rows(run, kind)])
        for kind in KINDS.values()
        if kind.columns
    ]
    if not any(rows for _, rows in found):
        yield ReportText(
            "Nothing of it was done with ktriage in this period. ktriage groups and ktriage transactions show who"
            " is affected now, and ktriage heal which replicas are missing."
        )
    for columns, rows in found:
        fields = [text_field(title.upper(), itemgetter(n)) for n, title in enumerate(columns)]
        yield from report_table(fields, rows, MOST_ROWS, f"more rows by {columns[0]} are left out.")


AFFECTED_GROUP: tuple[Field[IncidentGroup], ...] = (
    Field("group", "GROUP", lambda g: g.group.group),
    *partition_fields(lambda g: g.group.tp),
    Field(
        "offset",
        "COMMITTED BEFORE",
        lambda g: g.group.offset,
        lambda g: committed_text(CommittedOffset(g.group.offset, g.group.epoch)),
    ),
    data_field("epoch", lambda g: None if g.group.epoch == NO_EPOCH else g.group.epoch),
    Field(
        "place",
        "LAST RECORD READ",
        lambda g: g.group.place.name.lower().replace("_", "-"),
        lambda g: str(g.group.place),
    ),
    Field(
        "goBackTo",
        "TO GO BACK TO",
        lambda g: g.group.go_back_to,
        lambda g: "not known" if g.group.go_back_to is None else offset(g.group.go_back_to),
    ),
    Field(
        "putRight", "PUT RIGHT", lambda g: g.put_right, lambda g: "yes" if g.put_right else "not with ktriage"
    ),
)


def _affected(incident: Incident) -> Iterator[ReportBlock]:
    """The groups that read what was cut off, as the plans had them before the elections."""
    groups, unread = affected_groups(incident), groups_unread(incident)
    if not groups and not unread:
        return
    yield ReportHeading(2, "Consumer groups that these elections affected")
    yield from report_table(AFFECTED_GROUP, groups, MOST_ROWS, "more rows by group are left out.")
    if unread:
        yield ReportText(f"There may be other groups: {'; '.join(unread)}.")


def _rows(run: RunRecord, kind: ChangeKind) -> Iterator[Row]:
    for begun, ended in run.entries(kind.action):
        for row in kind.rows(begun, ended):
            yield *row, journal_time(begun.at), run.operator


class RepeatedOffsets(NamedTuple):
    """Offsets of a rescue that were written to the same topic by more than one restore."""

    place: RestorePlace
    offsets: int
    directories: tuple[str, ...]


def restored_records_in_all(incident: Incident) -> int:
    """By the journal; of a rescue that no restore of the journal names, by the record that lies beside it."""
    named = {restore.directory for restore in incident.restores}
    elsewhere = (one for one in incident.rescues if str(one.directory.absolute()) not in named)
    beside = sum(records for one in elsewhere for _, records in one.restored)
    return beside + sum(restore.records or 0 for restore in incident.restores)


def saved_offsets(incident: Incident) -> int:
    """How many offsets were saved, by rescues that are whole; what several of them have counts once."""
    return sum(map(count, _saved(_whole_branches(incident)).values()))


def _whole_branches(incident: Incident) -> Iterator[RescueBranch]:
    for rescue in incident.rescues:
        for one in rescue.branches:
            if one.manifest is not None and one.whole:
                yield one.manifest.branch


def _saved(branches: Iterable[RescueBranch]) -> Mapping[TopicPartition, tuple[EpochSpan, ...]]:
    return union_by((branch.tp, branch.spans) for branch in branches)


def repeated_offsets(incident: Incident) -> tuple[RepeatedOffsets, ...]:
    """By partition and target."""
    found = []
    for place in sorted({place for restore in incident.restores for place in restore.spans}):
        mine = [restore for restore in incident.restores if place in restore.spans]
        spans = [span for restore in mine for span in restore.spans[place]]
        repeated = count(spans) - count(union(spans))
        if repeated:
            directories = tuple(dict.fromkeys(restore.directory for restore in mine))
            found.append(RepeatedOffsets(place, repeated, directories))
    return tuple(found)


def repeated_text(repeated: RepeatedOffsets) -> str:
    """One line; whether a record stands there twice depends on what each restore selected."""
    place = repeated.place
    directories = " and ".join(repeated.directories)
    return (
        f"The same records were written to {place.to_topic}-{place.tp.partition} more than once:"
        f" {counted(repeated.offsets, 'offset')} of {place.tp}, from {directories}. Those that"
        " each restore selected stand there twice."
    )


RESTORE: tuple[Field[RecordedRestore], ...] = (
    text_field("LAST BEGUN", lambda r: r.at),
    text_field("FROM", lambda r: r.directory),
    text_field("TO", lambda r: "their source" if r.target == "source" else f"topic {r.target}"),
    text_field(
        "RECORDS THERE AFTER IT",
        lambda r: "not known: its end is not recorded" if r.records is None else f"{r.records:,}",
    ),
)


def saved_text(incident: Incident, elected: Sequence[PlannedElection]) -> str:
    """How much of what the elections cut off was saved, and written back; "" where nothing was saved."""
    leaders = {one.tp: one.planned_leader for one in elected}
    saved = _saved(branch for branch in _whole_branches(incident) if leaders.get(branch.tp) == branch.leader)
    total = sum(map(count, saved.values()))
    if not total:
        return ""
    written = _written(incident)
    back = sum(shared(spans, written.get(tp, ())) for tp, spans in saved.items())
    how_many = "none" if not back else "all" if back == total else f"{back:,}"
    return f" Of the offsets that they cut off, {total:,} were saved before, and {how_many} of these written back."


def _written(incident: Incident) -> Mapping[TopicPartition, tuple[EpochSpan, ...]]:
    """The offsets of restores that left nothing out."""
    whole = (restore.spans for restore in incident.restores if restore.whole)
    return union_by((place.tp, spans) for chosen in whole for place, spans in chosen.items())
