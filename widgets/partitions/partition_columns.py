"""The columns of pane 1."""

from __future__ import annotations

from collections.abc import Callable

from recovery.model import Unknown
from recovery.strategy import Decision, DecisionKind
from recovery.wording.loss_text import harm_text, short_loss
from recovery.wording.quantity_text import either, ids, lasting_at_least
from recovery.wording.replica_text import elr_text, min_isr_text
from widgets.fields import Field
from widgets.loss_tone import loss_order, loss_tone
from widgets.partitions.partition_row import PartitionHealth, PartitionRow
from widgets.table import Grouping
from widgets.text import Tone

_HEALTH_TONES = {
    PartitionHealth.OFFLINE: Tone.BAD,
    PartitionHealth.LEADER_UNKNOWN: Tone.WARN,
    PartitionHealth.UNDER_MIN_ISR: Tone.WARN,
    PartitionHealth.MAY_BE_UNDER: Tone.WARN,
    PartitionHealth.UNDER_REPLICATED: Tone.INFO,
    PartitionHealth.ONLINE: Tone.GOOD,
}
_RANK = {health: number for number, health in enumerate(PartitionHealth)}


def columns(
    now: Callable[[], float], first: Callable[[], float], picked: Callable[[PartitionRow], bool]
) -> tuple[Field[PartitionRow], ...]:
    """``now`` is the time of the picture, ``first`` that of the first one, ``picked`` tells what is in the plan."""
    return (
        Field("state", "STATE", _state, sort=lambda r: _RANK[r.health], tone=_state_tone),
        Field(
            "partition",
            "PARTITION",
            lambda r: f"{r.state.topic}-{r.state.partition}",
            sort=lambda r: (r.state.topic, r.state.partition),
            tone=Tone.STRONG,
            flex=True,
        ),
        Field("plan", "PLAN", lambda r: "in plan" if picked(r) else "", tone=Tone.KEY, priority=4, width=7),
        Field(
            "for",
            "FOR",
            lambda r: None if r.since is None else max(0, round(now() - r.since)),
            lambda r: (
                ""
                if r.since is None
                else lasting_at_least(now() - r.since, exact=r.exact or r.since > first())
            ),
            sort=lambda r: 0.0 if r.since is None else -r.since,
            right=True,
            priority=5,
            width=6,
        ),
        Field("answered", "ANSWERED", _answered, sort=_answered_order, tone=_answered_tone, priority=6),
        Field("suggested", "SUGGESTED", suggested, sort=_suggested_order, tone=_suggested_tone),
        Field("loses", "OFFSETS LOST", loses, sort=lambda r: loss_order(r.loss), tone=_loses_tone),
        Field("leader", "LEADER", _leader, sort=lambda r: r.state.leader, priority=10),
        Field("isr", "ISR", lambda r: _members(r, r.state.isr), sort=lambda r: len(r.state.isr), priority=7),
        Field("elr", "ELR", lambda r: "?" if r.leader_unknown else elr_text(r.state.elr), priority=8),
        Field("replicas", "REPLICAS", lambda r: _members(r, r.state.replicas), priority=9),
        Field("minIsr", "MIN ISR", _min_isr, priority=11, right=True),
        Field("why", "WHY", why, priority=12, tone=Tone.DIM, flex=True, width=30, shown_below=True),
    )


def _missing(row: PartitionRow) -> tuple[str, ...]:
    """The brokers whose replica is not in the ISR, by the name that a person looks for."""
    state = row.state
    return tuple(f"broker {broker}" for broker in state.replicas if broker not in state.isr) or (
        "none missing",
    )


GROUPINGS: tuple[Grouping[PartitionRow], ...] = (
    Grouping("topic", "by topic", lambda r: (r.state.topic,)),
    Grouping("broker", "by broker that is missing", _missing, order=lambda s: (len(s), s)),
    Grouping("suggested", "by suggestion", lambda r: (suggested(r) or "nothing suggested",)),
    Grouping("state", "by state", lambda r: (str(r.health),)),
)


def _state(row: PartitionRow) -> str:
    return row.health.value


def _state_tone(row: PartitionRow) -> Tone:
    return _HEALTH_TONES[row.health]


def _answered(row: PartitionRow) -> str:
    answered = row.answered
    return "not asked" if answered is None else f"{answered} of {len(row.state.replicas)}"


def _answered_order(row: PartitionRow) -> int:
    return -1 if row.answered is None else row.answered


def _answered_tone(row: PartitionRow) -> Tone:
    answered = row.answered
    if answered is None:
        return Tone.DIM
    return Tone.PLAIN if answered == len(row.state.replicas) else Tone.WARN


def suggested(row: PartitionRow) -> str:
    """Whom to elect, or whom to wait for."""
    if row.decision is None:
        return "" if row.survey is None else "checking …"
    return _decided(row.decision)


def _decided(decision: Decision) -> str:
    match decision.verdict:
        case DecisionKind.ALREADY_ONLINE:
            return ""
        case DecisionKind.ELECT:
            return f"elect {decision.leader}"
        case DecisionKind.WAIT:
            return f"wait for {either(decision.waits_for)}" if decision.waits_for else "wait"
        case DecisionKind.REFUSED:
            return "refused"
        case DecisionKind.NO_CANDIDATE:
            return "no candidate"
        case _:
            return "report only"


def _suggested_order(row: PartitionRow) -> tuple[str, int]:
    decision = row.decision
    return ("", -1) if decision is None else (str(decision.verdict), decision.leader)


def _suggested_tone(row: PartitionRow) -> Tone:
    verdict = None if row.decision is None else row.decision.verdict
    if verdict in (DecisionKind.REFUSED, DecisionKind.NO_CANDIDATE):
        return Tone.BAD
    return Tone.INFO if verdict is DecisionKind.WAIT else Tone.STRONG


def loses(row: PartitionRow) -> str:
    """What the suggestion loses; while it is to wait, what electing somebody at once would lose."""
    if row.loss is None or row.decision is None:
        return "" if row.decision is None or row.decision.verdict is DecisionKind.ALREADY_ONLINE else "?"
    text = short_loss(row.loss, row.last_epoch)
    return text if row.decision.verdict is DecisionKind.ELECT else f"if {row.now}: {text}"


def _loses_tone(row: PartitionRow) -> Tone:
    return Tone.DIM if row.loss is None else loss_tone(row.loss, row.last_epoch)


def why(row: PartitionRow) -> str:
    """The reason for the suggestion, and the loss in full."""
    if row.leader_unknown is not None:
        return row.leader_unknown.detail
    if row.decision is None:
        return ""
    if row.decision.verdict is DecisionKind.ELECT and row.loss is not None and not row.loss.none:
        return f"{row.decision.reason}; loses {harm_text(row.loss, row.last_epoch)}"
    return row.decision.reason


def _leader(row: PartitionRow) -> str:
    if row.leader_unknown is not None:
        return "?"
    return "none" if row.state.offline else str(row.state.leader)


def _members(row: PartitionRow, brokers: tuple[int, ...]) -> str:
    return "?" if row.leader_unknown is not None else ids(brokers)


def _min_isr(row: PartitionRow) -> str:
    if isinstance(row.min_isr, Unknown):
        return "?"
    return str(row.min_isr) if row.survey is None else min_isr_text(row.survey)
