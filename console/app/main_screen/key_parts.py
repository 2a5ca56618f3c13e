"""What the keys of the main screen lead to: the other panes, the dialogs, the tasks.

This is more than a third of the console's modules, and the first frame needs none of them. So this module is
imported once that frame is drawn (``MainScreen.parts``), not at start-up. What only a key needs is imported here,
or from here, and by no other module of the main screen.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from console.app.base.copy_and_export import CopyAndExport
from console.app.base.key_desk import KeyDesk
from console.app.base.question_dialogs import AnswerOption, ChoiceQuestion
from console.app.base.record_screen import RecordScreen
from console.app.base.screen_calls import Handlers
from console.app.main_screen.explanations import Explanations
from console.app.main_screen.key_actions import ActionContext
from console.app.main_screen.pane_views import (
    EligibleRows,
    PaneSources,
    how_to_plan,
    other_panes,
    update_pane,
)
from console.app.main_screen.partition_search import PartitionSearch
from console.change.registry import QUORUM
from console.jobs.disks.disk_evidence_key import DiskEvidenceKey
from console.jobs.disks.log_dir_detail import LogDirDetails
from console.jobs.disks.start_swap import StartSwap
from console.jobs.elect.after_keys import AfterKeys
from console.jobs.elect.applier import Applier
from console.jobs.elect.planner import Planner
from console.jobs.heal.broker_healer import BrokerHealer
from console.jobs.incident.record_keys import RecordKeys
from console.jobs.rescue.record_restorer import RecordRestorer
from console.jobs.timeline.timeline_feed import TimelineFeed
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.wording.after_rebuild_text import standing_lines
from recovery.wording.lost_quorum_text import guide_lines
from widgets.base_pane import Pane

if TYPE_CHECKING:
    from console.jobs.quorum.wizard_screens.start_replacement import StartReplacement


class KeyParts:
    """What the keys do, each part with the desk at hand."""

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk
        self._eligible = EligibleRows()
        self.after = AfterKeys(desk)
        self.planner = Planner(desk, self.after.took)
        self.search = PartitionSearch(desk)
        self.log_dir = LogDirDetails(desk.session, desk.say, desk.redraw)
        self.timeline = TimelineFeed(desk.session, desk.follow, desk.redraw)
        self._disks = StartSwap(desk, self.planner.choose_first)
        self._with_keys = (
            self.planner,
            Applier(desk, self.after.took),
            self.after,
            RecordRestorer(desk),
            BrokerHealer(desk),
            RecordKeys(desk),
            self.search,
            CopyAndExport(desk),
            DiskEvidenceKey(desk),
            Explanations(desk),
        )

    @cached_property
    def _controllers(self) -> StartReplacement:
        from console.jobs.quorum.wizard_screens.screen import WizardScreen  # noqa: PLC0415  # slow, seldom needed
        from console.jobs.quorum.wizard_screens.start_replacement import StartReplacement  # noqa: PLC0415

        desk = self._desk
        return StartReplacement(
            desk.session,
            desk.ask,
            cursor_key=lambda: desk.table().cursor_key,
            wizard_screen=lambda planned, half_done: WizardScreen(
                desk.session, desk.tasks, desk.program, desk.say, planned, half_done=half_done
            ),
            open_screen=desk.open_screen,
        )

    def panes(self) -> tuple[Pane, ...]:
        """Every pane but the first."""
        return other_panes()

    def draw(self, pane: Pane, context: ActionContext) -> None:
        """Hands one of these panes what it shows now."""
        desk = self._desk
        sources = PaneSources(
            desk.session,
            desk.cursor(),
            desk.progress.batches if desk.tasks.busy else None,
            how_to_plan(context),
            self.log_dir.shown,
            self.timeline.view,
            self.after.view,
            self._eligible,
        )
        update_pane(pane, sources)

    def handlers(self) -> Handlers:
        keys = {name: handler for part in self._with_keys for name, handler in part.handlers().items()}
        return {**keys, "replace": self._replace}

    def _replace(self) -> None:
        begin, quorum = self._desk.tasks.begin, self._desk.session.view.quorum
        if self._desk.navigation.pane == QUORUM and self._desk.session.view.after_rebuild is not None:
            begin("showing what comes after the rebuild", self._steps_or_replacement())
        elif self._desk.navigation.pane == QUORUM and isinstance(quorum, QuorumWithoutLeader):
            guide = RecordScreen(
                "No leader: the ways back", tuple(guide_lines(quorum, self._desk.session.target.command))
            )
            begin("showing the ways back", self._shown(guide))
        elif self._desk.navigation.pane == QUORUM:
            begin("planning a replacement", self._controllers.replace())
        else:
            begin("replacing a disk", self._disks.swap())

    async def _steps_or_replacement(self) -> None:
        """After a rebuild the steps that follow it come first."""
        session = self._desk.session
        after = session.view.after_rebuild
        steps, replacement = "steps", "replacement"
        answers = [
            AnswerOption(steps, "the steps after the rebuild of the quorum, and what is seen of them"),
            AnswerOption(replacement, "add or replace a controller, step by step"),
        ]
        answer = await self._desk.ask(ChoiceQuestion("What next?", answers))
        if answer == replacement:
            await self._controllers.replace()
        elif answer == steps and after is not None:
            lines = tuple(standing_lines(after, session.target.command))
            await self._shown(RecordScreen("After the rebuild", lines))

    async def _shown(self, screen: RecordScreen) -> None:
        await self._desk.open_screen(screen)
