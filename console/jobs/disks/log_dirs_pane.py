"""Pane 5: log dirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from textual.message import Message

from backends.base.answers import LogDir
from console.reading.log_dirs_report import LOG_DIR, DirRow, dir_problem, dir_state
from recovery.disks.values import DiskOutcome
from recovery.model import TopicPartition, Unknown
from recovery.wording.quantity_text import counted, human_bytes, more, printable
from widgets.base_pane import TablePane
from widgets.fields import on_screen
from widgets.lifecycle import when_ready
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, fit, fold, line


class PartitionOutcome(NamedTuple):
    """A partition that has a replica on the dir: what became of it, or would. ``leader_after`` -1: nobody."""

    tp: TopicPartition
    what: DiskOutcome
    leader_before: int
    leader_after: int
    unclean: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class LogDirDetail:
    """What was on a failed dir, or what would happen if a healthy one failed; worst first.

    ``note`` says what the prediction rests on, or why there is none (then ``outcomes`` is empty).
    """

    broker: int
    path: str
    failed: bool
    outcomes: tuple[PartitionOutcome, ...]
    note: str = ""


LARGEST = 5
_TONES = {
    DiskOutcome.LAST_COPY: Tone.BAD,
    DiskOutcome.OFFLINE: Tone.BAD,
    DiskOutcome.SURVIVOR: Tone.BAD,
    DiskOutcome.UNDER_MIN_ISR: Tone.WARN,
    DiskOutcome.NEW_LEADER: Tone.INFO,
    DiskOutcome.FEWER: Tone.PLAIN,
    DiskOutcome.UNNOTICED: Tone.WARN,
}
SHOWN = 12


def summary(rows: Sequence[DirRow] | None, width: int) -> list[Line]:
    """How many dirs there are and have failed, and of how many brokers they are unknown. None: not asked yet."""
    dirs = [dir_ for _, dir_ in rows or () if not isinstance(dir_, Unknown)]
    if not dirs:
        why = "the log dirs are not known yet" if rows is None else "no broker listed its log dirs"
        return fold(line(Piece(f"  {why}", Tone.WARN)), width, "  ")
    failed = sum(1 for dir_ in dirs if dir_.error)
    brokers = len({dir_.broker for dir_ in dirs})
    silent = len(rows or ()) - len(dirs)
    count = Piece(f"{failed:,} failed", Tone.BAD if failed else Tone.GOOD)
    unknown = f", those of {counted(silent, 'broker')} unknown" if silent else ""
    listed = Piece(f"  {counted(len(dirs), 'log dir')} on {counted(brokers, 'broker')}: ")
    return fold(line(listed, count, Piece(unknown, Tone.WARN)), width, "  ")


def details(row: DirRow, detail: LogDirDetail | None, width: int) -> list[Line]:
    """What was on it, or what if it failed; then its largest partitions."""
    broker, dir_ = row
    if isinstance(dir_, Unknown):
        text = f"the log dirs of broker {broker} are unknown: {dir_problem(row)}"
        return fold(line(Piece(text, Tone.WARN)), width, "  ")
    where = f"broker {broker} {printable(dir_.path)}"
    lines: list[Line] = []
    if dir_.error:
        lines += fold(line(Piece(f"{where} FAILED: ", Tone.BAD), Piece(dir_problem(row))), width, "  ")
    if detail is None or (detail.broker, detail.path) != row_key(row):
        return [*lines, line(Piece("being worked out …", Tone.DIM)), *_largest(dir_, width)]
    # In small letters: in capitals it reads as if it had.
    title = "WHAT WAS ON IT" if detail.failed else f"WHAT IF {where} failed?"
    lines += fold(line(Piece(title, Tone.HEAD), Piece("  "), *_counts(detail)), width, "  ")
    if detail.note:
        lines += fold(line(Piece(printable(detail.note), Tone.DIM)), width, "  ")
    lines += _outcomes(detail, width)
    return [*lines, *_largest(dir_, width)]


def _counts(detail: LogDirDetail) -> Sequence[Piece]:
    counts = Counter(outcome.what for outcome in detail.outcomes)
    if not counts:
        return [Piece("no partition", Tone.GOOD)]
    pieces: list[Piece] = []
    for what in DiskOutcome:
        if counts[what]:
            pieces += [Piece(", " if pieces else ""), Piece(f"{_word(what)}: {counts[what]:,}", _TONES[what])]
    return pieces


def _word(what: DiskOutcome) -> str:
    """The outcome; what is worst in capitals, as states are."""
    return what.upper() if what in (DiskOutcome.LAST_COPY, DiskOutcome.OFFLINE) else what


def _outcomes(detail: LogDirDetail, width: int) -> list[Line]:
    rank = {what: number for number, what in enumerate(DiskOutcome)}
    ordered = sorted(detail.outcomes, key=lambda o: (rank[o.what], o.tp))
    name = min(max((len(str(o.tp)) for o in ordered[:SHOWN]), default=0), max(width - 50, 16))
    wide = max((len(o.what) for o in ordered[:SHOWN]), default=0)
    lines = []
    for outcome in ordered[:SHOWN]:
        unclean = Piece(" uncleanly", Tone.BAD) if outcome.unclean else Piece("")
        note = Piece(f"  {printable(outcome.note)}", Tone.DIM) if outcome.note else Piece("")
        row_line = line(
            Piece(f"  {fit(str(outcome.tp), name)}  ", Tone.STRONG),
            Piece(f"{_word(outcome.what):<{wide}}  ", _TONES[outcome.what]),
            Piece(_moved(outcome)),
            unclean,
            note,
        )
        lines += fold(row_line, width, " " * 6)
    left = more(len(ordered) - SHOWN, "", "  ")
    return [*lines, *(line(Piece(text, Tone.DIM)) for text in left)]


def _moved(outcome: PartitionOutcome) -> str:
    before, after = outcome.leader_before, outcome.leader_after
    if before == after:
        return "no leader" if after < 0 else f"leader stays {after}"
    return f"leader {'none' if before < 0 else before} → {'none' if after < 0 else after}"


def _largest(dir_: LogDir, width: int) -> list[Line]:
    replicas = sorted((one for one in dir_.replicas if not one.future), key=lambda one: -one.size)[:LARGEST]
    if not replicas:
        return []
    largest = ", ".join(f"{one.tp} {human_bytes(one.size)}" for one in replicas)
    return fold(line(Piece("largest: ", Tone.HEAD), Piece(largest)), width, "  ")


def row_key(row: DirRow) -> tuple[int, str]:
    """The broker and the path; "" for all dirs of a broker that did not list them."""
    return row[0], "" if isinstance(row[1], Unknown) else row[1].path


GROUPINGS: tuple[Grouping[DirRow], ...] = (
    Grouping("broker", "by broker", lambda r: (f"broker {r[0]}",), order=lambda s: (len(s), s)),
    Grouping("state", "by state", lambda r: (dir_state(r),)),
)


class LogDirsPane(TablePane):
    """Log dirs; the table's keys are (broker, path)."""

    NAME = "dirs"

    class DetailRequested(Message):
        """The cursor rests on a dir whose prediction is not there yet."""

        def __init__(self, broker: int, path: str, failed: bool) -> None:
            super().__init__()
            self.broker = broker
            self.path = path
            self.failed = failed

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[DirRow] | None = None
        self._detail: LogDirDetail | None = None

    def make_table(self) -> RowTable[Any]:
        columns = on_screen(LOG_DIR)
        return RowTable(columns, row_key, groupings=GROUPINGS, noun="log dir", empty="no log dir is known")

    def update(self, rows: Sequence[DirRow] | None, detail: LogDirDetail | None = None) -> None:
        """Shows a new picture; the cursor stays on its dir. None: nobody was asked yet."""
        self._rows, self._detail = rows, detail
        self.table.update(rows or ())
        self.show_lines()

    @when_ready
    def on_row_table_cursor_moved(self) -> None:
        row, detail = self.table.cursor_row, self._detail
        if row is None or isinstance(row[1], Unknown):
            return
        broker, path = row_key(row)
        if detail is None or (detail.broker, detail.path) != (broker, path):
            self.post_message(self.DetailRequested(broker, path, bool(row[1].error)))

    def summary_lines(self, width: int) -> list[Line]:
        return summary(self._rows, width)

    def detail_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        return [] if row is None else [*details(row, self._detail, width), *self.left_out(width)]
