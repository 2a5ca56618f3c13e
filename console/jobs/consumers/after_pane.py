"""Pane 9: the consumer groups and the transactions that an election may have hurt, and what helps them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from console.jobs.consumers.election_aftermath import ElectionAftermath
from console.jobs.consumers.group_offsets import GroupOffset, GroupOffsets
from console.jobs.consumers.groups_report import group_summary, offset_fields
from console.jobs.consumers.hanging_transactions import JudgedTransaction, PartitionsTransactions
from console.jobs.consumers.transactions_report import transaction_fields, transaction_summary
from recovery.model import TopicPartition, Unknown
from recovery.wording.quantity_text import printable
from widgets.base_pane import TablePane
from widgets.fields import Field, natural_partition
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, fold, line

GROUP, TRANSACTION = "group offset", "transaction"
_NAME = ("group", "transactionalId")
_MEANING = ("WHAT IT MEANS", "WHAT BECAME OF IT")


class AfterRow(NamedTuple):
    """A committed offset or an open transaction, with its description (``fields`` by their ids), as the commands
    ``groups`` and ``transactions`` have it. ``needs_you``: a person has to look at it; None: nobody can say yet.
    ``waits_for`` are the open transactions that a group waits for, if it reads committed records only.
    """

    tp: TopicPartition
    needs_you: bool | None
    item: GroupOffset | JudgedTransaction
    fields: Mapping[str, Field[Any]]
    waits_for: tuple[JudgedTransaction, ...] = ()

    @property
    def kind(self) -> str:
        return GROUP if isinstance(self.item, GroupOffset) else TRANSACTION

    @property
    def key(self) -> Hashable:
        item = self.item
        who = item.group.name if isinstance(item, GroupOffset) else item.transaction.producer_id
        return self.kind, who, self.tp

    def cell(self, names: tuple[str, ...]) -> str:
        """The first of these fields that the description has; that a group waits comes before its other meaning."""
        if names == _MEANING and self.waits_for:
            return waiting_text(self.waits_for)
        return next((self.fields[name].cell(self.item) for name in names if name in self.fields), "")


class AfterView(NamedTuple):
    """``found`` is None before it was read; ``of_plan``: it is that of the plan's partitions, else of all."""

    found: ElectionAftermath | None = None
    of_plan: bool = False
    reading: bool = False


def waiting_text(waits_for: Sequence[JudgedTransaction]) -> str:
    """What a group waits for that stands where these transactions begin. Nothing tells from outside whether a
    group reads committed records only (its clients' ``isolation.level``).
    """
    first = waits_for[0].transaction
    which = f"transaction of producer {first.producer_id} at {first.start_offset:,}"
    ends = "which hangs: end it first" if any(one.hanging for one in waits_for) else "until it ends"
    return f"waits, if it reads committed records only: for the {which}, {ends}"


def _waits_for(row: GroupOffset, found: PartitionsTransactions | Unknown) -> tuple[JudgedTransaction, ...]:
    """The open transactions of the partition, if the group has read up to the last stable offset."""
    if isinstance(found, Unknown) or row.concerned or row.tp not in found.partitions:
        return ()
    if row.committed.offset != found.partitions[row.tp].last_stable:
        return ()
    here = (one for one in found.rows if one.transaction.tp == row.tp)
    return tuple(sorted(here, key=lambda one: one.transaction.start_offset))


def _of_group(
    row: GroupOffset, found: PartitionsTransactions | Unknown, fields: Mapping[str, Field[Any]]
) -> AfterRow:
    waits_for = _waits_for(row, found)
    unknown = row.not_judged or any(one.hanging for one in waits_for)
    return AfterRow(row.tp, None if unknown else row.concerned, row, fields, waits_for)


def after_rows(found: ElectionAftermath) -> tuple[AfterRow, ...]:
    """What needs a person first, then what nobody can judge yet; then by partition."""
    rows: list[AfterRow] = []
    offsets, open_ones = found.groups, found.transactions
    if isinstance(offsets, GroupOffsets):
        described: Mapping[str, Field[Any]] = {field.id: field for field in offset_fields(offsets)}
        rows += (_of_group(row, open_ones, described) for row in offsets.rows)
    if isinstance(open_ones, PartitionsTransactions):
        described = {field.id: field for field in transaction_fields(open_ones)}
        rows += (AfterRow(row.transaction.tp, row.hanging, row, described) for row in open_ones.rows)
    rows.sort(key=lambda row: (_RANK[row.needs_you], row.kind, natural_partition(row.tp)))
    return tuple(rows)


