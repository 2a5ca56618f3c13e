"""The keys of a plan: it is made, changed, applied; records are written back and replicas healed afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.app.main_screen.navigation import Navigation
from console.app.main_screen.running_task import RunningTask
from console.app.plan.applier import Applier
from console.app.plan.broker_healer import BrokerHealer
from console.app.plan.confirmed_change import ChangeSender
from console.app.plan.planner import Planner
from console.app.plan.progress import TaskProgress
from console.app.plan.record_restorer import RecordRestorer
from console.app.screen_calls import Ask, Handlers, OpenScreen, Say
from console.app.session.session import Session
from console.program import Program
from widgets.table import RowTable


class PlanKeys:
    """``table`` is that of the open pane; ``show_requests`` shows, or hides, the requests of the plan."""

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
        table: Callable[[], RowTable[Any]],
        show_requests: Callable[[bool], None],
        open_screen: OpenScreen,
    ) -> None:
        shared = (session, say, ask, tasks)
        sender = ChangeSender(session, tasks, progress, program)
        self.planner = Planner(
            *shared,
            progress=progress,
            navigation=navigation,
            table=table,
            show_requests=show_requests,
            open_screen=open_screen,
        )
        self._parts = (
            self.planner,
            Applier(*shared, progress=progress, program=program),
            RecordRestorer(*shared, progress=progress, sender=sender),
            BrokerHealer(*shared, lambda: table().cursor_key, progress=progress, sender=sender),
        )

    def handlers(self) -> Handlers:
        return {name: handler for part in self._parts for name, handler in part.handlers().items()}
