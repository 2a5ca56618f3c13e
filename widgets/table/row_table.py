"""The table widget (style.md: selection by identity, nothing animated, only what is seen is drawn)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import ClassVar, Generic, TypeAlias

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.strip import Strip

from widgets.navigation_keys import navigation_bindings
from widgets.table import table_lines, table_messages
from widgets.table.arranging import Arranging
from widgets.table.column_layout import Layout, lay_out
from widgets.table.row_cursor import between, cursor_at, keys_of
from widgets.table.table_column import Grouping, Row, TableColumn
from widgets.table.table_export import Export, exported
from widgets.text import Line, Piece, Tone
from widgets.text_lines import strip_of
from widgets.theme import cursor as cursor_style
from widgets.theme import looks


class RowTable(Arranging[Row], Generic[Row], can_focus=True):
    """Rows of any number under a fixed heading. The cursor and the marks are kept by key."""

    DEFAULT_CSS = """
    RowTable { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *navigation_bindings("cursor(-1)", "cursor(1)", "page(-1)", "page(1)", "first", "last"),
        Binding("left", "fold(True)", "Fold the group", show=False),
        Binding("right", "fold(False)", "Unfold the group", show=False),
        Binding("space", "mark", "Mark the row", show=False),
        Binding("enter", "activate", "Open the row", show=False),
    ]
    CursorMoved: TypeAlias = table_messages.CursorMoved
    Activated: TypeAlias = table_messages.Activated
    RowGone: TypeAlias = table_messages.RowGone
    MarksChanged: TypeAlias = table_messages.MarksChanged
    MarksGone: TypeAlias = table_messages.MarksGone
    Counted: TypeAlias = table_messages.Counted
    SortChanged: TypeAlias = table_messages.SortChanged
    Narrowed: TypeAlias = table_messages.Narrowed

    def __init__(
        self,
        columns: Sequence[TableColumn[Row]],
        key: Callable[[Row], Hashable],
        *,
        groupings: Sequence[Grouping[Row]] = (),
        search: Callable[[Row], str] | None = None,
        noun: str = "row",
        empty: str = "nothing here",
        id: str | None = None,
    ) -> None:
        super().__init__(columns, key, groupings, search, id)
        self.noun = noun
        self.empty = empty
        self._layout = Layout((), ())
        self._laid_out_for = -1
        self._painted: dict[int, tuple[Line, bool]] = {}

    # What is drawn

    def render_line(self, y: int) -> Strip:
        if self._laid_out_for != self._wide:
            self.call_later(self._lay_out)  # a scroll bar came or went
        line, under_cursor = self._painted[y] = self._drawn(y)
        strip = strip_of(line, looks(self), self._wide)
        if under_cursor:
            strip = strip.apply_style(cursor_style(self.app.theme, focused=self.has_focus))
        return strip.apply_style(self.rich_style)

    @property
    def _wide(self) -> int:
        """The columns there are beside the scroll bar."""
        return self.scrollable_content_region.width

    def _drawn(self, y: int) -> tuple[Line, bool]:
        """The line at screen line ``y``, and whether the cursor is on it."""
        if y == 0:
            sort, reverse = self.sort_state
            return table_lines.header(self._layout, self._wide, sort, reverse=reverse), False
        arranged, number = self._arranged, y - 1 + self.scroll_offset.y
        if not arranged.lines and y == 1:
            return (Piece(f"   {self._nothing()}", Tone.DIM),), False
        if number >= len(arranged.lines):
            return (), False
        here = number == self._cursor.number
        group = arranged.group(number)
        if group is not None:
            marked = self._marked_in(group)
            return table_lines.group_line(
                group, self.noun, marked, table_lines.Signs(here, marked=False)
            ), here
        row = arranged.row(number)
        signs = table_lines.Signs(here, arranged.identity(number) in self._marks)
        return table_lines.row_line(row, self._layout, signs, self._finder), here

    def _nothing(self) -> str:
        hidden = len(self._rows)
        wanted = self._wanted.filter
        return self.empty if not hidden else f"no {self.noun} for {wanted}; the filter hides all {hidden:,}"

    def _lay_out(self) -> None:
        """Widths by what is seen, so that no number is cut; a change draws everything anew."""
        self._laid_out_for = self._wide
        height = max(self.size.height - 1, 0)
        rows = table_lines.visible_rows(self._arranged, self.scroll_offset.y, height)
        for column, need in table_lines.needed(self.columns, rows).items():
            self._needs[column] = max(self._needs.get(column, 0), need)
        layout = lay_out(self.columns, self._needs, self._wide, table_lines.GUTTER)
        if layout != self._layout:
            if layout.dropped != self._layout.dropped:
                self.post_message(self.Narrowed(self))
            self._layout = layout
            self.refresh()

    def _repaint(self) -> None:
        """Draws the lines that look different from what is on the screen, and no others."""
        self._lay_out()
        for y in range(self.size.height):
            if self._painted.get(y) != self._drawn(y):
                self.refresh(Region(0, y, self._wide, 1))

    def _resized(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._arranged.lines) + 1)

    def on_mount(self) -> None:
        self.watch(self.app, "theme", self._theme_changed, init=False)
        self._rearrange()

    def on_resize(self) -> None:
        self._resized()
        self._show_cursor()
        self._lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._lay_out()

    # Moving

    def move_to(self, key: Hashable) -> bool:
        """Puts the cursor on the row of that key; False where it is not shown."""
        number = self._arranged.find(key)
        if number is not None:
            self._go(number)
        return number is not None

    def _go(self, number: int) -> None:
        self._cursor = cursor_at(self._arranged, number)
        self._show_cursor()
        self._repaint()
        self._tell_cursor()

    def _show_cursor(self) -> None:
        """Scrolls just as far as the cursor's line needs."""
        body = max(self.size.height - 1, 1)
        top, number = self.scroll_offset.y, self._cursor.number
        if number < top:
            self._scroll(number)
        elif number >= top + body:
            self._scroll(number - body + 1)

    def action_cursor(self, step: int) -> None:
        self._go(self._cursor.number + step)

    def action_page(self, step: int) -> None:
        self._go(self._cursor.number + step * max(self.size.height - 2, 1))

    def action_first(self) -> None:
        self._go(0)

    def action_last(self) -> None:
        self._go(len(self._arranged.lines) - 1)

    def action_activate(self) -> None:
        """Tells that the row was opened; a heading folds or unfolds."""
        if self._cursor.key is None:
            return
        row = self.cursor_row
        if row is None:
            self.toggle_group()
        else:
            self.post_message(self.Activated(self, self._cursor.key, row))

    def action_fold(self, fold: bool) -> None:
        group = self._arranged.heading(self._cursor.number) if self._arranged.lines else None
        if group is not None and group.folded != fold:
            self.toggle_group()

    # Marks

    def action_mark(self) -> None:
        self.toggle_mark()
        self.action_cursor(1)

    def toggle_mark(self) -> None:
        """Marks the row under the cursor, or no longer; on a heading, all its rows."""
        if self._cursor.key is None:
            return
        group = self._arranged.group(self._cursor.number)
        keys = frozenset([self._cursor.key]) if group is None else keys_of(self._arranged, group.rows)
        self._anchor = self._cursor.key
        self.set_marks(self._marks - keys if keys <= self._marks else self._marks | keys)

    def mark_range(self) -> None:
        """Marks everything from the row that was marked last to the cursor."""
        start = None if self._anchor is None else self._arranged.find(self._anchor, self._cursor.number)
        if start is None:
            self.toggle_mark()
        else:
            self.set_marks(self._marks | between(self._arranged, start, self._cursor.number))

    def clear_marks(self) -> None:
        self._anchor = None
        self.set_marks(frozenset())

    # The mouse

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            column = self._layout.column_at(event.x)
            if column is not None:
                now, reverse = self.sort_state
                self.sort_by(column.id, not reverse if now == column.id else False)
            return
        number = event.y - 1 + self.scroll_offset.y
        if number >= len(self._arranged.lines):
            return
        self._go(number)
        if self._arranged.group(number) is not None:
            self.toggle_group()
        elif event.chain == 2:
            self.action_activate()

    # For others

    def export(self, kind: Export | str) -> Iterator[str]:
        """The rows shown as CSV or JSON, with all columns, in chunks. Later changes do not touch it."""
        return exported(self._arranged, self.columns, Export(kind))

    @property
    def without_room(self) -> int:
        """How many columns are not drawn; the heading says it too."""
        return len(self._layout.dropped)

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Title and text of what there is no room for, of the row under the cursor; empty texts are left out."""
        row = self.cursor_row
        if row is None:
            return ()
        told = ((c.title, c.text(row)) for c in self._layout.dropped if not c.told)
        return tuple((title, text) for title, text in told if text)

    def _theme_changed(self) -> None:
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()