def _cells(*names: str) -> Callable[[AfterRow], str]:
    return lambda row: row.cell(names)


_NEEDS: Mapping[bool | None, str] = {True: "YOU", None: "?", False: ""}
_RANK = {needs: number for number, needs in enumerate(_NEEDS)}

COLUMNS: tuple[Field[AfterRow], ...] = (
    Field(
        "needs",
        "NEEDS",
        lambda r: r.needs_you,
        lambda r: _NEEDS[r.needs_you],
        tone=lambda r: Tone.BAD if r.needs_you else Tone.WARN,
        sort=lambda r: _RANK[r.needs_you],
    ),
    Field("kind", "WHAT", lambda r: r.kind, priority=2),
    Field("who", "GROUP OR TRANSACTIONAL ID", _cells(*_NAME), tone=Tone.STRONG, flex=True),
    Field("partition", "PARTITION", lambda r: str(r.tp), sort=lambda r: natural_partition(r.tp)),
    Field("at", "AT OFFSET", _cells("offset", "startOffset"), right=True),
    Field("behind", "BEHIND", _cells("lag", "BEHIND IT"), right=True, priority=3),
    Field("means", "WHAT IT MEANS", _cells(*_MEANING), flex=True, width=30, priority=4, shown_below=True),
)
GROUPINGS: tuple[Grouping[AfterRow], ...] = (
    Grouping("kind", "by what it is", lambda r: (r.kind,)),
    Grouping("topic", "by topic", lambda r: (r.tp.topic,)),
    Grouping("who", "by group or transactional id", lambda r: (r.cell(_NAME),)),
)


class AfterPane(TablePane):
    """Committed offsets and open transactions; keys are kind, group or producer, and partition."""

    NAME = "after"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = AfterView()

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS, lambda row: row.key, groupings=GROUPINGS, noun="row", empty="nothing was read yet"
        )

    def update(self, view: AfterView) -> None:
        """Shows another reading; the cursor stays on its row."""
        before, self._view = self._view, view
        found = view.found
        if found is not before.found:
            none = "no group has a committed offset here, and no transaction is open"
            self.table.empty = none if found is not None and found.all_read else "not all was read: see above"
            self.table.update(() if found is None else after_rows(found))
        if view != before:
            self.show_lines()

    def summary_lines(self, width: int) -> list[Line]:
        found = self._view.found
        if found is None:
            text = "groups and transactions are being read" if self._view.reading else "V reads them"
            return [line(Piece(f"  {text}", Tone.INFO))]
        where = "on the partitions of the plan" if self._view.of_plan else "on the whole cluster"
        need = found.need_you
        head = Piece(need or "No group and no transaction needs you", Tone.BAD if need else Tone.GOOD)
        lines = fold(line(Piece("  "), head, Piece(f" ({where})", Tone.DIM)), width, "  ")
        for text in _summary(found):
            lines += fold(line(Piece(f"  {text}", Tone.DIM)), width, "    ")
        return lines

    def detail_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        if not isinstance(row, AfterRow):
            return []
        name = Piece(f"{row.cell(_NAME)}, {row.tp}: ", Tone.STRONG)
        lines = fold(line(name, Piece(row.cell(_MEANING))), width, "  ")
        if row.needs_you:
            lines.append(line(Piece("x", Tone.KEY), Piece(" shows what puts it right, and asks first")))
        others = [
            f"{field.title.lower()} {text}"
            for field in row.fields.values()
            if field.printed and field.id not in _MEANING and (text := field.cell(row.item))
        ]
        return [*lines, *fold(line(Piece("  ".join(others), Tone.DIM)), width, "  ")]


def _summary(found: ElectionAftermath) -> list[str]:
    offsets, open_ones = found.groups, found.transactions
    groups = group_summary(offsets) if isinstance(offsets, GroupOffsets) else (f"groups: {offsets}",)
    transactions = (
        transaction_summary(open_ones)
        if isinstance(open_ones, PartitionsTransactions)
        else (f"transactions: {open_ones}",)
    )
    return [printable(text) for text in (*groups, *transactions)]
