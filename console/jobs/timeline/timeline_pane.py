"""Pane 7: the timeline."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from console.jobs.timeline.timeline_report import EVENT, TimelineRow
from recovery.wording.quantity_text import counted, printable, simulated_time, time_text
from widgets.base_pane import TablePane
from widgets.fields import on_screen
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, fold, line


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
            on_screen(EVENT),
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
        text = line(Piece(f"{time_text(row.time_ms)} ", Tone.STRONG), Piece(printable(row.text)))
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
    return f"{time_text(row.time_ms)}\n{row.note}\n{row.kind}\n{printable(row.text)}\n{brokers}\n{where}"
