"""Pane 7: the timeline."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import ClusterEvent
from recovery.metadata_log.timeline_text import event_text, moves_text
from recovery.wording.quantity_text import counted, printable, simulated_time, time_text
from widgets.base_pane import TablePane
from widgets.fields import Field
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, fold, line

NAMED = 50
"""How many partitions of an event are named in the details and found by the filter."""


class TimelineRow(NamedTuple):
    """One event. ``offset`` in the metadata log and ``kind`` name it. ``partitions`` are the first of ``moved``,
    and ``moves`` says what became of each.

    ``new``: it came after the timeline was last shown. ``own``: so many of the moved partitions were changed by
    a request in the journal of this host.
    """

    offset: int
    time_ms: int
    kind: EventKind
    text: str
    topics: tuple[str, ...]
    brokers: tuple[int, ...]
    partitions: tuple[str, ...]
    moved: int
    own: int
    new: bool
    moves: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[int, str]:
        return self.offset, self.kind.value


def timeline_row(event: ClusterEvent, history: MetadataHistory, *, own: int, new: bool) -> TimelineRow:
    moves = event.moves
    return TimelineRow(
        event.offset,
        event.time_ms,
        event.kind,
        printable(event_text(event, history)),
        _first(event.topics),
        tuple(sorted(event.brokers)),
        tuple(str(move.tp) for move in moves[:NAMED]),
        len(moves),
        own,
        new,
        tuple(map(printable, moves_text(event, NAMED))),
    )


def _first(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(topics)[:NAMED])


@dataclass(frozen=True, slots=True)
class TimelineView:
    """``rows`` newest last; ``older`` events before them are not shown. ``source`` says where the log was read,
    "" before that. ``reading`` is (offset, end of the log) while much is read, ``events_up_to`` the offset up to
    which events were made from it. ``problem`` says why nothing more can be read, ``needs`` what would change that.
    ``notes`` say what the log does not show, one line each.
    """

    rows: Sequence[TimelineRow] = ()
    older: int = 0
    source: str = ""
    reading: tuple[int, int] | None = None
    events_up_to: int | None = None
    problem: str = ""
    needs: str = ""
    notes: tuple[str, ...] = ()


_TONES = {
    EventKind.OFFLINE: Tone.BAD,
    EventKind.UNCLEAN_ELECTION: Tone.BAD,
    EventKind.ISR_SHRANK: Tone.WARN,
    EventKind.BROKER_FENCED: Tone.WARN,
    EventKind.BROKER_UNREGISTERED: Tone.WARN,
    EventKind.CONTROLLED_SHUTDOWN: Tone.WARN,
    EventKind.LOG_DIRS_CHANGED: Tone.WARN,
    EventKind.ONLINE: Tone.GOOD,
    EventKind.ISR_GREW: Tone.GOOD,
    EventKind.BROKER_UNFENCED: Tone.GOOD,
    EventKind.RECOVERY_ENDED: Tone.GOOD,
}
_YEAR = len("2026-")


def _note(row: TimelineRow) -> str:
    return " ".join(word for word, shown in (("new", row.new), ("ours", row.own)) if shown)


COLUMNS: tuple[Field[TimelineRow], ...] = (
    Field(
        "time",
        "TIME",
        lambda r: time_text(r.time_ms),
        lambda r: simulated_time(r.time_ms) or time_text(r.time_ms)[_YEAR:],
        sort=lambda r: (r.time_ms, r.offset),
    ),
    Field("note", "NOTE", _note, tone=Tone.INFO, priority=2),
    Field("kind", "KIND", lambda r: r.kind.value, tone=lambda r: _TONES.get(r.kind, Tone.PLAIN), priority=3),
    Field(
        "moved",
        "PARTITIONS",
        lambda r: r.moved,
        lambda r: f"{r.moved:,}" if r.moved else "",
        sort=lambda r: r.moved,
        right=True,
        priority=4,
    ),
    Field(
        "text",
        "WHAT HAPPENED",
        lambda r: r.text,
        tone=lambda r: _TONES.get(r.kind, Tone.PLAIN),
        flex=True,
        width=50,
        shown_below=True,
    ),
)
GROUPINGS: tuple[Grouping[TimelineRow], ...] = (
    Grouping("topic", "by topic", lambda r: r.topics or ("no topic",)),
    Grouping(
        "broker",
        "by broker",
        lambda r: tuple(f"broker {broker}" for broker in r.brokers) or ("no broker",),
        order=lambda s: (len(s), s),
    ),
)


class TimelinePane(TablePane):
    """Events; the table's keys are (offset, kind). The cursor follows the newest one while it stands on it."""

    NAME = "timeline"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = TimelineView()
        self._unfolded: Hashable | None = None

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS,
            lambda row: row.key,
            groupings=GROUPINGS,
            search=_search,
            noun="event",
            empty="no event is known",
        )

    def update(self, view: TimelineView) -> None:
        """Shows more events, or the same ones with other marks."""
        before, self._view = self._view, view
        table = self.table
        at_end = not before.rows or table.cursor_key == before.rows[-1].key
        table.update(view.rows)
        if view.rows and view.rows is not before.rows and at_end:
            self.run_worker(self._follow(view.rows[-1]), group="follow", exclusive=True)
        self.show_lines()

    def on_row_table_activated(self, message: RowTable.Activated) -> None:
        """Enter unfolds the sentence of an event, and folds it again."""
        self._unfolded = None if self._unfolded == message.key else message.key
        self.show_lines()

    async def _follow(self, newest: TimelineRow) -> None:
        await self.table.wait_settled()
        self.table.move_to(newest.key)

    def summary_lines(self, width: int) -> list[Line]:
        view, table = self._view, self.table.counts
        parts = [Piece("Timeline", Tone.HEAD), Piece(": ")]
        if not view.source and not view.problem:
            what = (
                "the metadata log is being read"
                if view.events_up_to is None
                else "what happened is put together"
            )
            parts.append(Piece(what, Tone.INFO))
        else:
            parts.append(Piece(counted(table.rows, "event")))
        if view.older:
            parts.append(Piece(f", older and not shown: {view.older:,}", Tone.DIM))
        if table.shown < table.rows:
            parts.append(Piece(f", {table.shown:,} of {table.rows:,} shown", Tone.CURSOR))
        new = sum(row.new for row in view.rows)
        if new:
            parts.append(Piece(f", {new:,} new", Tone.INFO))
        if view.reading is not None:
            done, end = view.reading
            at = done if view.events_up_to is None else view.events_up_to
            parts.append(Piece(f", offset {at:,} of {end:,}", Tone.INFO))
        if view.source:
            utc = "" if all(simulated_time(row.time_ms) for row in view.rows) else ", in UTC"
            parts.append(Piece(f"  from {view.source}{utc}", Tone.DIM))
        lines = fold(tuple(parts), width, "  ")
        if view.problem:
            lines += fold(line(Piece(view.problem, Tone.BAD)), width, "  ")
        if view.needs:
            lines += fold(line(Piece(view.needs, Tone.WARN)), width, "  ")
        for note in view.notes:
            lines += fold(line(Piece(note, Tone.DIM)), width, "  ")
        return lines

    def detail_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        if not isinstance(row, TimelineRow):
            return []
        text = line(Piece(f"{time_text(row.time_ms)} ", Tone.STRONG), Piece(row.text))
        lines = [*fold(text, width, "  ")]
        if row.moved > 1:
            left = row.moved - len(row.partitions)
            more = f" and {left:,} more" if left else ""
            if self._unfolded == row.key:
                for sentence in row.moves:
                    lines += fold(line(Piece(f"  {sentence}")), width, "    ")
                lines += [line(Piece(f"  … {more.strip()} (ktriage timeline)", Tone.DIM))] if left else []
            else:
                names = line(
                    Piece("Enter", Tone.KEY),
                    Piece(" says what became of each: ", Tone.DIM),
                    Piece(", ".join(row.partitions) + more),
                )
                lines += fold(names, width, "  ")
        if row.own:
            lines += fold(line(Piece(_own(row), Tone.INFO)), width, "  ")
        return [*lines, *self.left_out(width)]


def _own(row: TimelineRow) -> str:
    if row.own < row.moved:
        return f"{row.own:,} of {row.moved:,} partitions: by a request in the journal of this host (J)"
    return "by a request in the journal of this host (J)"


def _search(row: TimelineRow) -> str:
    brokers = "\n".join(f"broker {broker}" for broker in row.brokers)
    where = "\n".join((*row.topics, *row.partitions))
    return f"{time_text(row.time_ms)}\n{_note(row)}\n{row.kind}\n{row.text}\n{brokers}\n{where}"
