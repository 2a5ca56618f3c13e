"""Pane 5: log dirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from textual.message import Message

from recovery.disks.values import DiskOutcome
from recovery.model import TopicPartition, Unknown
from recovery.wording.quantity_text import counted, human_bytes, printable
from widgets.base_pane import TablePane
from widgets.fields import Field
from widgets.lifecycle import when_ready
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, fit, fold, line


class LogDirRow(NamedTuple):
    """One log dir. ``error`` None: healthy. Bytes are -1 where they are not known; ``used`` is what the replicas
    take. ``largest`` are the largest partitions with their bytes; ``moving`` counts replicas on their way.
    ``unknown`` stands for all dirs of a broker that did not list them (then ``path`` is ""), and says why.
    ``cordoned``: it takes no new replica (KIP-1066).
    """

    broker: int
    path: str
    error: str | None
    total: int
    usable: int
    used: int
    replicas: int
    largest: tuple[tuple[TopicPartition, int], ...] = ()
    moving: int = 0
    unknown: Unknown | None = None
    cordoned: bool = False

    @property
    def key(self) -> tuple[int, str]:
        return self.broker, self.path


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


@dataclass(frozen=True, slots=True)
class LogDirsView:
    """Every log dir; ``refused`` are the brokers whose dirs are not known, and why. ``known`` False: nobody was
    asked yet.
    """

    dirs: Sequence[LogDirRow]
    refused: Mapping[int, Unknown] = field(default_factory=dict)
    detail: LogDirDetail | None = None
    known: bool = True

    @property
    def rows(self) -> tuple[LogDirRow, ...]:
        """Failed dirs first, then brokers whose dirs are unknown: nobody must search for one among a thousand."""
        unknown = [
            LogDirRow(broker, "", None, -1, -1, -1, -1, unknown=why) for broker, why in self.refused.items()
        ]
        failed = [row for row in self.dirs if row.error is not None]
        return (*failed, *unknown, *(row for row in self.dirs if row.error is None))


NEARLY_FULL = 0.85
BAR = 10
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


def share(row: LogDirRow) -> float | None:
    """How full the volume is, 0 to 1; None where its size is not known."""
    return None if row.total <= 0 or row.usable < 0 else 1 - row.usable / row.total


def bar(row: LogDirRow) -> str:
    """How full the volume is, as a bar and in figures."""
    full = share(row)
    if full is None:
        return "size unknown"
    filled = min(max(round(full * BAR), 0), BAR)
    return f"{'█' * filled}{'·' * (BAR - filled)} {full:4.0%}"


def bar_tone(row: LogDirRow) -> Tone:
    full = share(row)
    return Tone.WARN if full is not None and full >= NEARLY_FULL else Tone.GOOD


def state(row: LogDirRow) -> str:
    """Its state in a word."""
    if row.unknown is not None:
        return "unknown"
    if row.error is not None:
        return "FAILED"
    full = share(row)
    word = "nearly full" if full is not None and full >= NEARLY_FULL else "healthy"
    return f"{word}, cordoned" if row.cordoned else word


def state_tone(row: LogDirRow) -> Tone:
    word = state(row)
    if word == "FAILED":
        return Tone.BAD
    return Tone.GOOD if word == "healthy" else Tone.WARN


def summary(view: LogDirsView, width: int) -> list[Line]:
    """How many dirs there are and have failed, and of how many brokers they are unknown."""
    if not view.dirs:
        why = "no broker listed its log dirs" if view.known else "the log dirs are not known yet"
        return fold(line(Piece(f"  {why}", Tone.WARN)), width, "  ")
    failed = sum(1 for row in view.dirs if row.error is not None)
    brokers = len({row.broker for row in view.dirs})
    dirs = Piece(f"  {counted(len(view.dirs), 'log dir')} on {counted(brokers, 'broker')}: ")
    unknown = f", those of {counted(len(view.refused), 'broker')} unknown" if view.refused else ""
    count = Piece(f"{failed:,} failed", Tone.BAD if failed else Tone.GOOD)
    return fold(line(dirs, count, Piece(unknown, Tone.WARN)), width, "  ")


def details(row: LogDirRow, detail: LogDirDetail | None, width: int) -> list[Line]:
    """What was on it, or what if it failed; then its largest partitions."""
    if row.unknown is not None:
        text = f"the log dirs of broker {row.broker} are unknown: {printable(str(row.unknown))}"
        return fold(line(Piece(text, Tone.WARN)), width, "  ")
    where = f"broker {row.broker} {printable(row.path)}"
    lines: list[Line] = []
    if row.error is not None:
        lines += fold(line(Piece(f"{where} FAILED: ", Tone.BAD), Piece(printable(row.error))), width, "  ")
    if detail is None or (detail.broker, detail.path) != row.key:
        return [*lines, line(Piece("being worked out …", Tone.DIM)), *_largest(row, width)]
    # In small letters: in capitals it reads as if it had.
    title = "WHAT WAS ON IT" if detail.failed else f"WHAT IF {where} failed?"
    lines += fold(line(Piece(title, Tone.HEAD), Piece("  "), *_counts(detail)), width, "  ")
    if detail.note:
        lines += fold(line(Piece(printable(detail.note), Tone.DIM)), width, "  ")
    lines += _outcomes(detail, width)
    return [*lines, *_largest(row, width)]


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
    left = len(ordered) - SHOWN
    return [*lines, line(Piece(f"  … and {left:,} more", Tone.DIM))] if left > 0 else lines


def _moved(outcome: PartitionOutcome) -> str:
    before, after = outcome.leader_before, outcome.leader_after
    if before == after:
        return "no leader" if after < 0 else f"leader stays {after}"
    return f"leader {'none' if before < 0 else before} → {'none' if after < 0 else after}"


def _largest(row: LogDirRow, width: int) -> list[Line]:
    if not row.largest:
        return []
    largest = ", ".join(f"{tp} {human_bytes(size)}" for tp, size in row.largest)
    return fold(line(Piece("largest: ", Tone.HEAD), Piece(largest)), width, "  ")


_STATES = ("FAILED", "unknown", "nearly full", "healthy")

COLUMNS: tuple[Field[LogDirRow], ...] = (
    Field(
        "broker",
        "BROKER",
        lambda r: r.broker,
        lambda r: str(r.broker),
        sort=lambda r: r.broker,
        right=True,
        tone=Tone.STRONG,
    ),
    Field("path", "LOG DIR", lambda r: printable(r.path) or "?", flex=True),
    Field("state", "STATE", state, sort=lambda r: _STATES.index(state(r)), tone=state_tone),
    Field(
        "full",
        "FULL",
        lambda r: None if share(r) is None else round(share(r) or 0.0, 4),
        bar,
        sort=lambda r: share(r) or 0.0,
        tone=bar_tone,
        priority=3,
    ),
    Field(
        "usable",
        "FREE",
        lambda r: r.usable,
        lambda r: human_bytes(r.usable),
        sort=lambda r: r.usable,
        right=True,
    ),
    Field(
        "used",
        "LOGS",
        lambda r: r.used,
        lambda r: human_bytes(-1 if r.error else r.used),
        sort=lambda r: r.used,
        right=True,
        priority=4,
    ),
    Field(
        "total",
        "TOTAL",
        lambda r: r.total,
        lambda r: human_bytes(r.total),
        sort=lambda r: r.total,
        right=True,
        priority=5,
    ),
    Field(
        "replicas",
        "REPLICAS",
        lambda r: r.replicas,
        lambda r: "?" if r.error or r.unknown else f"{r.replicas:,}",
        sort=lambda r: r.replicas,
        right=True,
        priority=2,
    ),
    Field(
        "moving",
        "MOVING",
        lambda r: r.moving,
        lambda r: f"{r.moving:,}" if r.moving else "",
        sort=lambda r: r.moving,
        right=True,
        priority=6,
    ),
    Field(
        "error",
        "ERROR",
        lambda r: printable(r.error or str(r.unknown or "")),
        priority=7,
        tone=Tone.BAD,
        flex=True,
        width=20,
        shown_below=True,
    ),
)
GROUPINGS: tuple[Grouping[LogDirRow], ...] = (
    Grouping("broker", "by broker", lambda r: (f"broker {r.broker}",), order=lambda s: (len(s), s)),
    Grouping("state", "by state", lambda r: (state(r),)),
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
        self._view = LogDirsView((), known=False)

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS, lambda r: r.key, groupings=GROUPINGS, noun="log dir", empty="no log dir is known"
        )

    def update(self, view: LogDirsView) -> None:
        """Shows a new picture; the cursor stays on its dir."""
        self._view = view
        self.table.update(view.rows)
        self.show_lines()

    @when_ready
    def on_row_table_cursor_moved(self) -> None:
        row = self.table.cursor_row
        detail = self._view.detail
        if (
            isinstance(row, LogDirRow)
            and row.unknown is None
            and (detail is None or (detail.broker, detail.path) != row.key)
        ):
            self.post_message(self.DetailRequested(row.broker, row.path, row.error is not None))

    def summary_lines(self, width: int) -> list[Line]:
        return summary(self._view, width)

    def detail_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        if not isinstance(row, LogDirRow):
            return []
        return [*details(row, self._view.detail, width), *self.left_out(width)]
