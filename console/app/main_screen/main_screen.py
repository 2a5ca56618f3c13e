"""The main screen: nine panes on one view of the cluster, and the bars around them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from textual import on
from textual.worker import Worker

from console.app.base.navigation import Navigation
from console.app.base.progress import TaskProgress
from console.app.base.question_dialogs import ChoiceQuestion
from console.app.base.running_task import RunningTask
from console.app.base.screen_calls import Handlers, Owner
from console.app.base.table_actions import OpenTable, TableActions, row_gone_text
from console.app.main_screen.bars import BarsView, doubt, draw_bars, short_name
from console.app.main_screen.equivalent_command import session_command
from console.app.main_screen.key_actions import KeyActions, Quit, context_of
from console.app.main_screen.key_footer import KeyFooter
from console.app.main_screen.offline_view import update_offline
from console.app.main_screen.panes_screen import PanesScreen
from console.app.main_screen.session_reports import SessionReports
from console.app.session.session import Opening, Session
from console.app.session.view import Link, View
from console.change.registry import (
    BROKERS,
    ELIGIBLE,
    OFFLINE,
    PANES,
    QUORUM,
    REPLICAS,
    TIMELINE,
    Action,
)
from console.reading.partition_report import ELECTING
from console.reading.partitions_pane import PartitionsPane
from recovery.model import TopicPartition
from recovery.wording.cut_off_text import cut_off_text
from recovery.wording.quantity_text import counted
from widgets.bars.filter_bar import FilterBar
from widgets.bars.message_bars import MessageBar
from widgets.bars.pane_tabs import PaneTabs
from widgets.lifecycle import is_ready, screen_is_open, when_ready
from widgets.table import RowTable
from widgets.text import Tone

if TYPE_CHECKING:
    from console.app.main_screen.key_parts import KeyParts
    from console.jobs.disks.log_dirs_pane import LogDirsPane
    from console.jobs.elect.plan_pane import PlanPane

TICK_SECONDS = 1.0


class MainScreen(PanesScreen):
    """Widgets post what a person did; this screen changes the session; the session's view goes back to the
    widgets.
    """

    def __init__(self, owner: Owner, opening: Opening, *, guide: bool = False, hint: str = "") -> None:
        super().__init__()
        self.owner = owner
        self._guide = guide
        self._hint = hint
        self._other_cluster = False
        self._journal_read = False
        self._doubt = ""
        self._said_at: Hashable | None = None
        self._early: list[Callable[[], object]] | None = []
        self.session = session = Session(opening, self._make_reports())
        self.navigation = Navigation(session.poller.want, self._show_place)
        self.tasks = RunningTask(session, owner, self.say, start=self._start_task, ended=self.redraw)
        self._tables = TableActions(
            lambda: OpenTable(self.pane, self.table),
            lambda: self.query_one(FilterBar),
            self.say,
            self.draw_bars,
        )
        self.progress = TaskProgress(session, self.redraw)
        self._quit = Quit(lambda: session.draft, lambda: self.busy, self.say, owner.leave)
        self._keys = KeyActions(
            lambda: self._handlers,
            lambda: context_of(session, self.pane, self.table.counts.shown, self.busy),
            self.say,
            self.clear_message,
        )

    @cached_property
    def parts(self) -> KeyParts:
        """What the keys do: made once the first frame is drawn, or by a key that was quicker."""
        from console.app.base.key_desk import KeyDesk  # noqa: PLC0415  # after the first frame
        from console.app.main_screen.key_parts import KeyParts  # noqa: PLC0415

        desk = KeyDesk(
            session=self.session,
            say=self.say,
            ask=self.ask,
            tasks=self.tasks,
            program=self.owner.program,
            progress=self.progress,
            navigation=self.navigation,
            pane_of=self.pane_of,
            table=lambda: self.table,
            cursor=lambda: self.cursor,
            command_line=self.command_line,
            actions=self.actions,
            clipboard=self.app.copy_to_clipboard,
            push=self.app.push_screen,
            open_screen=self.open_screen,
            open_palette=self.app.action_command_palette,
            find=lambda job: self.run_worker(job, group="find", exclusive=True),
            follow=partial(self.run_worker, name="timeline", exit_on_error=True),
            redraw=self.redraw,
        )
        return KeyParts(desk)

    def _make_reports(self) -> SessionReports:
        return SessionReports(
            self.say,
            clear=self.clear_message,
            shown=lambda: is_ready(self),
            redraw=self.redraw,
            draw_bars=self.draw_bars,
            clear_marks=self.clear_marks,
            other_cluster=self._on_other_cluster,
            warnings=self._warnings,
            report=self.owner.report,
            disks=lambda: {} if (reading := self.session.view.reading) is None else reading.disks,
            ring=self.app.bell,
        )

    def _warnings(self) -> list[str]:
        """Those from opening the cluster, once. The journal is read, on a thread, once topics and quorum were asked
        for: they tell whose runs it has.
        """
        view = self.session.view
        if view.cluster_id and view.partitions and view.quorum and not self._journal_read:
            self._journal_read = True
            self.run_worker(self._say_unfinished(view), name="unfinished")
        return self.owner.take_warnings()

    async def _say_unfinished(self, view: View) -> None:
        from backends.live.client.daemon_thread import in_daemon_thread  # noqa: PLC0415
        from console.jobs.incident.record_keys import unfinished_text  # noqa: PLC0415  # after the first frame

        resume = self.session.target.command("resume")
        text = await in_daemon_thread(
            partial(unfinished_text, view.cluster_id, view.cluster_marks, resume), "journal"
        )
        if text:
            self.say(text, Tone.WARN)

    def on_mount(self) -> None:
        if not screen_is_open(self):  # removed before it was mounted
            return
        self.set_interval(TICK_SECONDS, self._tick, name="tick")
        self.pane_of(OFFLINE).focus_first()
        self.call_after_refresh(self.redraw)
        # The app draws nothing before it reads its messages: the rest is loaded after the first frame.
        self.app.call_later(self.call_after_refresh, self._load_rest)
        if self._hint:
            self.call_after_refresh(self.say, self._hint, Tone.INFO)

    async def _load_rest(self) -> None:
        """The other panes and all that the keys need. A key that was quicker acts when they are there."""
        if is_ready(self):
            await self.mount_panes(self.parts.panes())
        early, self._early = self._early or [], None
        for call in early:
            if is_ready(self):
                call()

    def _once_loaded(self, call: Callable[[], object]) -> None:
        if self._early is None:
            call()
        else:
            self._early.append(call)

    # What is shown

    @property
    def pane(self) -> str:
        """The key of the open pane."""
        return self.navigation.pane

    @property
    def cursor(self) -> TopicPartition | None:
        """The partition that the panes show."""
        return self.navigation.cursor

    @property
    def busy(self) -> str:
        """The running task; "" for none."""
        return self.tasks.busy

    @property
    def opens_field(self) -> bool:
        """Whether a key that was pressed opens a field which is not there yet."""
        return bool(self._early) or self.tasks.types

    @property
    def table(self) -> RowTable[Any]:
        return self.pane_of(self.pane).table

    def _show_place(self) -> None:
        self.open_pane(self.pane)
        self._tables.close_filter_bar()
        self.parts.timeline.show(self.pane == TIMELINE)
        self.redraw()
        self.pane_of(self.pane).focus_first()
        self.parts.search.pane_shown()
        self.parts.after.pane_shown()

    def redraw(self) -> None:
        """The open pane and the bars; widgets repaint what changed. Other panes are drawn once they are opened."""
        if is_ready(self):
            self._draw_pane()
            self.draw_bars()

    def _draw_pane(self) -> None:
        self._doubt = doubt(self.session)
        pane = self.pane_of(self.pane)
        if isinstance(pane, PartitionsPane):
            update_offline(pane, self.session)
        else:
            self._select_first()
            self.parts.draw(pane, self._keys.context())

    def _select_first(self) -> None:
        """Selects the worst partition if this pane was opened before the first answer; pane 1 does it by itself."""
        rows = self.session.rows.partitions
        if self.cursor is None and rows and not self._other_cluster:
            self.navigation.select(rows[0].state.tp)

    def draw_bars(self) -> None:
        """Updates the bars around the panes."""
        if not is_ready(self):
            return
        session, pane = self.session, self.pane
        if doubt(session) != self._doubt:
            self._draw_pane()  # the data has become too old, or the cluster was lost
        guide = self._guide_text() if self._guide else None
        trail = self.navigation.trail(short_name(session.target))
        draw_bars(
            self,
            session,
            BarsView(pane, trail, self.table, self.command_line(), tuple(self.actions()), guide),
        )
        self.pane_of(pane).fade(session.poller.state.link is Link.LOST)

    def _guide_text(self) -> str:
        from console.app.main_screen.guide_steps import GuideState, step  # noqa: PLC0415  # seldom needed

        now, asking, why_not = self.session, self.app.screen is not self, self._keys.why_not
        above, ranking = self.app.screen, now.choosing.ranking
        choice = above.answers_text if isinstance(above, ChoiceQuestion) else ""
        steps = now.rows.counts.steps
        state = GuideState(
            self.pane, asking, now.view, now.draft, now.safety, why_not, self.cursor, ranking, choice
        )
        return step(state._replace(elects=not steps or steps[0].advice.kind in ELECTING))

    def command_line(self) -> str:
        """The command that shows what the open pane shows."""
        return session_command(self.session, self.pane, self.cursor, self.table.marks)

    # Called by its parts

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """One message at the bottom."""
        if is_ready(self):
            self._said_at = self.table.cursor_key
        super().say(text, tone)

    def _start_task(self, job: Any, name: str) -> Worker[None]:
        return self.run_worker(job, name=name, exit_on_error=True)

    def _on_other_cluster(self) -> None:
        self.navigation.cursor = None
        self.parts.search.forget()
        self.parts.after.forget()
        self._other_cluster = True

    def _tick(self) -> None:
        self.session.tick()
        self.draw_bars()

    # Actions

    def actions(self) -> Iterator[tuple[Action, str]]:
        """Every action with why it does nothing now, "" where it works."""
        return self._keys.all()

    def act(self, name: str) -> None:
        """A key was pressed, or a command chosen."""
        if self.owner.is_leaving() or not is_ready(self):
            return
        self._once_loaded(partial(self._act, name))

    def _act(self, name: str) -> None:
        if name != "back" and self.tasks.withholds():
            return
        self._other_cluster = False
        self._quit.other_key(name)
        self.table.touched()
        self._keys.act(name)
        self.draw_bars()

    @cached_property
    def _handlers(self) -> Handlers:
        go = self.navigation.go
        return {
            **self._tables.handlers(),
            **self.parts.handlers(),
            **{f"pane{pane}": partial(go, pane) for pane in PANES},
            "back": self._step_back,
            "others": lambda: self.tasks.begin("listing", self._others(), asks=False),
            "dismiss": self._dismiss,
            "clusters": self.owner.pick,
            "quit": self._quit.quit,
            "theme": self.app.action_change_theme,
            "refresh": self.session.poller.ask,
            "pause": self.session.poller.toggle_pause,
        }

    def _step_back(self) -> None:
        if not self.tasks.stop() and not self._tables.clear_filter():
            self.navigation.back()

    def _dismiss(self) -> None:
        lost = self.session.dismiss_losses()
        nothing = "no election of others cut offsets off; d drops a row of the plan in pane 6"
        self.say(f"dismissed: what {counted(lost, 'partition')} lost" if lost else nothing, Tone.INFO)

    async def _others(self) -> None:
        session = self.session
        await session.choose_by(session.choosing, others=not session.others)
        self.say("all partitions" if session.others else "only what is offline or under min ISR")

    # What the widgets post

    @on(RowTable.CursorMoved)
    @when_ready
    def _cursor_moved(self, event: RowTable.CursorMoved) -> None:
        key = event.key if event.table is self.table else None
        moved = event.by_hand and event.key != self._said_at
        if event.table is self.table and moved and self.table.shows(self._said_at):
            self.query_one(MessageBar).clear_error()
        if isinstance(key, TopicPartition) and self.navigation.select(key):
            self.draw_bars()

    @on(RowTable.Activated)
    @when_ready
    def _activated(self, event: RowTable.Activated) -> None:
        if self.pane in (OFFLINE, ELIGIBLE) and isinstance(event.key, TopicPartition):
            self._once_loaded(partial(self.navigation.go, REPLICAS, event.key, drill=True))
        elif self.pane == REPLICAS and isinstance(event.key, int):
            self.say("c chooses a leader, and shows what each would lose", Tone.INFO)
        elif self.pane in (QUORUM, BROKERS):
            self.say("what is known of the row is below the table; Tab leads there", Tone.INFO)

    @on(RowTable.RowGone)
    @when_ready
    def _row_gone(self, event: RowTable.RowGone) -> None:
        if event.table is self.table and not self._other_cluster:
            view = self.session.view
            states = () if view.partitions is None else view.partitions.states
            cut_off = () if view.reading is None else view.reading.cut_off
            up = {broker.id for broker in view.brokers.values() if not broker.fenced}
            lost = next((cut_off_text(one, up) for one in cut_off if one.tp == event.key), "")
            text = row_gone_text(event, states, self.table.counts.shown, lost)
            # It takes the place of what was said after the election, and so repeats what is left to do.
            left = f" {left_to_do}." if (left_to_do := str(self.session.left_to_do)) else ""
            self.say(f"{text}{left}", Tone.WARN)

    @on(RowTable.MarksGone)
    @when_ready
    def _marks_gone(self, event: RowTable.MarksGone) -> None:
        if not self._other_cluster:
            self.say(f"no longer in this list: {counted(len(event.keys), 'marked row')}", Tone.WARN)

    @on(RowTable.MarksChanged)
    @when_ready
    def _marks_changed(self) -> None:
        self.draw_bars()

    @on(PaneTabs.TabClicked)
    @when_ready
    def _tab_clicked(self, event: PaneTabs.TabClicked) -> None:
        self._once_loaded(partial(self.navigation.go, event.key))

    @on(KeyFooter.KeyClicked)
    @when_ready
    def _key_clicked(self, event: KeyFooter.KeyClicked) -> None:
        self.act(event.name)

    # Those of the panes that are imported later, by Textual's names.

    @when_ready
    def on_plan_pane_edit_requested(self, event: PlanPane.EditRequested) -> None:
        self.parts.planner.edit(event.tp)

    @when_ready
    def on_log_dirs_pane_detail_requested(self, event: LogDirsPane.DetailRequested) -> None:
        load = partial(self.parts.log_dir.load, event.broker, event.path)
        _worker: Worker[None] = self.run_worker(load, group="detail", exclusive=True)

    @on(FilterBar.FilterChanged)
    @when_ready
    def _filter_changed(self, event: FilterBar.FilterChanged) -> None:
        self._tables.filter_by(event.filter)

    @on(FilterBar.FilterBarClosed)
    @when_ready
    def _filter_bar_closed(self) -> None:
        self.pane_of(self.pane).focus_first()
