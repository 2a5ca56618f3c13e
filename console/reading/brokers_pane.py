"""Pane 8: brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from console.reading.broker_report import BROKER, TONES, BrokerHealth, BrokerRow, fenced_for, in_isr
from recovery.model import Why
from recovery.wording.quantity_text import counted, lasting, printable
from widgets.base_pane import TablePane
from widgets.fields import on_screen
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, fold, line

GROUPINGS: tuple[Grouping[BrokerRow], ...] = (
    Grouping("rack", "by rack", lambda r: (f"rack {r.rack}" if r.rack else "no rack",)),
    Grouping("state", "by state", lambda r: (r.state.value,)),
)


class BrokersPane(TablePane):
    """Brokers; the table's keys are broker ids."""

    NAME = "brokers"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[BrokerRow] | None = None
        self._doubt = ""

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            on_screen(BROKER),
            lambda row: row.id,
            groupings=GROUPINGS,
            noun="broker",
            empty="no broker is known yet",
        )

    def update(self, rows: Sequence[BrokerRow] | None, doubt: str = "") -> None:
        """Shows a new picture; the cursor stays on its broker. None: the cluster has not been read yet. ``doubt``
        says why the rows may not be those of now, "" where they are.
        """
        self._rows, self._doubt = rows, doubt
        self.table.update(rows or ())
        self.show_lines()

    def summary_lines(self, width: int) -> list[Line]:
        if self._rows is None:
            return [line(Piece("  the brokers are not known yet", Tone.WARN))]
        counts = Counter(row.state for row in self._rows)
        parts = [Piece(f"  {counted(len(self._rows), 'broker')}: ")]
        if self._doubt:
            parts.insert(0, Piece(f"  As before, {self._doubt}:", Tone.WARN))
        for state in BrokerHealth:
            if counts[state]:
                comma = "" if parts[-1].text.endswith(": ") else ", "
                parts.append(Piece(f"{comma}{counts[state]:,} {state.value}", TONES[state]))
        return fold(line(*parts), width, "  ")

    def detail_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        if not isinstance(row, BrokerRow):
            return []
        head = line(Piece(f"broker {row.id} ", Tone.STRONG), Piece(_about(row)))
        lines = fold(head, width, "  ")
        for text, tone in _sentences(row):
            lines += fold(line(Piece(text, tone)), width, "  ")
        return [*lines, *self.left_out(width)]


def _about(row: BrokerRow) -> str:
    rack = f", rack {printable(row.rack)}" if row.rack else ""
    return f"at {printable(row.address) or 'an unknown address'}{rack}"


def _sentences(row: BrokerRow) -> list[tuple[str, Tone]]:
    """What is known of it, the worst first."""
    load, found = row.load, []
    if row.fenced:
        lasted = fenced_for(row)
        since = f" for {lasted.replace('≥', 'at least ')}" if lasted not in ("", "?") else ""
        found.append((f"The controller has fenced it{since}: it cannot lead or be in an ISR.", Tone.BAD))
    if row.problem is not None:
        # Without saying twice that it did not answer.
        detail = row.problem.detail if row.problem.why is Why.NOT_ANSWERED else ""
        why = printable(detail or str(row.problem))
        last = "it has not answered since this console opened"
        if row.answered_s is not None:
            last = f"it answered {lasting(row.answered_s)} ago"
        found.append((f"It does not answer ({why}); {last}.", Tone.BAD))
    elif row.asked and row.state is not BrokerHealth.UP:
        found.append((f"It answers; {in_isr(row)} partitions in the ISR.", Tone.WARN))
    if row.waiting:
        them = "it is in their ISR or ELR" if row.waiting > 1 else "it is in its ISR or ELR"
        text = f"{counted(row.waiting, 'offline partition')} may get a leader when it returns: {them}."
        found.append((text, Tone.STRONG))
    if row.waiting and row.not_first is None:
        found.append(("Whether it may be started first is still being read.", Tone.WARN))
    if row.not_first and row.waiting:
        found.append(("But do not start it first: see pane 1.", Tone.BAD))
    others = load.offline - load.waiting
    if others:
        whose = "its" if others == 1 else "their"
        text = f"{counted(others, 'other offline partition')}: it is in neither {whose} ISR nor {whose} ELR."
        found.append((text, Tone.PLAIN))
    if row.failed_dirs:
        found.append((f"{counted(row.failed_dirs, 'log dir')} on it failed: pane 5.", Tone.BAD))
    leads = f"It leads {counted(load.led, 'partition')} and has {counted(load.replicas, 'replica')}."
    return [*found, (leads, Tone.PLAIN)]
