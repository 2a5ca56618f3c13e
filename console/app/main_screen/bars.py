"""What stands around the panes: title, tabs, breadcrumbs, command line, keys, and the guide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.widget import Widget

from console.app.main_screen.key_footer import KeyFooter
from console.app.main_screen.title_view import title
from console.app.session.session import Session
from console.operations.registry import OFFLINE, PANES, PLAN, Action
from widgets.bars.message_bars import CommandBar
from widgets.bars.pane_tabs import Crumbs, PaneTabs, Tab
from widgets.bars.title_bar import TitleBar


class BarsView(NamedTuple):
    """``pane`` is the key of the open pane; each action comes with why it does nothing now, "" where it works."""

    pane: str
    trail: tuple[str, ...]
    command_line: str
    actions: Sequence[tuple[Action, str]]
    guide: str | None


def draw_bars(screen: Widget, session: Session, view: BarsView) -> None:
    """Hands each bar below ``screen`` what it shows now; the bars repaint what changed."""
    screen.query_one(TitleBar).update(title(session))
    screen.query_one(PaneTabs).update(_tabs(session), view.pane)
    screen.query_one(Crumbs).update(view.trail)
    screen.query_one(CommandBar).update(view.command_line)
    footer = screen.query_one(KeyFooter)
    footer.update(view.actions, view.pane)
    if view.guide is not None:
        footer.guide(view.guide)


def _tabs(session: Session) -> tuple[Tab, ...]:
    counts = {OFFLINE: session.view.offline, PLAN: len(session.draft.partitions)}
    return tuple(
        Tab(pane, title, f"{counts[pane]:,}" if counts.get(pane) else "") for pane, title in PANES.items()
    )
