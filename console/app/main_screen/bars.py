"""The bars around the panes: title, tabs, breadcrumbs, command line, keys, and the guide."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from textual.widget import Widget

from console.app.main_screen.key_footer import KeyFooter
from console.app.session.poller import OLD_SECONDS, Schedule
from console.app.session.session import Session
from console.app.session.view import NOT_ANSWERED_YET, NOT_REACHED_YET, Link, View
from console.change.registry import AFTER, BROKERS, DIRS, OFFLINE, PANES, PLAN, QUORUM, WORDS, Action
from console.target import Target
from recovery.wording.cluster_health_text import brokers_badge, quorum_badge, stale_reason
from recovery.wording.quantity_text import age, counted
from widgets.bars.message_bars import CommandBar
from widgets.bars.pane_tabs import Crumbs, PaneTabs, Tab
from widgets.bars.title_bar import RefreshState, Title, TitleBar
from widgets.table import RowTable

AGE_STEP = 5.0
LONG_REFRESH = 10.0
"""Seconds after which a refresh says what it reads while there is a picture."""


def title(session: Session) -> Title:
    """The title bar's value."""
    state, view, safety = session.poller.state, session.view, session.safety
    now = session.clock()
    left = safety.left(now)
    return Title(
        name=short_name(session.target),
        cluster_id=view.cluster_id,
        mark=session.target.mark,
        armed_left_s=left,
        read_only_why=safety.brief,
        age_s=None if view.at is None else _coarse(now - view.at),
        refresh=_refresh(state.link, state.schedule, view.opened is not None),
        note=_note(state.link, state.problem, state.schedule, now),
        reads=_reads(session, now),
        colour=session.target.colour,
        health=view.health,
        caveat=_caveat(state.link, view, now),
    )


def doubt(session: Session) -> str:
    """Why it is not known what is offline now; "" if it is known."""
    view = session.view
    lost = "" if view.health is None else stale_reason(view.health)
    return lost or _caveat(session.poller.state.link, view, session.clock())


def never_reached(session: Session) -> bool:
    """Whether nobody has answered yet, and the last try failed: that says nothing about the cluster."""
    return session.poller.state.link is Link.LOST and session.view.opened is None


def not_known(session: Session) -> str:
    """What an empty list says before the first answer."""
    return NOT_REACHED_YET if never_reached(session) else NOT_ANSWERED_YET


def _caveat(link: Link, view: View, now: float) -> str:
    """Why the data may not be current; "" if it is."""
    at = view.at
    if link is Link.LOST:
        if view.opened is None:
            return "NOT REACHED: nothing is known of this cluster"
        return "cluster LOST" if at is None else f"cluster LOST, last picture of {_time_of_day(at)}"
    if at is None or now - at < OLD_SECONDS:
        return ""
    return f"picture {age(_coarse(now - at))} old"


def _time_of_day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S UTC")


def _coarse(seconds: float) -> float:
    """An age in steps: a title that changed every second would cause most of the traffic over ssh."""
    return max(0.0, seconds // AGE_STEP * AGE_STEP)


def short_name(target: Target) -> str:
    """The cluster as it was named, short enough for a title: the first bootstrap server, a scenario's file name."""
    if target.kind == "simulated":
        return Path(target.scenario).name
    first, *others = target.title.split(",")
    return f"{first} (+{len(others)})" if others else first


def _refresh(link: Link, schedule: Schedule, reached: bool) -> RefreshState:
    if link is Link.LOST:
        return RefreshState.LOST if reached else RefreshState.NOT_REACHED
    if link is Link.CONNECTING:
        return RefreshState.OPENING
    if schedule.began is not None:
        return RefreshState.ASKING
    if schedule.paused:
        return RefreshState.PAUSED
    return RefreshState.SLOWED if schedule.slowed else RefreshState.FRESH


def _reads(session: Session, now: float) -> str:
    """What the running refresh reads, how far it is, and for how long; "" for a short one while there is a
    picture.
    """
    state, progress = session.poller.state, session.poller.progress
    began = state.schedule.began
    if began is None or progress is None or state.link is Link.LOST:
        return ""
    if session.view.at is not None and now - began < LONG_REFRESH:
        return ""
    counts = f" {progress.done:,} of {progress.of:,}" if progress.of else ""
    took = _coarse(now - began)
    return f"{progress.what}{counts}{f', {took:.0f} s so far' if took else ''}"


def _note(link: Link, problem: str, schedule: Schedule, now: float) -> str:
    """The problem, or when the next refresh is due where refreshes are slow."""
    if problem:
        due = schedule.due(now)
        again = "" if due is None or link is not Link.LOST else f"; asked again in {due:.0f} s"
        return f"{problem}{again}"
    if schedule.slowed and not schedule.paused:
        return f"a refresh takes {schedule.took:.1f} s: the next one every {schedule.pause_between:.0f} s"
    return ""


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
    if left := session.left_to_do.badge:
        badges = {**badges, AFTER: left}
    tabs = (
        Tab(pane, title, badges.get(pane, ""), alarm=pane in badges, word=WORDS[pane])
        for pane, title in PANES.items()
    )
    return tuple(tab._replace(badge=f"{planned:,}") if tab.key == PLAN and planned else tab for tab in tabs)


def _badges(view: View) -> dict[str, str]:
    """The problems, each at the pane that shows it."""
    found = view.health
    if found is None:
        return {}
    after = view.after_rebuild
    beside = "" if after is None or not after.alarms else counted(len(after.alarms), "finding")
    badges = {QUORUM: quorum_badge(found.quorum) or beside or ("no spare" if found.votes_wanted else "")}
    empty = f"{found.empty_on_leader:,} EMPTY" if found.empty_on_leader else ""
    lost = f"{found.lost_offsets:,} LOST" if found.lost_offsets else ""
    silent = 0 if view.reading is None else view.reading.led_by_silent
    not_led = f"{silent:,} not reached" if silent else ""
    badges[OFFLINE] = f"{found.offline:,}" if found.offline else lost or empty or not_led
    badges[DIRS] = f"{found.failed_dirs:,} failed" if found.failed_dirs else ""
    badges[BROKERS] = brokers_badge(found)
    return {pane: badge for pane, badge in badges.items() if badge}
