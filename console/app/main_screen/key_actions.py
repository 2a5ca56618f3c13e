"""Which actions work now, and why others do not; runs the action of a key or palette command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from backends.base.answers import Capabilities, ClusterInfo
from backends.base.check_report import CLUSTER_RESOURCE
from console.app.base.screen_calls import Handlers, Say
from console.app.session.draft import Draft
from console.app.session.safety import NO_FILES, SERVED, Safety
from console.app.session.session import Session
from console.app.session.view import Link
from console.change.access import NO_ALTER
from console.change.registry import ALL, BY_NAME, KEYS, PLAN, QUORUM, WORDS, Action, Need
from recovery.cluster_health import QuorumState
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import Unknown
from widgets.text import Tone


class ActionContext(NamedTuple):
    """What decides which actions work: the pane, and the state of the console. ``cluster`` is None before the
    first answer. ``planned`` counts the rows that the plan elects. ``elections`` is how the cluster elects a
    designated leader, or why it cannot. ``busy`` is the running task. ``led``: the metadata quorum had a
    leader when it was read, or its controllers were asked (M is the guide to the ways back then); None: it was not
    read yet. ``elected``: the plan was applied, so that there is a result to verify; ``rescued``: what it cut off
    is saved, and not yet written back. ``quorum`` is its state; None: the cluster was not read yet.
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
    elected: bool = False
    rescued: bool = False
    quorum: QuorumState | None = None

    @property
    def connected(self) -> bool:
        return self.cluster is not None


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


class Disabled(NamedTuple):
    """An obstacle, and one line that says it."""

    obstacle: Obstacle
    text: str


def as_it_stands(action: Action, now: ActionContext) -> Action:
    """The action with the label of what it does now, and in the footer where it is a next step."""
    if action.name == "arm" and now.safety.armed:
        return action._replace(label="disarm", what="make read-only again")
    next_step = {"restore": now.rescued, "verify": now.elected}
    if action.name in next_step and now.pane != PLAN:
        return action._replace(foot=1 if next_step[action.name] else 0)
    if action.name == "replace" and now.pane == QUORUM and now.led and now.quorum in _LEADERLESS:
        return action._replace(label="ways back", what="the ways back to a leader, the least harm first")
    return action


_LEADERLESS = (QuorumState.NO_LEADER, QuorumState.UNREACHABLE, QuorumState.NOT_REACHED_BY_BROKERS)


def of_pane(name: str, pane: str) -> str:
    """The action that the key of ``name`` has in the pane; where it has none there, that one, which says so."""
    key = BY_NAME[name].key
    return next((action.name for action in KEYS if action.key == key and pane in action.panes), name)


def without_action(key: str, character: str) -> str:
    """What a key of the main screen says that has no action: what was most likely meant."""
    shown = character if character.isprintable() and character.strip() else key.replace("_", " ").capitalize()
    if key in _MEANT:
        return f"{shown} does nothing: {_MEANT[key]}"
    meant = next((action for action in KEYS if action.key == character.swapcase()), None)
    if meant is None:
        return f"{shown} does nothing: ? lists the keys"
    where = "" if meant.panes == ALL else f", in pane {' or '.join(meant.panes)}"
    return f"{shown} does nothing: {meant.shown} is {meant.label}{where}; ? lists the keys"


_MEANT = {
    "f5": "r reads the cluster again",
    "f1": "? lists the keys",
    "delete": "d takes a row out of the plan, in pane 6",
    "backspace": "Esc leads back",
    "0": "1 to 9 open the panes",
}


def why_not(action: Action, now: ActionContext) -> str:
    """One line; "" if the key works."""
    found = disabled(action, now)
    return "" if found is None else found.text


def disabled(action: Action, now: ActionContext) -> Disabled | None:
    """Why the key is disabled; None if it works."""
    if now.pane not in action.panes:
        names = ", ".join(f"{pane} ({WORDS[pane]})" for pane in action.panes)
        return Disabled(Obstacle.OTHER_PANE, f"only in pane {names}")
    if action.name == "arm":
        return _arming(now)
    found = (_missing(need, action, now) for need in action.needs)
    return next((why for why in found if why is not None), None)


