"""What the keys of the main screen lead to: the other panes, the dialogs, the tasks.

This is more than a third of the console's modules, and the first frame needs none of them. So this module is
imported once that frame is drawn (``MainScreen.parts``), not at start-up. What only a key needs is imported here,
or from here, and by no other module of the main screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from textual.screen import Screen
from textual.worker import Worker

from console.app.base.confirmed_change import ChangeSender
from console.app.base.copy_and_export import CopyAndExport
from console.app.base.navigation import Navigation
from console.app.base.progress import TaskProgress
from console.app.base.record_screen import RecordScreen
from console.app.base.running_task import RunningTask
from console.app.base.screen_calls import Ask, Handlers, OpenScreen, Say
from console.app.main_screen.explanations import Explanations
from console.app.main_screen.key_actions import ActionContext
from console.app.main_screen.pane_views import PaneSources, how_to_plan, other_panes, update_pane
from console.app.main_screen.partition_search import PartitionSearch
from console.app.session.session import Session
from console.change.registry import PANES, PLAN, QUORUM, Action
from console.jobs.disks.disk_evidence_key import DiskEvidenceKey
from console.jobs.disks.log_dir_detail import LogDirDetails
from console.jobs.disks.start_swap import StartSwap
from console.jobs.elect.applier import Applier
from console.jobs.elect.plan_pane import PlanPane
from console.jobs.elect.planner import Planner
from console.jobs.heal.broker_healer import BrokerHealer
from console.jobs.incident.record_keys import RecordKeys
from console.jobs.rescue.record_restorer import RecordRestorer
from console.jobs.timeline.timeline_feed import TimelineFeed
from console.program import Program
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import TopicPartition
from recovery.wording.lost_quorum_text import guide_lines
from widgets.base_pane import Pane
from widgets.table import RowTable

if TYPE_CHECKING:
    from console.jobs.quorum.wizard_screens.start_replacement import StartReplacement


class KeyParts:
    """``pane_of`` gives a pane by its key, ``table`` that of the open pane, ``cursor`` the partition that it shows,
    ``command_line`` the command that shows the same. ``actions``: every action with why it does nothing now.
    ``clipboard`` puts a text on the terminal's clipboard, ``push`` opens a screen. ``find`` and ``follow`` run a
    coroutine, ``find`` instead of the one before.
    """

    def __init__(
        self,
        session: Session,
        say: Say,
        ask: Ask,
        tasks: RunningTask,
        *,
        program: Program,
        progress: TaskProgress,
        navigation: Navigation,
        pane_of: Callable[[str], Pane],
        table: Callable[[], RowTable[Any]],
        cursor: Callable[[], TopicPartition | None],
        command_line: Callable[[], str],
        actions: Callable[[], Iterable[tuple[Action, str]]],
        clipboard: Callable[[str], None],
        push: Callable[[Screen[Any]], object],
        open_screen: OpenScreen,
        open_palette: Callable[[], object],
        find: Callable[[Any], Worker[None]],
        follow: Callable[[Any], Worker[None]],
        redraw: Callable[[], None],
    ) -> None:
        def show_requests(shown: bool) -> None:
            pane = pane_of(PLAN)
            assert isinstance(pane, PlanPane)
            pane.show_requests(shown)

        shared = (session, say, ask, tasks)
        self._shared = shared
        self._program = program
        self._navigation = navigation
        self._table = table
        self._cursor = cursor
        self._progress = progress
        self._open_screen = open_screen
        sender = ChangeSender(session, tasks, progress, program)
        self.planner = Planner(
            *shared,
            progress=progress,
            navigation=navigation,
            table=table,
            show_requests=show_requests,
            open_screen=open_screen,
        )
        self.search = PartitionSearch(
            session, say, ask, tasks.begin, navigation=navigation, table=table, start=find
        )
        self.log_dir = LogDirDetails(session, say, redraw)
        self.timeline = TimelineFeed(session, follow, redraw)
        copies = CopyAndExport(
            say,
            ask,
            tasks.begin,
            open_pane=lambda: (PANES[navigation.pane], pane_of(navigation.pane)),
            command_line=command_line,
            clipboard=clipboard,
        )
        self._disks = StartSwap(
            session, ask, cursor_key=lambda: table().cursor_key, choose=self.planner.choose_first
        )
        self._with_keys = (
            self.planner,
            Applier(*shared, progress=progress, program=program),
            RecordRestorer(*shared, progress=progress, sender=sender),
            BrokerHealer(*shared, lambda: table().cursor_key, progress=progress, sender=sender),
            RecordKeys(session, tasks, progress=progress, open_screen=open_screen),
            self.search,
            copies,
            DiskEvidenceKey(*shared),
            Explanations(session, actions=actions, cursor=cursor, push=push, open_palette=open_palette),
        )

    @cached_property
    def _controllers(self) -> StartReplacement:
        from console.jobs.quorum.wizard_screens.screen import WizardScreen  # noqa: PLC0415  # slow, seldom needed
        from console.jobs.quorum.wizard_screens.start_replacement import StartReplacement  # noqa: PLC0415

        session, say, ask, tasks = self._shared
        return StartReplacement(
            session,
            ask,
            cursor_key=lambda: self._table().cursor_key,
            wizard_screen=lambda planned: WizardScreen(session, tasks, self._program, say, planned),
            open_screen=self._open_screen,
        )

    def panes(self) -> tuple[Pane, ...]:
        """Every pane but the first."""
        return other_panes()

    def draw(self, pane: Pane, context: ActionContext) -> None:
        """Hands one of these panes what it shows now."""
        session, *_, tasks = self._shared
        sources = PaneSources(
            session,
            self._cursor(),
            self._progress.batches if tasks.busy else None,
            how_to_plan(context),
            self.log_dir.shown,
            self.timeline.view,
        )
        update_pane(pane, sources)

    def handlers(self) -> Handlers:
        keys = {name: handler for part in self._with_keys for name, handler in part.handlers().items()}
        return {**keys, "replace": self._replace}

    def _replace(self) -> None:
        *_, tasks = self._shared
        quorum = self._shared[0].view.quorum
        if self._navigation.pane == QUORUM and isinstance(quorum, QuorumWithoutLeader):
            guide = RecordScreen("No leader: the ways back", tuple(guide_lines(quorum)))
            tasks.begin("showing the ways back", self._shown(guide))
        elif self._navigation.pane == QUORUM:
            tasks.begin("planning a replacement", self._controllers.replace())
        else:
            tasks.begin("replacing a disk", self._disks.swap())

    async def _shown(self, screen: RecordScreen) -> None:
        await self._open_screen(screen)
