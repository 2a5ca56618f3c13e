"""Pane 8: brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from recovery.broker_load import BrokerLoad
from recovery.wording.quantity_text import counted, lasting, lasting_at_least, printable
from widgets.base_pane import TablePane
from widgets.fields import Field
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, fold, line


class BrokerHealth(StrEnum):
    """How a broker fares, the worst first."""

    FENCED = "FENCED"
    SILENT = "no answer"
    DISK_FAILED = "disk FAILED"
    OUT_OF_SYNC = "out of sync"
    UP = "up"


class BrokerRow(NamedTuple):
    """``fenced`` None: the cluster does not tell. ``fenced_s``: seconds since it was fenced, at least so long where
    not ``exact``. ``answered_s``: seconds since it answered this console last, None: it never did. ``problem``: why
    it did not answer, "" where it did or nobody asked. ``asked``: it was asked at all. ``failed_dirs``: so many log
    dirs have failed, None: not known.
    """

    id: int
    address: str
    rack: str | None
    fenced: bool | None
    load: BrokerLoad
    fenced_s: float | None = None
    exact: bool = False
    answered_s: float | None = None
    problem: str = ""
    asked: bool = False
    failed_dirs: int | None = None

    @property
    def waiting(self) -> int:
        """So many offline partitions may get a leader when it returns; of a broker that is there, none."""
        return self.load.waiting if self.fenced or self.problem else 0

    @property
    def state(self) -> BrokerHealth:
        if self.fenced:
            return BrokerHealth.FENCED
        if self.problem:
            return BrokerHealth.SILENT
        if self.failed_dirs:
            return BrokerHealth.DISK_FAILED
        return BrokerHealth.UP if self.load.in_isr == self.load.replicas else BrokerHealth.OUT_OF_SYNC


@dataclass(frozen=True, slots=True)
class BrokersView:
    """The brokers that are registered, or have replicas. ``known`` False: the cluster has not been read yet.
    ``doubt`` says why the rows may not be those of now, "" where they are.
    """

    rows: Sequence[BrokerRow]
    known: bool = True
    doubt: str = ""

    @property
    def worst_first(self) -> tuple[BrokerRow, ...]:
        rank = {state: number for number, state in enumerate(BrokerHealth)}
        return tuple(sorted(self.rows, key=lambda row: (rank[row.state], row.id)))


_TONES = {
    BrokerHealth.FENCED: Tone.BAD,
    BrokerHealth.SILENT: Tone.BAD,
    BrokerHealth.DISK_FAILED: Tone.BAD,
    BrokerHealth.OUT_OF_SYNC: Tone.WARN,
    BrokerHealth.UP: Tone.GOOD,
}
_RANK = {state: number for number, state in enumerate(BrokerHealth)}


def _fenced_for(row: BrokerRow) -> str:
    if row.fenced_s is None:
        return ""
    return lasting_at_least(row.fenced_s, exact=row.exact)


def _answered(row: BrokerRow) -> str:
    if row.answered_s is None:
        return "not asked" if not row.asked else "never"
    return "now" if not row.problem else f"{lasting(row.answered_s)} ago"


def _answered_tone(row: BrokerRow) -> Tone:
    return Tone.WARN if row.problem else Tone.PLAIN if row.asked else Tone.DIM


def _in_isr(row: BrokerRow) -> str:
    return f"{row.load.in_isr:,} of {row.load.replicas:,}"


def _dirs(row: BrokerRow) -> str:
    return (
        "?" if row.failed_dirs is None else f"{row.failed_dirs:,} failed" if row.failed_dirs else "0 failed"
    )


COLUMNS: tuple[Field[BrokerRow], ...] = (
    Field("broker", "BROKER", lambda r: str(r.id), sort=lambda r: r.id, right=True, tone=Tone.STRONG),
    Field(
        "state",
        "STATE",
        lambda r: r.state.value,
        sort=lambda r: _RANK[r.state],
        tone=lambda r: _TONES[r.state],
    ),
    Field("fenced", "FENCED FOR", _fenced_for, sort=lambda r: r.fenced_s or 0.0, right=True, priority=3),
    Field(
        "answered",
        "ANSWERED",
        _answered,
        sort=lambda r: -1.0 if r.answered_s is None else r.answered_s,
        tone=_answered_tone,
        priority=2,
    ),
    Field(
        "isr",
        "IN THE ISR",
        _in_isr,
        sort=lambda r: r.load.replicas - r.load.in_isr,
        right=True,
        tone=lambda r: Tone.PLAIN if r.load.in_isr == r.load.replicas else Tone.WARN,
    ),
    Field(
        "waiting",
        "WAIT FOR IT",
        lambda r: f"{r.waiting:,}" if r.waiting else "",
        sort=lambda r: r.waiting,
        right=True,
        tone=Tone.BAD,
    ),
    Field("led", "LEADS", lambda r: f"{r.load.led:,}", sort=lambda r: r.load.led, right=True, priority=4),
    Field("rack", "RACK", lambda r: printable(r.rack or ""), priority=5),
    Field(
        "dirs",
        "LOG DIRS",
        _dirs,
        sort=lambda r: r.failed_dirs or 0,
        tone=lambda r: Tone.BAD if r.failed_dirs else Tone.PLAIN,
        priority=6,
    ),
    Field("address", "HOST", lambda r: printable(r.address), flex=True, priority=1, width=16),
)
GROUPINGS: tuple[Grouping[BrokerRow], ...] = (
    Grouping("rack", "by rack", lambda r: (f"rack {r.rack}" if r.rack else "no rack",)),
    Grouping("state", "by state", lambda r: (r.state.value,)),
)


class BrokersPane(TablePane):
    """Brokers; the table's keys are broker ids."""

    NAME = "brokers"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = BrokersView((), known=False)

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS, lambda row: row.id, groupings=GROUPINGS, noun="broker", empty="no broker is known yet"
        )

    def update(self, view: BrokersView) -> None:
        """Shows a new picture; the cursor stays on its broker."""
        self._view = view
        self.table.update(view.worst_first)
        self.show_lines()

    def summary_lines(self, width: int) -> list[Line]:
        view = self._view
        if not view.known:
            return [line(Piece("  the brokers are not known yet", Tone.WARN))]
        counts = Counter(row.state for row in view.rows)
        parts = [Piece(f"  {counted(len(view.rows), 'broker')}: ")]
        if view.doubt:
            parts.insert(0, Piece(f"  As before, {view.doubt}:", Tone.WARN))
        for state in BrokerHealth:
            if counts[state]:
                comma = "" if parts[-1].text.endswith(": ") else ", "
                parts.append(Piece(f"{comma}{counts[state]:,} {state.value}", _TONES[state]))
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
        lasted = _fenced_for(row)
        since = f" for {lasted.replace('≥', 'at least ')}" if lasted not in ("", "?") else ""
        found.append((f"The controller has fenced it{since}: it cannot lead or be in an ISR.", Tone.BAD))
    if row.problem:
        last = "it has not answered since this console opened"
        if row.answered_s is not None:
            last = f"it answered {lasting(row.answered_s)} ago"
        found.append((f"It does not answer ({printable(row.problem)}); {last}.", Tone.BAD))
    elif row.asked and row.state is not BrokerHealth.UP:
        found.append((f"It answers; {_in_isr(row)} partitions in the ISR.", Tone.WARN))
    if row.waiting:
        them = "it is in their ISR or ELR" if row.waiting > 1 else "it is in its ISR or ELR"
        text = f"{counted(row.waiting, 'offline partition')} may get a leader when it returns: {them}."
        found.append((text, Tone.STRONG))
    others = load.offline - load.waiting
    if others:
        whose = "its" if others == 1 else "their"
        text = f"{counted(others, 'other offline partition')}: it is in neither {whose} ISR nor {whose} ELR."
        found.append((text, Tone.PLAIN))
    if row.failed_dirs:
        found.append((f"{counted(row.failed_dirs, 'log dir')} on it failed: pane 5.", Tone.BAD))
    leads = f"It leads {counted(load.led, 'partition')} and has {counted(load.replicas, 'replica')}."
    return [*found, (leads, Tone.PLAIN)]