def _missing(need: Need, action: Action, now: ActionContext) -> Disabled | None:
    if need is Need.SENDS:
        return _changing(action, now)
    missing, why = {
        Need.FILES: (now.safety.forbidden == SERVED, Disabled(Obstacle.NO_FILES, NO_FILES)),
        Need.IDLE: (bool(now.busy), Disabled(Obstacle.BUSY, f"wait: {now.busy}")),
        Need.PLAN: (
            not now.planned,
            Disabled(Obstacle.NO_PLAN, "the plan is empty: choose a leader in pane 1 or 2 first"),
        ),
        Need.CLUSTER: (
            not now.connected,
            Disabled(Obstacle.CLUSTER_UNKNOWN, "the cluster was not read yet"),
        ),
        Need.QUORUM_LEADER: (
            now.pane == QUORUM and (not now.led or now.quorum is QuorumState.OLD_VOTERS),
            Disabled(Obstacle.NO_QUORUM_LEADER, _no_replacement(now)),
        ),
        Need.ROW: (not now.rows, Disabled(Obstacle.NO_ROW, "there is no row")),
    }[need]
    return why if missing else None


def _no_replacement(now: ActionContext) -> str:
    if now.led is None:
        return "the quorum was not read yet"
    if now.quorum is QuorumState.OLD_VOTERS:
        return "a rebuild replaced these voters, and they must not run: no controller is replaced among them"
    return "the quorum has no leader, as far as is known: without one no controller can be replaced"


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
    if isinstance(now.elections, Unknown):
        return Disabled(Obstacle.NO_ELECTIONS, f"designated elections are {now.elections}")
    if now.link is Link.LOST:
        return Disabled(Obstacle.CLUSTER_LOST, "the cluster is lost: nothing can be sent")
    if now.cluster is not None and now.cluster.may_alter is False and _needs_alter(action):
        return Disabled(Obstacle.NO_ALTER, NO_ALTER)
    return None


def _needs_alter(action: Action) -> bool:
    from console.journal.change_kinds import rights_of  # noqa: PLC0415  # not for the first frame

    return ("ALTER", CLUSTER_RESOURCE) in rights_of(action.sends)


def _for_good(why: str) -> Disabled:
    return Disabled(Obstacle.READ_ONLY_FOR_GOOD, f"this console stays read-only: {why}")


def context_of(session: Session, pane: str, rows: int, busy: str) -> ActionContext:
    """The context that decides which actions work now; ``rows`` are those in the open pane."""
    view = session.view
    elections = view.capabilities
    return ActionContext(
        pane,
        session.safety,
        session.poller.state.link,
        view.cluster,
        len(session.draft.partitions),
        rows,
        busy,
        elections.designated_elections if isinstance(elections, Capabilities) else elections,
        None if view.quorum is None else isinstance(view.quorum, Quorum | QuorumWithoutLeader),
        elected=bool(session.draft.outcomes),
        rescued=session.draft.rescue is not None and session.draft.rescue.restored is None,
        quorum=None if view.health is None else view.health.quorum.state,
    )


class KeyActions:
    """``handlers`` returns every action of the registry by its name, and is called by the first key; ``context``
    returns the current state. ``clear`` removes a message if it is shown.
    """

    def __init__(
        self,
        handlers: Callable[[], Handlers],
        context: Callable[[], ActionContext],
        say: Say,
        clear: Callable[[str], None],
    ) -> None:
        self._handlers = handlers
        self.context = context
        self._say = say
        self._clear = clear
        self._refused = ""

    def all(self) -> Iterator[tuple[Action, str]]:
        """Every action with the reason why it is disabled, "" if it works."""
        context = self.context()
        yield from ((as_it_stands(action, context), why_not(action, context)) for action in KEYS)

    def why_not(self, name: str) -> str:
        """Why that action's key is disabled now; "" if it works."""
        return why_not(BY_NAME[name], self.context())

    def act(self, name: str) -> None:
        """A key was pressed, or a command chosen."""
        why = self.why_not(name)
        # Why the key before did nothing may not be true of the pane that this one opens.
        self._clear(self._refused)
        self._refused = why
        if why:
            self._say(why, Tone.WARN)
        else:
            self._handlers()[name]()


class Quit:
    """Leaves at once; if something would be lost, only at the second key press in a row. ``leave`` ends the
    console.
    """

    def __init__(
        self, draft: Callable[[], Draft], busy: Callable[[], str], say: Say, leave: Callable[[], None]
    ):
        self._draft = draft
        self._busy = busy
        self._say = say
        self._leave = leave
        self._asked = False

    def other_key(self, name: str) -> None:
        """Another key in between cancels the first one."""
        self._asked = self._asked and name == "quit"

    def quit(self) -> None:
        draft, busy = self._draft(), self._busy()
        unsaved = draft.plan is not None and draft.file is None and not draft.outcomes
        if (unsaved or busy) and not self._asked:
            self._asked = True
            why = f"{busy} is under way" if busy else "the plan is not saved (w saves it)"
            self._say(f"{why}; q once more leaves", Tone.WARN)
            return
        self._leave()
