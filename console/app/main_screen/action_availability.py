"""Why a key is disabled: one rule for footer, help, palette and the key itself."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from backends.base.answers import ClusterInfo
from console.app.session.safety import NO_FILES, SERVED, Safety
from console.app.session.view import Link
from console.operations.registry import PANES, QUORUM, Action, Need
from recovery.model import Unknown


class ActionContext(NamedTuple):
    """What decides which actions work: the pane, and the state of the console. ``cluster`` is None before the
    first answer. ``planned`` counts the rows that the plan elects. ``elections`` is how the cluster elects a
    designated leader, or why it cannot. ``busy`` is the running task. ``led``: the metadata quorum had a
    leader when it was read; None: it was not read yet.
    """

    pane: str
    safety: Safety
    link: Link
    cluster: ClusterInfo | None
    planned: int
    rows: int
    busy: str
    elections: str | Unknown | None
    led: bool | None

    @property
    def connected(self) -> bool:
        return self.cluster is not None


NO_ALTER = "ALTER on the cluster is missing: Kafka would refuse every change"


class Obstacle(Enum):
    """The reason why a key is disabled."""

    OTHER_PANE = auto()
    NO_FILES = auto()
    BUSY = auto()
    NO_PLAN = auto()
    CLUSTER_UNKNOWN = auto()
    NO_QUORUM_LEADER = auto()
    NO_ROW = auto()
    READ_ONLY_FOR_GOOD = auto()
    NO_ELECTIONS = auto()
    CLUSTER_LOST = auto()
    NO_ALTER = auto()
    NOT_ARMED = auto()


class Disabled(NamedTuple):
    """An obstacle, and one line that says it."""

    obstacle: Obstacle
    text: str


def as_it_stands(action: Action, now: ActionContext) -> Action:
    """The action with the label of what it does now."""
    if action.name == "arm" and now.safety.armed:
        return action._replace(label="disarm", what="make read-only again")
    return action


def why_not(action: Action, now: ActionContext) -> str:
    """One line; "" if the key works."""
    found = disabled(action, now)
    return "" if found is None else found.text


def disabled(action: Action, now: ActionContext) -> Disabled | None:
    """Why the key is disabled; None if it works."""
    if now.pane not in action.panes:
        names = ", ".join(f"{pane} ({PANES[pane]})" for pane in action.panes)
        return Disabled(Obstacle.OTHER_PANE, f"only in pane {names}")
    if action.name == "arm":
        return _arming(now)
    found = (_missing(need, action, now) for need in action.needs)
    return next((why for why in found if why is not None), None)


def _missing(need: Need, action: Action, now: ActionContext) -> Disabled | None:
    if need is Need.ARMED:
        return _changing(action, now)
    missing, why = {
        Need.FILES: (now.safety.forbidden == SERVED, Disabled(Obstacle.NO_FILES, NO_FILES)),
        Need.IDLE: (bool(now.busy), Disabled(Obstacle.BUSY, f"wait: {now.busy}")),
        Need.PLAN: (
            not now.planned,
            Disabled(Obstacle.NO_PLAN, "the plan is empty: choose a candidate in pane 1 or 2 first"),
        ),
        Need.CLUSTER: (
            not now.connected,
            Disabled(Obstacle.CLUSTER_UNKNOWN, "the cluster was not read yet"),
        ),
        Need.QUORUM_LEADER: (
            now.pane == QUORUM and not now.led,
            Disabled(
                Obstacle.NO_QUORUM_LEADER,
                "the quorum was not read yet"
                if now.led is None
                else "the quorum has no leader, as far as is known: without one no controller can be replaced",
            ),
        ),
        Need.ROW: (not now.rows, Disabled(Obstacle.NO_ROW, "there is no row")),
    }[need]
    return why if missing else None


def _arming(now: ActionContext) -> Disabled | None:
    if now.safety.forbidden is not None:
        return _for_good(now.safety.forbidden)
    if now.safety.armed:
        return None
    if not now.connected:
        text = "the cluster was not read yet: there is nothing to arm for"
        return Disabled(Obstacle.CLUSTER_UNKNOWN, text)
    if now.link is Link.LOST:
        text = "the cluster is lost: it can be armed once a broker answers again"
        return Disabled(Obstacle.CLUSTER_LOST, text)
    return None


def _changing(action: Action, now: ActionContext) -> Disabled | None:
    if now.safety.forbidden is not None:
        return _for_good(now.safety.forbidden)
    if isinstance(now.elections, Unknown):
        return Disabled(Obstacle.NO_ELECTIONS, f"designated elections are {now.elections}")
    if now.link is Link.LOST:
        return Disabled(Obstacle.CLUSTER_LOST, "the cluster is lost: nothing can be sent")
    if now.cluster is not None and now.cluster.may_alter is False:
        return Disabled(Obstacle.NO_ALTER, NO_ALTER)
    if not now.safety.armed:
        text = f"the console is read-only: press A to arm it before you {action.label}"
        return Disabled(Obstacle.NOT_ARMED, text)
    return None


def _for_good(why: str) -> Disabled:
    return Disabled(Obstacle.READ_ONLY_FOR_GOOD, f"this console stays read-only: {why}")
