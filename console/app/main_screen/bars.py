"""Drawing what surrounds the panes: title, tabs, crumbs, command line, keys, and the guide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.app.main_screen.guide_steps import step
from console.app.main_screen.key_footer import KeyFooter
from console.app.main_screen.title_view import short_name, title
from console.app.session.view import Link
from console.operations.keys import OFFLINE, PANES, PLAN
from widgets.bars.message_bars import CommandBar
from widgets.bars.pane_tabs import Crumbs, PaneTabs, Tab
from widgets.bars.title_bar import TitleBar

if TYPE_CHECKING:
    from console.app.main_screen.main_screen import MainScreen


def draw(desk: MainScreen) -> None:
    """Hands each part what it shows now; the parts repaint what changed."""
    session = desk.session
    desk.query_one(TitleBar).update(title(session))
    desk.pane_of(desk.pane).fade(session.poller.state.link is Link.LOST)
    desk.query_one(PaneTabs).update(_tabs(desk), desk.pane)
    desk.query_one(Crumbs).update(desk.moves.trail(short_name(session.target)))
    desk.query_one(CommandBar).update(desk.command_line())
    desk.query_one(KeyFooter).update(tuple(desk.actions()), desk.pane)
    if desk.guide:
        desk.query_one(KeyFooter).guide(step(desk.pane, session.view, session.draft, session.safety))


def _tabs(desk: MainScreen) -> tuple[Tab, ...]:
    session = desk.session
    counts = {OFFLINE: session.view.offline, PLAN: len(session.draft.partitions)}
    return tuple(
        Tab(pane, title, f"{counts[pane]:,}" if counts.get(pane) else "") for pane, title in PANES.items()
    )
