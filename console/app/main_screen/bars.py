"""The bars around the panes: title, tabs, breadcrumbs, command line, keys, and the guide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from textual.widget import Widget

from console.app.main_screen.key_footer import KeyFooter
from console.app.main_screen.title_view import title
from console.app.session.session import Session
from console.app.session.view import View
from console.operations.registry import BROKERS, DIRS, OFFLINE, PANES, PLAN, QUORUM, Action
from recovery.wording.cluster_health_text import brokers_badge, quorum_badge
from widgets.bars.message_bars import CommandBar
from widgets.bars.pane_tabs import Crumbs, PaneTabs, Tab
from widgets.bars.title_bar import TitleBar
from widgets.table import RowTable


class BarsView(NamedTuple):
    """``pane`` is the key of the open pane; each action comes with the reason why it is disabled, "" if it
    works.
    """

    pane: str
    trail: tuple[str, ...]
    table: RowTable[Any]
    command_line: str
    actions: Sequence[tuple[Action, str]]
    guide: str | None


def draw_bars(screen: Widget, session: Session, view: BarsView) -> None:
    """Gives each bar of ``screen`` its current value; the bars repaint what changed."""
    screen.query_one(TitleBar).update(title(session))
    screen.query_one(PaneTabs).update(_tabs(session), view.pane)
    found = view.table.filter
    shown = f"{view.table.counts.shown:,} of {view.table.counts.rows:,} shown"
    wrong = found is not None and found.problem() is not None
    screen.query_one(Crumbs).update(view.trail, f"{found}: {shown}" if found else "", wrong=wrong)
    screen.query_one(CommandBar).update(view.command_line)
    footer = screen.query_one(KeyFooter)
    footer.update(view.actions, view.pane)
    if view.guide is not None:
        footer.guide(view.guide)


def _tabs(session: Session) -> tuple[Tab, ...]:
    badges, planned = _badges(session.view), len(session.draft.partitions)
    tabs = (Tab(pane, title, badges.get(pane, ""), alarm=pane in badges) for pane, title in PANES.items())
    return tuple(tab._replace(badge=f"{planned:,}") if tab.key == PLAN and planned else tab for tab in tabs)


def _badges(view: View) -> dict[str, str]:
    """The problems, each at the pane that shows it."""
    found = view.health
    if found is None:
        return {}
    badges = {QUORUM: quorum_badge(found.quorum)}
    badges[OFFLINE] = f"{found.offline:,}" if found.offline else ""
    badges[DIRS] = f"{found.failed_dirs:,} failed" if found.failed_dirs else ""
    badges[BROKERS] = brokers_badge(found)
    return {pane: badge for pane, badge in badges.items() if badge}
