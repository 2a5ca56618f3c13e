"""Why a key does nothing now: one rule for footer, help, palette and the key itself."""

from __future__ import annotations

from typing import NamedTuple

from backends.base.answers import ClusterInfo
from console.app.session.safety import NO_FILES, SERVED, Safety
from console.app.session.view import Link
from console.operations.keys import PANES, KeyAction
from recovery.model import Unknown


class ActionContext(NamedTuple):
    """What decides: the pane, and how the console stands. ``cluster`` is None where nothing was seen of it yet.
    ``planned`` counts the rows that the plan elects, ``elections`` is how the cluster holds designated ones, or why
    it cannot; ``busy`` what is under way; ``led`` tells that a leader of the metadata quorum was seen.
    """

    pane: str
    safety: Safety
    link: Link
    cluster: ClusterInfo | None
    planned: int
    rows: int
    busy: str
    elections: str | Unknown | None
    led: bool

    @property
    def seen(self) -> bool:
        return self.cluster is not None


NO_ALTER = "ALTER on the cluster is missing: Kafka would refuse every change"

NEED_PLAN = frozenset({"edit", "write", "requests", "compare", "verify", "drop", "apply"})
NEED_CLUSTER = frozenset({"compare", "verify", "apply", "choose", "journal", "replace"})
NEED_ROW = frozenset({"choose", "open", "copy", "mark_all", "range", "sort", "reverse", "group", "export"})
WORK = frozenset({"apply", "replace", "choose", "compare", "verify", "load", "drop", "clusters"})

FILES = frozenset({"write", "load", "export", "copy", "copy_command", "replace"})
"""Those that write a file, a copy too (it is kept for terminals that take none), or read one that is named."""


def as_it_stands(action: KeyAction, now: ActionContext) -> KeyAction:
    """With the words of what it does now."""
    if action.name == "arm" and now.safety.armed:
        return action._replace(label="disarm", what="make read-only again")
    return action


def why_not(action: KeyAction, now: ActionContext) -> str:
    """One line, "" where the key works."""
    if now.pane not in action.panes:
        names = ", ".join(f"{pane} ({PANES[pane]})" for pane in action.panes)
        return f"only in pane {names}"
    if action.name == "arm":
        return _why_not_armed(now)
    return _why_nothing_to_do(action, now) or (_why_no_change(action, now) if action.changes else "")


def _why_not_armed(now: ActionContext) -> str:
    if now.safety.forbidden is not None:
        return f"this console stays read-only: {now.safety.forbidden}"
    if now.safety.armed:
        return ""
    if not now.seen:
        return "no cluster was seen yet: there is nothing to arm for"
    return "the cluster is lost: it can be armed once a broker answers again" if now.link is Link.LOST else ""


def _why_nothing_to_do(action: KeyAction, now: ActionContext) -> str:
    reasons = (
        (action.name in FILES and now.safety.forbidden == SERVED, NO_FILES),
        (action.name in WORK and bool(now.busy), f"wait: {now.busy}"),
        (
            action.name in NEED_PLAN and not now.planned,
            "the plan is empty: choose a candidate in pane 1 or 2 first",
        ),
        (action.name in NEED_CLUSTER and not now.seen, "nothing was seen of the cluster yet"),
        (
            action.name == "replace" and not now.led,
            "no leader of the quorum was seen: without one no controller can be replaced",
        ),
        (action.name in NEED_ROW and not now.rows, "there is no row"),
    )
    return next((why for holds, why in reasons if holds), "")


def _why_no_change(action: KeyAction, now: ActionContext) -> str:
    if now.safety.forbidden is not None:
        return f"this console stays read-only: {now.safety.forbidden}"
    if isinstance(now.elections, Unknown):
        return f"designated elections are {now.elections}"
    if now.link is Link.LOST:
        return "the cluster is lost: nothing can be sent"
    if now.cluster is not None and now.cluster.may_alter is False:
        return NO_ALTER
    if not now.safety.armed:
        return f"the console is read-only: press A to arm it before you {action.label}"
    return ""
