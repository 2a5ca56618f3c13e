"""The columns of pane 6."""

from __future__ import annotations

from typing import NamedTuple

from recovery.loss import Loss
from recovery.model import Standing, TopicPartition
from recovery.plan.judgement import Judgement, RowDecision
from recovery.plan.successors import STAYS_OFFLINE
from recovery.plan.values import NotElected, PlanRow
from recovery.plan.verify import RowState
from recovery.strategy import DecisionKind
from recovery.wording.loss_text import short_loss
from recovery.wording.quantity_text import ids, printable
from widgets.fields import Field
from widgets.loss_tone import loss_order, loss_tone
from widgets.plan.plan_view import RowOutcome
from widgets.table import Grouping
from widgets.text import Tone


class PlannedRow(NamedTuple):
    """A partition of the plan with all that is known of it; ``row`` is a NotElected where nobody is elected.
    ``native``: the cluster elects the designated leader or nobody.
    """

    row: PlanRow | NotElected
    check: Judgement | None
    edited: bool
    outcome: RowOutcome | None
    state: RowState | None
    native: bool = False

    @property
    def tp(self) -> TopicPartition:
        return self.row.tp

    @property
    def planned(self) -> PlanRow | None:
        return self.row if isinstance(self.row, PlanRow) else None

    @property
    def stale(self) -> bool:
        """Whether the cluster is no longer the one that this row was planned on."""
        return self.check is not None and not self.check.holds


_DECISION_WORDS = {
    RowDecision.SEND: "still true",
    RowDecision.STALE: "STALE",
    RowDecision.ALREADY_ONLINE: "already online",
    RowDecision.OTHER_LEADER: "OTHER LEADER",
    RowDecision.TRY_AGAIN: "TRY AGAIN",
    RowDecision.NOT_POSSIBLE: "NOT POSSIBLE",
}


def status(row: PlannedRow) -> str:
    """The result of the row, or how it compares with the cluster now."""
    if row.outcome is not None:
        return row.outcome.word
    if isinstance(row.row, NotElected):
        return (
            "online" if row.row.verdict is DecisionKind.ALREADY_ONLINE else f"not elected: {row.row.verdict}"
        )
    return "not compared" if row.check is None else _DECISION_WORDS[row.check.decision]


def status_tone(row: PlannedRow) -> Tone:
    if row.outcome is not None:
        return Tone.GOOD if row.outcome.good else Tone.BAD
    if row.planned is None or row.check is None:
        return Tone.DIM
    if row.check.holds:
        return Tone.GOOD
    return Tone.INFO if row.check.decision is RowDecision.ALREADY_ONLINE else Tone.BAD


def leader(row: PlannedRow) -> str:
    if row.planned is None:
        return "-"
    return f"{row.planned.leader} by hand" if row.edited else str(row.planned.leader)


def loses(row: PlannedRow) -> str:
    planned = row.planned
    return "" if planned is None else short_loss(planned.loss, planned.chosen.last_epoch)


def _loses_tone(row: PlannedRow) -> Tone:
    planned = row.planned
    return Tone.DIM if planned is None else loss_tone(planned.loss, planned.chosen.last_epoch)


def _drops_out(row: PlannedRow) -> str:
    if row.planned is None:
        return ""
    successor = row.planned.successor
    if successor is None or row.native:
        return STAYS_OFFLINE
    if successor.standing is Standing.ELECTABLE:
        return f"broker {successor.broker}"
    return f"broker {successor.broker} ({successor.standing})"


def _successor(row: PlannedRow) -> tuple[Loss, int | None] | None:
    """What electing the successor would lose, and the epoch of its log's last record; None where there is none."""
    planned = row.planned
    successor = None if planned is None else planned.successor
    if planned is None or successor is None or row.native:
        return None
    known = planned.candidate(successor.broker)
    return successor.loss, None if known is None else known.last_epoch


def _then_loses(row: PlannedRow) -> str:
    found = _successor(row)
    if found is not None:
        return short_loss(*found)
    return "" if row.planned is None else "nothing more"


def _then_tone(row: PlannedRow) -> Tone:
    found = _successor(row)
    return Tone.DIM if found is None else loss_tone(*found)


def _afterwards(row: PlannedRow) -> str:
    """Led, usable and replicated are three things."""
    state = row.state
    if state is None:
        return ""
    return "complete" if state.complete else "; ".join(state.missing)


def _afterwards_tone(row: PlannedRow) -> Tone:
    return Tone.GOOD if row.state is not None and row.state.complete else Tone.WARN


def note(row: PlannedRow) -> str:
    """What a person has to know of the row beside its figures."""
    if isinstance(row.row, NotElected):
        named = row.row.verdict is DecisionKind.WAIT and row.row.waits_for
        waits = f"wait for {ids(row.row.waits_for)}: " if named else ""
        return printable(waits + row.row.reason)
    if row.outcome is not None and row.outcome.detail:
        return printable(row.outcome.detail)
    if row.check is not None and row.check.detail:
        return printable(row.check.detail)
    return printable(row.row.reason)


COLUMNS: tuple[Field[PlannedRow], ...] = (
    Field("partition", "PARTITION", lambda r: str(r.tp), sort=lambda r: r.tp, tone=Tone.STRONG, flex=True),
    Field("now", "NOW", status, tone=status_tone),
    Field(
        "leader",
        "LEADER",
        leader,
        sort=lambda r: -1 if r.planned is None else r.planned.leader,
        tone=lambda r: Tone.KEY if r.edited else Tone.STRONG,
    ),
    Field(
        "loses",
        "OFFSETS LOST",
        loses,
        sort=lambda r: loss_order(r.planned.loss if r.planned else None),
        tone=_loses_tone,
    ),
    Field("dropsOut", "IF IT DROPS OUT", _drops_out, priority=3),
    Field("thenLoses", "THEN LOST", _then_loses, priority=4, tone=_then_tone),
    Field("topic", "TOPIC", lambda r: ", ".join(r.planned.marks) if r.planned else "", priority=5),
    Field("afterwards", "SEEN AFTERWARDS", _afterwards, priority=2, tone=_afterwards_tone),
    Field("note", "NOTE", note, priority=6, flex=True, width=24, tone=Tone.DIM),
)
GROUPINGS: tuple[Grouping[PlannedRow], ...] = (
    Grouping("topic", "by topic", lambda r: (r.tp.topic,)),
    Grouping("broker", "by leader", lambda r: (f"leader {leader(r)}",), order=lambda s: (len(s), s)),
    Grouping("now", "by state", lambda r: (status(r),)),
)
