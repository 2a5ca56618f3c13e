"""Runs the action of a key or palette command, or says why it is disabled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from backends.base.answers import Capabilities
from console.app.main_screen.action_availability import ActionContext, as_it_stands, why_not
from console.app.main_screen.screen_calls import Handlers, Say
from console.app.session.draft import Draft
from console.app.session.session import Session
from console.operations.registry import BY_NAME, KEYS, Action
from recovery.membership.quorum import Quorum
from widgets.text import Tone


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
        None if view.quorum is None else isinstance(view.quorum, Quorum),
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
