"""The palette: the registry's actions by name, those that work now first."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits
from textual.system_commands import SystemCommandsProvider
from textual.theme import ThemeProvider
from textual.worker import Worker

from console.change.registry import ACTIONS
from widgets.dialogs.dismiss_once import DismissOnce

NOT_NOW = "not now: "
"""How the help of an action begins that does nothing now; the reason follows. Other actions have no help: their
line says all.
"""


class Palette(DismissOnce[Any], CommandPalette):
    """Textual's palette with two corrections: a second Enter does not act on the screen below, and closing it
    before it is mounted does not end the app.
    """

    def run_worker(self, *given: Any, **more: Any) -> Worker[Any]:
        return super().run_worker(*given, **{**more, "exit_on_error": False})


class Themes(ThemeProvider):
    """Textual's list of themes, whose choice is remembered."""

    @property
    def commands(self) -> list[tuple[str, Callable[[], None]]]:
        use = getattr(self.app, "use_theme")  # noqa: B009  # the console's, which imports this module
        return [(name, partial(use, name)) for name, _ in super().commands]


class ActionCommands(SystemCommandsProvider):
    """Textual's list and search with another order: what works now, then what is called so, then what has the text
    at its own or at a word's beginning, then Textual's own score. What an action does stands once; below it only
    why it does nothing.
    """

    async def discover(self) -> Hits:
        commands = list(self.app.get_system_commands(self.screen))
        commands.sort(key=lambda command: command.help.startswith(NOT_NOW))
        for name, why, callback, _ in commands:
            yield DiscoveryHit(name, callback, help=why or None)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        text = query.strip()
        at_word = re.compile(rf"\b{re.escape(text)}", re.IGNORECASE)
        called_so = {one.title for one in ACTIONS if text and one.name.startswith(text.lower())}
        for name, about, callback, _ in self.app.get_system_commands(self.screen):
            match = matcher.match(name)
            if match > 0 or name in called_so:
                # Each part outweighs every possible value of the next one; a single score is below 1.
                begins = 2 if at_word.match(name) else int(at_word.search(name) is not None)
                order = 4 * (not about.startswith(NOT_NOW)) + (3 if name in called_so else begins)
                shown = matcher.highlight(name)
                yield Hit(order + match / (1 + match), shown, callback, help=about or None)
