"""A small app around widgets, for tests and for looking at them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.message import Message
from textual.widget import Widget

from widgets import theme
from widgets.table import table_messages


class Harness(App[None]):
    """Shows ``parts`` below one another and keeps the messages of tables that reach it."""

    def __init__(self, *parts: Widget, theme_name: str = theme.DARK) -> None:
        super().__init__(ansi_color=True if theme_name == theme.PLAIN else None)
        self._parts: Sequence[Widget] = parts
        self._theme_name = theme_name
        self.heard: list[Message] = []
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield from self._parts

    def on_mount(self) -> None:
        theme.install(self, no_color=self._theme_name == theme.PLAIN)
        self.theme = self._theme_name

    def on_event_heard(self, message: Message) -> None:
        self.heard.append(message)

    def on_row_table_row_gone(self, message: table_messages.RowGone) -> None:
        self.heard.append(message)

    def on_row_table_marks_gone(self, message: table_messages.MarksGone) -> None:
        self.heard.append(message)

    def on_row_table_activated(self, message: table_messages.Activated) -> None:
        self.heard.append(message)


def picture(app: App[None], path: Path) -> None:
    """Writes what the screen shows as SVG."""
    path.write_text(app.export_screenshot(title="ktriage"), encoding="utf-8")


def text_of(app: App[Any]) -> str:
    """What the screen shows, as text."""
    width, height = app.size
    lines = app.screen._compositor.render_strips(app.screen.size)  # no public way to read a screen
    assert len(lines) == height
    return "\n".join(strip.text[:width].rstrip() for strip in lines)


def colours_of(app: App[Any], word: str) -> set[str]:
    """The colours that the first line with ``word`` is written in; no line, no colours."""
    lines = app.screen._compositor.render_strips(app.screen.size)
    line = next((strip for strip in lines if word in strip.text), ())
    inked = [segment.style for segment in line if segment.text.strip() and segment.style is not None]
    return {style.color.name for style in inked if style.color is not None}
