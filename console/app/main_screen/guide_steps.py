"""What to press, for somebody who is new to the console: a few lines above the footer, one step at a time."""

from __future__ import annotations

from console.app.session.draft import Draft, DraftRescue
from console.app.session.safety import Safety
from console.app.session.view import View
from console.operations.registry import OFFLINE, PLAN, REPLICAS
from recovery.wording.quantity_text import ids
from widgets.plan.plan_text import ACKS_REFUSED


def step(pane: str, view: View, draft: Draft, safety: Safety) -> str:
    """The next key to press in the current state; it never runs ahead of what was done."""
    if view.at is None:
        return "Guide: the cluster is being read."
    if draft.outcomes and all(outcome.good for outcome in draft.outcomes.values()):
        return _after(view, draft, safety)
    if draft.plan is not None and draft.plan.rows:
        return _planned(pane, safety)
    if view.health is not None and not view.health.current:
        return _CUT_OFF if view.health.cut_off is not None else _NO_QUORUM
    return _choosing(pane) if view.offline else _NOTHING


_NO_QUORUM = "Guide: no controller that leads can be reached. Press 4 to see which controllers answer."
_CUT_OFF = (
    "Guide: the broker that answers is cut off from the controllers. Press 4, and look at its network first."
)

_NOTHING = "Guide: nothing is offline. Press 4 for the quorum, 5 for the disks, ? for every key."


def _after(view: View, draft: Draft, safety: Safety) -> str:
    if view.offline:
        return "Guide: elected. r reads the cluster again, V verifies the result."
    under = _under_min_isr(view, draft)
    if under:
        return f"Guide: elected; {under}: {ACKS_REFUSED}. r reads the cluster again, V verifies the result."
    if draft.rescue is not None:
        return _rescued(draft.rescue, armed=safety.armed)
    return "Guide: recovered. J shows the journal, Y copies the command line of what you see, q leaves."


def _rescued(rescue: DraftRescue, *, armed: bool) -> str:
    offsets, kept, restored = rescue.offsets, rescue.kept, rescue.restored
    if restored is None:
        arm = "" if armed else "Press A to arm the console, then "
        press = f"{arm}press B" if arm else "Press B"
        return (
            f"Guide: elected, and the {offsets:,} offsets that this cut off are saved. {press} to write them back"
            " behind what is there now."
        )
    there = kept + restored
    if restored != offsets:
        return f"Guide: {restored:,} records of the {offsets:,} rescued offsets are there again. q leaves."
    apart = f"{kept:,} on the new leader, {restored:,} written back"
    found = f"{there:,} of {kept + offsets:,} records are there ({apart})"
    if rescue.unread:
        return f"Guide: {found}. What only {ids(rescue.unread)} holds is not known. q leaves."
    return f"Guide: nothing is lost: {found}. J shows the journal, q leaves."


def _under_min_isr(view: View, draft: Draft) -> str:
    """The first of the plan's partitions that has a leader and too few in-sync replicas; "" if none is known."""
    for state in view.troubled:
        survey = view.surveys.get(state.tp) if state.tp in draft.partitions else None
        least = None if survey is None else survey.min_isr
        if isinstance(least, int) and len(state.isr) < least:
            return f"{state.tp} has ISR {len(state.isr)} of min ISR {least}"
    return ""


def _planned(pane: str, safety: Safety) -> str:
    if pane != PLAN:
        return "Guide: the row is in the plan. Press 6 to review what it would lose."
    if not safety.armed:
        return "Guide: e designates another leader, R shows the requests. Press A to arm the console."
    return "Guide: press X to apply. You will be asked once more; Esc always leads back."


def _choosing(pane: str) -> str:
    if pane == OFFLINE:
        return "Guide: a partition has no leader. Press Enter to see what each replica still has."
    if pane == REPLICAS:
        return (
            "Guide: what each choice cuts off is drawn below, and pane 1 says what to do first and why. Waiting is"
            " not always safe: a broker that returns may be elected at once with a shorter log. Press c to choose."
        )
    return "Guide: press 1 for the offline partitions, and Enter there to see one."
