"""Text that repaints only the lines that changed, so that an unchanged refresh sends nothing over ssh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from recovery.wording.quantity_text import printable
from widgets.lifecycle import screen_is_open
from widgets.text import Content, Line, Piece, Tone, fold, width_of
from widgets.theme import Styles, tone_styles

_KEYS = (
    ("up,k", "One up"),
    ("down,j", "One down"),
    ("pageup", "Page up"),
    ("pagedown", "Page down"),
    ("home,g", "The first"),
    ("end,G", "The last"),
)


def navigation_bindings(*actions: str) -> list[BindingType]:
    """Bindings for the actions that go up, down, a page up, a page down, to the first and to the last."""
    return [
        Binding(key, action, what, show=False) for (key, what), action in zip(_KEYS, actions, strict=True)
    ]


def strip_of(line: Line, styles: Styles, width: int) -> Strip:
    """The line as Textual draws it, exactly ``width`` columns; what would move the cursor is drawn as blanks."""
    shown = [Piece(text if text.isprintable() else printable(text), tone) for text, tone in line]
    segments = [Segment(text, styles[tone]) for text, tone in shown]
    return Strip(segments, width_of(shown)).adjust_cell_length(width)


def _goes_on(line: Line, width: int, key: str) -> Line:
    """The line with a sign that more follows, and the key that shows it: half a sentence ("Do not") must not look
    like a whole one.
    """
    sign = (Piece(" …", Tone.DIM), *((Piece(f" {key}", Tone.KEY),) if key else ()))
    folded = fold(line, max(1, width - width_of(sign)))
    return (*(folded[0] if folded else ()), *sign)


class Lines(ScrollView, can_focus=True):
    """Lines of text, scrolled by keys and wheel. What is shown is made anew for every width. ``fixed``: no key
    scrolls them, so where there is no room for all, the last line that is shown says that more follows. ``key``
    shows the rest: it is named there, until these lines have the focus.
    """

    DEFAULT_CSS = """
    Lines { height: auto; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = navigation_bindings(
        "scroll_up", "scroll_down", "page_up", "page_down", "scroll_home", "scroll_end"
    )

    def __init__(
        self,
        content: Content | None = None,
        *,
        id: str | None = None,
        classes: str | None = None,
        focusable: bool = True,
        fixed: bool = False,
        key: str = "",
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.can_focus = focusable
        self._fixed = fixed
        self._key = key
        self._content = content
        self._lines: Sequence[Line] = ()
        self._made_for = -1

    @property
    def lines(self) -> Sequence[Line]:
        """What is shown."""
        return self._lines

    def show(self, content: Content) -> None:
        """Shows what ``content`` makes for the present width, and again for every later width."""
        self._content = content
        self._make()

    def show_again(self) -> None:
        """Asks again for the content: it depends on something that changed."""
        self._make()

    def to_the_top(self) -> None:
        """Shows the first line: the content is about something else now."""
        self.scroll_to(y=0, animate=False, force=True)

    def on_mount(self) -> None:
        self.watch(self.app, "theme", self._redraw, init=False)

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._made_for:
            self._make()
        # The last line that has room may be another one, here and in what this moved up or down.
        siblings = self.parent.children if isinstance(self.parent, Widget) else (self,)
        for lines in siblings:
            if isinstance(lines, Lines):
                lines.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002  # Textual's
        if self._content is None:
            return 0
        return len(self._lines) if width == self._made_for else len(self._content(max(width, 1)))

    def render_line(self, y: int) -> Strip:
        if self._made_for != self.scrollable_content_region.width:
            self.call_later(self._fit_width)  # a scroll bar came or went
        number = y + self.scroll_offset.y
        line = self._lines[number] if number < len(self._lines) else ()
        cut = y == self._with_room() - 1 and number < len(self._lines) - 1
        if cut and (self._fixed or (self._key and not self.has_focus)):
            line = _goes_on(line, self._made_for, self._key)
        return strip_of(line, tone_styles(self), self.size.width).apply_style(self.rich_style)

    def _with_room(self) -> int:
        """How many lines are seen: a pane that has no room for all of its parts cuts off the last."""
        parent = self.parent
        room = parent.content_region.bottom - self.content_region.y if isinstance(parent, Widget) else 0
        return min(self.size.height, room) if room > 0 else self.size.height

    @property
    def is_cut(self) -> bool:
        """Whether there is no room for all lines."""
        return len(self._lines) > self._with_room()

    def _redraw(self) -> None:
        self.refresh()

    def _fit_width(self) -> None:
        """Every line that is drawn at a new width asks for this; the first time makes them all."""
        if self._made_for != self.scrollable_content_region.width:
            self._make()

    def _make(self) -> None:
        width = self.scrollable_content_region.width
        if self._content is None or width <= 0 or not screen_is_open(self):
            return
        lines = tuple(self._content(width))
        whole = self.content_region.width
        if whole > width and len(unscrolled := tuple(self._content(whole))) <= self.content_region.height:
            # The scroll bar takes the column without which they do not fit: after a resize it would stay for ever.
            width, lines = whole, unscrolled
        if width != self._made_for:
            self.refresh()  # also the line that says that more follows
        old, self._made_for, self._lines = self._lines, width, lines
        self.virtual_size = Size(self.size.width, len(self._lines))
        if len(old) != len(self._lines):
            self.refresh(layout=True)
            self.scroll_to(y=min(self.scroll_offset.y, self.max_scroll_y), animate=False, force=True)
            return
        top = self.scroll_offset.y
        for number, (before, after) in enumerate(zip(old, self._lines, strict=True)):
            if before != after and top <= number < top + self.size.height:
                self.refresh(Region(0, number - top, self.size.width, 1))

    def action_scroll_up(self) -> None:
        self.scroll_relative(y=-1, animate=False)

    def action_scroll_down(self) -> None:
        self.scroll_relative(y=1, animate=False)

    def action_page_up(self) -> None:
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        self.scroll_page_down(animate=False)

    def action_scroll_home(self) -> None:
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        self.scroll_end(animate=False)
