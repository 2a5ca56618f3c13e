"""Pane 5: the replicas on each log dir, those lost with a failed one, and the effect if a healthy one failed."""

from __future__ import annotations

from typing import Any

from textual.message import Message

from recovery.wording.quantity_text import human_bytes, printable
from widgets.base_pane import TablePane
from widgets.lifecycle import when_ready
from widgets.log_dirs.log_dirs_text import bar, bar_tone, details, share, state, state_tone, summary
from widgets.log_dirs.log_dirs_view import LogDirRow, LogDirsView
from widgets.table import Grouping, RowTable, TableColumn
from widgets.text import Line, Tone

_STATES = ("FAILED", "unknown", "nearly full", "healthy")

COLUMNS: tuple[TableColumn[LogDirRow], ...] = (
    TableColumn(
        "broker",
        "BROKER",
        lambda r: str(r.broker),
        sort=lambda r: r.broker,
        right=True,
        tone=Tone.STRONG,
        export=lambda r: r.broker,
    ),
    TableColumn("path", "LOG DIR", lambda r: printable(r.path) or "?", flex=True),
    TableColumn("state", "STATE", state, sort=lambda r: _STATES.index(state(r)), tone=state_tone),
    TableColumn(
        "full",
        "FULL",
        bar,
        sort=lambda r: share(r) or 0.0,
        tone=bar_tone,
        priority=3,
        export=lambda r: None if share(r) is None else round(share(r) or 0.0, 4),
    ),
    TableColumn(
        "usable",
        "FREE",
        lambda r: human_bytes(r.usable),
        sort=lambda r: r.usable,
        right=True,
        export=lambda r: r.usable,
    ),
    TableColumn(
        "used",
        "LOGS",
        lambda r: human_bytes(-1 if r.error else r.used),
        sort=lambda r: r.used,
        right=True,
        priority=4,
        export=lambda r: r.used,
    ),
    TableColumn(
        "total",
        "TOTAL",
        lambda r: human_bytes(r.total),
        sort=lambda r: r.total,
        right=True,
        priority=5,
        export=lambda r: r.total,
    ),
    TableColumn(
        "replicas",
        "REPLICAS",
        lambda r: "?" if r.error or r.unknown else f"{r.replicas:,}",
        sort=lambda r: r.replicas,
        right=True,
        priority=2,
        export=lambda r: r.replicas,
    ),
    TableColumn(
        "moving",
        "MOVING",
        lambda r: f"{r.moving:,}" if r.moving else "",
        sort=lambda r: r.moving,
        right=True,
        priority=6,
        export=lambda r: r.moving,
    ),
    TableColumn(
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
