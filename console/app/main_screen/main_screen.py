"""The main screen: six panes on one view of the cluster, and what surrounds them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import ContentSwitcher
from textual.worker import Worker

from backends.base.answers import Capabilities
from backends.base.errors import BackendError
from console.app.controller_replacement.choosing import Controllers
from console.app.main_screen import bars, pane_views
from console.app.main_screen.action_availability import ActionContext, as_it_stands, why_not
from console.app.main_screen.copy_and_export import CopyAndExport
from console.app.main_screen.equivalent_command import command_line
from console.app.main_screen.help_sections import sections
from console.app.main_screen.key_footer import KeyFooter
from console.app.main_screen.log_dir_detail import dir_detail
from console.app.main_screen.running_task import RunningTask
from console.app.main_screen.table_actions import TableActions
from console.app.owner import Owner
from console.app.plan.planner import Planner
from console.app.session.draft import Draft
from console.app.session.moves import Moves, Place
from console.app.session.session import Session
from console.app.session.view import Wanted
from console.operations.keys import BY_NAME, DIRS, ELIGIBLE, KEYS, OFFLINE, PANES, PLAN, REPLICAS, KeyAction
from recovery.membership.quorum import Quorum
from recovery.model import TopicPartition
from widgets.bars.filter_bar import FilterBar
from widgets.bars.message_bars import CommandBar, MessageBar
from widgets.bars.pane_tabs import Crumbs, PaneTabs
from widgets.bars.title_bar import TitleBar
from widgets.base_pane import Pane
from widgets.dialogs.help_screen import HelpScreen
from widgets.eligible import EligiblePane
from widgets.lifecycle import is_ready, screen_is_open, when_ready
from widgets.log_dirs import LogDirDetail, LogDirsPane
from widgets.partitions import PartitionsPane
from widgets.plan import PlanPane
from widgets.quorum import QuorumPane
from widgets.replicas import ReplicasPane
from widgets.table import RowTable
from widgets.text import Tone

TICK_SECONDS = 1.0


class MainScreen(Screen[None]):
    """Widgets tell it what a person did; it changes the session; the session's view goes back to the widgets."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, owner: Owner, *, guide: bool = False) -> None:
        super().__init__()
        self.owner = owner
        self._session: Session | None = None
        self.guide = guide
        self.moves = Moves(Place(OFFLINE, None))
        self.cursor: TopicPartition | None = None
        self.tasks = RunningTask(self)
        self.dir_shown: LogDirDetail | None = None
        self._quit_asked = False
        self._told = ""
        self._told_lapse = ""
        self._other_cluster = False
        self.tables = TableActions(self)
        self.planner = Planner(self)
        self.takeaway = CopyAndExport(self)
        self.controllers = Controllers(self)

    def of(self, session: Session) -> None:
        """The session that is shown; given before the screen is."""
        self._session = session

    @property
    def busy(self) -> str:
        """What is under way, "" for nothing."""
        return self.tasks.busy

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    def compose(self) -> ComposeResult:
        yield TitleBar(id="title")
        yield PaneTabs(id="tabs")
        yield Crumbs(id="crumbs")
        with ContentSwitcher(initial=f"pane-{OFFLINE}", id="panes"):
            yield PartitionsPane(id=f"pane-{OFFLINE}")
            yield ReplicasPane(id=f"pane-{REPLICAS}")
            yield EligiblePane(id=f"pane-{ELIGIBLE}")
            yield QuorumPane(id="pane-4")
            yield LogDirsPane(id=f"pane-{DIRS}")
            yield PlanPane(id=f"pane-{PLAN}")
        with Vertical(id="foot"):
            yield FilterBar(id="filter")
            yield CommandBar(id="command")
            yield MessageBar(id="say")
            yield KeyFooter(id="footer")

    def on_mount(self) -> None:
        if not screen_is_open(self):  # taken away before it had its parts
            return
        self.set_interval(TICK_SECONDS, self._tick, name="tick")
        self.pane_of(OFFLINE).focus_first()
        self.call_after_refresh(self.redraw)

    # What is shown

    @property
    def pane(self) -> str:
        return self.moves.here.pane

    def pane_of(self, pane: str) -> Pane:
        return self.query_one(f"#pane-{pane}", Pane)

    @property
    def table(self) -> RowTable[Any]:
        return self.pane_of(self.pane).table

    def go(self, pane: str, key: TopicPartition | None = None, *, drill: bool = False) -> None:
        """To another pane; ``drill``: Esc leads back to this one."""
        if key is not None:
            self.cursor = key
        self.moves = self.moves.to(Place(pane, key, drill))
        self._show_place()

    def back(self) -> None:
        self.moves = self.moves.back()
        self._show_place()

    def _show_place(self) -> None:
        self.query_one("#panes", ContentSwitcher).current = f"pane-{self.pane}"
        self.tables.follow_filter()
        self.redraw()
        self.pane_of(self.pane).focus_first()
        self.ask_what_is_shown()

    def ask_what_is_shown(self) -> None:
        """The logs of the partition under the cursor, all the way down where they are drawn."""
        shown = frozenset() if self.cursor is None else frozenset({self.cursor})
        deep = self.cursor if self.pane == REPLICAS else None
        self.session.poller.want(Wanted(shown, deep, self.pane in (DIRS, ELIGIBLE)))

    def redraw(self) -> None:
        """Everything that is seen now; widgets repaint what changed."""
        if not is_ready(self) or self._session is None:
            return
        pane_views.update(self)
        self.draw_frame()

    def draw_frame(self) -> None:
        """What surrounds the pane_views."""
        if is_ready(self):
            bars.draw(self)

    def command_line(self) -> str:
        session = self.session
        marked = [key for key in self.table.marks if isinstance(key, TopicPartition)]
        return command_line(
            session.target,
            self.pane,
            cursor=self.cursor,
            marked=sorted(marked),
            rows=session.rows,
            draft=session.draft,
        )

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """One line at the bottom."""
        if is_ready(self):
            self.query_one(MessageBar).say(text, tone)

    # What can be done

    def standing(self) -> ActionContext:
        session = self.session
        capabilities = session.view.capabilities
        return ActionContext(
            self.pane,
            session.safety,
            session.poller.state.link,
            session.view.cluster,
            len(session.draft.partitions),
            self.table.counts.shown,
            self.busy,
            capabilities.designated_elections if isinstance(capabilities, Capabilities) else capabilities,
            isinstance(session.view.quorum, Quorum),
        )

    def actions(self) -> Iterator[tuple[KeyAction, str]]:
        """Every action with why it does nothing now, "" where it works."""
        standing = self.standing()
        yield from ((as_it_stands(action, standing), why_not(action, standing)) for action in KEYS)

    def act(self, name: str) -> None:
        """A key was pressed, or a command chosen."""
        action = BY_NAME[name]
        if self.owner.is_leaving() or not is_ready(self):
            return
        self._other_cluster = False
        self._quit_asked = self._quit_asked and name == "quit"
        why = why_not(action, self.standing())
        if why:
            self.say(why, Tone.WARN)
            return
        self._handlers()[name]()
        self.draw_frame()

    def _handlers(self) -> dict[str, Callable[[], None]]:
        return {
            **self.tables.handlers(),
            **self.planner.handlers(),
            **self.takeaway.handlers(),
            **self.controllers.handlers(),
            **{f"pane{pane}": lambda pane=pane: self.go(pane) for pane in PANES},  # type: ignore[misc]  # mypy and defaults of lambdas
            "back": self._step_back,
            "others": lambda: self.work("listing", self._others()),
            "help": self._help,
            "palette": self.app.action_command_palette,
            "clusters": self.owner.pick,
            "quit": self._quit,
            "open": self._open,
            "refresh": self._refresh,
            "pause": self.session.poller.toggle_pause,
        }

    def _step_back(self) -> None:
        if self.tasks.stop():
            return
        if self.tables.clear_filter():
            return
        self.back()

    def _open(self) -> None:
        self.table.action_activate()

    async def _others(self) -> None:
        session = self.session
        await session.choose_by(session.choosing, others=not session.others)
        self.say("all partitions" if session.others else "only what is offline or under min ISR")

    def _help(self) -> None:
        self.app.push_screen(HelpScreen(sections(self.actions())))

    def _quit(self) -> None:
        draft = self.session.draft
        unsaved = draft.plan is not None and draft.file is None and not draft.outcomes
        if (unsaved or self.busy) and not self._quit_asked:
            self._quit_asked = True
            why = f"{self.busy} is under way" if self.busy else "the plan is not saved (w saves it)"
            self.say(f"{why}; q once more leaves", Tone.WARN)
            return
        self.owner.leave()

    def _refresh(self) -> None:
        self.session.poller.ask()

    def work(self, busy: str, job: Coroutine[Any, Any, None]) -> None:
        """One piece of work at a time (:class:`console.app.main_screen.running_task.Work`)."""
        self.tasks.begin(busy, job)

    # What the session tells (console.app.session.session.Listener)

    def view_changed(self) -> None:
        self.redraw()
        warnings, self.owner.warnings = self.owner.warnings, []
        if warnings and is_ready(self):
            self.say("; ".join(warnings), Tone.WARN)

    def state_changed(self) -> None:
        if not is_ready(self):
            return
        self.draw_frame()
        state, lapsed = self.session.poller.state, self.session.safety.lapsed
        if state.problem and state.problem != self._told:
            self.say(state.problem, Tone.BAD)
        elif lapsed and lapsed != self._told_lapse:
            self.say(f"read-only again: {lapsed}. A arms it", Tone.WARN)
        self._told, self._told_lapse = state.problem, lapsed

    def cluster_changed(self, before: str) -> None:
        if not is_ready(self):
            return
        for pane in PANES:
            self.pane_of(pane).table.clear_marks()
        self.cursor = None
        self._other_cluster = True
        self._told_lapse = self.session.safety.lapsed
        now = self.session.view.cluster_id
        self.say(f"another cluster answers: {now}, it was {before}; marks and plan are gone", Tone.BAD)

    def reconnected(self, dropped: Draft) -> None:
        if not is_ready(self):
            return
        marked = sum(len(self.pane_of(pane).table.marks) for pane in PANES)
        for pane in PANES:
            self.pane_of(pane).table.clear_marks()
        self.redraw()
        if marked or dropped.plan is not None:
            kept = "" if dropped.file is None else f"; o loads it again from {dropped.file}"
            self.say(f"the cluster was lost and is back: marks and plan are gone{kept}", Tone.WARN)

    def failed(self, error: Exception) -> str:
        told = self.owner.report(error)
        self.say(told, Tone.BAD)
        return told

    def _tick(self) -> None:
        self.session.tick()
        self.draw_frame()

    # What the widgets tell

    @on(RowTable.CursorMoved)
    @when_ready
    def _moved(self, event: RowTable.CursorMoved) -> None:
        if event.table is self.table and isinstance(event.key, TopicPartition) and event.key != self.cursor:
            self.cursor = event.key
            self.ask_what_is_shown()
            self.draw_frame()

    @on(RowTable.Activated)
    @when_ready
    def _activated(self, event: RowTable.Activated) -> None:
        if self.pane in (OFFLINE, ELIGIBLE) and isinstance(event.key, TopicPartition):
            self.go(REPLICAS, event.key, drill=True)
        elif self.pane == REPLICAS and isinstance(event.key, int):
            self.say("c chooses a leader, and shows what each would lose", Tone.INFO)

    @on(RowTable.RowGone)
    @when_ready
    def _gone(self, event: RowTable.RowGone) -> None:
        if event.table is self.table and not self._other_cluster:
            self.say(
                f"{event.key} is no longer in this list; the cursor is on {event.now or 'nothing'}", Tone.WARN
            )

    @on(RowTable.MarksGone)
    @when_ready
    def _marks_gone(self, event: RowTable.MarksGone) -> None:
        if not self._other_cluster:
            self.say(f"{len(event.keys):,} marked rows are no longer in this list", Tone.WARN)

    @on(RowTable.MarksChanged)
    @when_ready
    def _marks(self) -> None:
        self.draw_frame()

    @on(PaneTabs.TabClicked)
    @when_ready
    def _tab(self, event: PaneTabs.TabClicked) -> None:
        self.go(event.key)

    @on(KeyFooter.KeyClicked)
    @when_ready
    def _key_clicked(self, event: KeyFooter.KeyClicked) -> None:
        self.act(event.name)

    @on(PlanPane.EditWanted)
    @when_ready
    def _edit(self, event: PlanPane.EditWanted) -> None:
        self.planner.edit(event.tp)

    @on(LogDirsPane.DetailRequested)
    @when_ready
    def _dir(self, event: LogDirsPane.DetailRequested) -> None:
        found = partial(self._detail, event.broker, event.path)
        _worker: Worker[None] = self.run_worker(found, group="detail", exclusive=True)

    async def _detail(self, broker: int, path: str) -> None:
        session, view = self.session, self.session.view
        try:
            how = session.choosing.ranking
            found = await session.run(lambda backend: dir_detail(backend, view, broker, path, how))
        except BackendError as error:
            self.say(str(error), Tone.BAD)
            return
        self.dir_shown = found
        self.redraw()

    @on(FilterBar.FilterChanged)
    @when_ready
    def _filter(self, event: FilterBar.FilterChanged) -> None:
        self.tables.filter_by(event.filter)

    @on(FilterBar.FilterBarClosed)
    @when_ready
    def _filter_closed(self) -> None:
        self.pane_of(self.pane).focus_first()
