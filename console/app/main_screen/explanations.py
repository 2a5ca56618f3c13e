"""The keys that explain: every key, every word, and every command by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.screen import Screen

from console.app.main_screen.glossary_view import glossary_screen
from console.app.main_screen.help_sections import sections
from console.app.main_screen.screen_calls import Handlers
from console.app.session.session import Session
from console.operations.registry import Action
from recovery.model import TopicPartition
from widgets.dialogs.help_screen import HelpScreen


class Explanations:
    """``actions``: every action with why it does nothing now; ``cursor``: the partition for which the words are
    explained; ``push`` opens a screen.
    """

    def __init__(
        self,
        session: Session,
        *,
        actions: Callable[[], Iterable[tuple[Action, str]]],
        cursor: Callable[[], TopicPartition | None],
        push: Callable[[Screen[Any]], object],
        open_palette: Callable[[], object],
    ) -> None:
        self._session = session
        self._actions = actions
        self._cursor = cursor
        self._push = push
        self._open_palette = open_palette

    def handlers(self) -> Handlers:
        return {
            "help": lambda: self._push(HelpScreen(sections(self._actions()))),
            "glossary": lambda: self._push(glossary_screen(self._session, self._cursor())),
            "palette": self._open_palette,
        }
