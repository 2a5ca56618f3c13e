"""The title: which cluster, live or simulated, armed or not, and how old the data is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from console.app.session.schedule import Schedule
from console.app.session.session import Session
from console.app.session.view import Link
from console.target import Target
from recovery.wording.cluster_health_text import stale_reason
from recovery.wording.quantity_text import age
from widgets.bars.title_bar import RefreshState, Title

AGE_STEP = 5.0
OLD_SECONDS = 30.0
"""Seconds after which the data is too old to call anything well: three refreshes are missing."""


def title(session: Session) -> Title:
    """The title bar's value."""
    state, view, safety = session.poller.state, session.view, session.safety
    now = session.clock()
    left = safety.left(now)
    return Title(
        name=short_name(session.target),
        cluster_id=view.cluster_id,
        simulated=session.simulated,
        armed_left_s=left,
        read_only_why=safety.brief,
        age_s=None if view.at is None else _coarse(now - view.at),
        refresh=_refresh(state.link, state.schedule),
        note=_note(state.link, state.problem, state.schedule, now),
        colour=session.target.colour,
        health=view.health,
        caveat=_caveat(state.link, view.at, now),
    )


def doubt(session: Session) -> str:
    """Why it is not known what is offline now; "" if it is known."""
    view = session.view
    lost = "" if view.health is None else stale_reason(view.health)
    return lost or _caveat(session.poller.state.link, view.at, session.clock())


def _caveat(link: Link, at: float | None, now: float) -> str:
    """Why the data may not be current; "" if it is."""
    if link is Link.LOST:
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


def _refresh(link: Link, schedule: Schedule) -> RefreshState:
    if link is Link.LOST:
        return RefreshState.LOST
    if link is Link.CONNECTING:
        return RefreshState.OPENING
    if schedule.began is not None:
        return RefreshState.ASKING
    if schedule.paused:
        return RefreshState.PAUSED
    return RefreshState.SLOWED if schedule.slowed else RefreshState.FRESH


def _note(link: Link, problem: str, schedule: Schedule, now: float) -> str:
    """The problem, or when the next refresh is due where refreshes are slow."""
    if problem:
        due = schedule.due(now)
        again = "" if due is None or link is not Link.LOST else f"; asked again in {due:.0f} s"
        return f"{problem}{again}"
    if schedule.slowed and not schedule.paused:
        return f"a refresh takes {schedule.took:.1f} s: the next one every {schedule.pause_between:.0f} s"
    return ""
