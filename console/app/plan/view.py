"""The plan pane's value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.base.answers import Capabilities
from console.app.main_screen.action_availability import ActionContext, Obstacle, disabled
from console.app.plan.progress import Batches
from console.operations.registry import BY_NAME, OFFLINE
from widgets.plan import BatchProgress, PlanView

if TYPE_CHECKING:
    from console.app.session.session import Session


def how_to_plan(standing: ActionContext) -> str:
    """The keys that lead to a plan, as they are bound, if they work now."""
    choose, load = BY_NAME["choose"], BY_NAME["load"]
    found = disabled(load, standing)
    no_files = found is not None and found.obstacle is Obstacle.NO_FILES
    loads = "" if no_files else f"; {load.shown} loads one from a file"
    return f"{choose.shown} in pane {OFFLINE} chooses for the row under the cursor, or for all marked{loads}"


def native_elections(session: Session) -> bool:
    """Whether the cluster is known to elect the designated leader or nobody."""
    capabilities = session.view.capabilities
    elections = capabilities.designated_elections if isinstance(capabilities, Capabilities) else ""
    return isinstance(elections, str) and "native" in elections


def plan_view(session: Session, batches: Batches | None, how: str) -> PlanView:
    """The draft and the progress of the running task; ``how`` is shown while there is no draft."""
    draft = session.draft
    return PlanView(
        draft.plan,
        draft.checks,
        draft.edited,
        None if draft.file is None else str(draft.file),
        draft.digest,
        None if batches is None or not batches.of else BatchProgress(batches.what, batches.done, batches.of),
        draft.outcomes,
        draft.states,
        native_elections(session),
        how,
    )
