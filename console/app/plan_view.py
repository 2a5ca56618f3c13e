"""The plan pane's value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.base.answers import Capabilities
from console.app.progress import Batches
from widgets.plan import Batch, PlanView

if TYPE_CHECKING:
    from console.app.session import Session


def plan_view(session: Session, batches: Batches | None) -> PlanView:
    """The draft, and how far what is under way has come."""
    draft = session.draft
    capabilities = session.view.capabilities
    elections = capabilities.designated_elections if isinstance(capabilities, Capabilities) else ""
    return PlanView(
        draft.plan,
        draft.checks,
        draft.edited,
        None if draft.file is None else str(draft.file),
        draft.digest,
        None if batches is None or not batches.of else Batch(batches.what, batches.done, batches.of),
        draft.outcomes,
        draft.states,
        isinstance(elections, str) and "native" in elections,
    )
