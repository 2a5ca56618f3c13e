"""A partition, described once for pane 1, ``status``, ``replicas`` and JSON (docs/output.md, "partition")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from console.reading.partition_row import (
    PartitionHealth,
    PartitionHealthCounts,
    PartitionRow,
    unjudged_row,
)
from console.reading.replica_report import log_json, replica_rows
from console.reading.survey_json import unknown_json
from recovery.advice import Advice, AdviceKind
from recovery.model import NO_LEADER, PartitionState, Survey, TopicPartition, Unknown
from recovery.plan.verdict_json import verdict_json
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind, WhyNot
from recovery.wording.advice_text import started_before
from recovery.wording.loss_text import harm_text, short_loss
from recovery.wording.quantity_text import both, either, ids, lasting_at_least, printable
from recovery.wording.replica_text import elr_text, min_isr_text
from widgets.fields import Field, json_of, natural, text_rows
from widgets.loss_tone import loss_order, loss_tone
from widgets.text import Line, Tone

if TYPE_CHECKING:
    from console.reading.cluster_reading import ClusterReading

_HEALTH_TONES = {
    PartitionHealth.OFFLINE: Tone.BAD,
    PartitionHealth.LEADER_UNKNOWN: Tone.WARN,
    PartitionHealth.UNDER_MIN_ISR: Tone.WARN,
    PartitionHealth.MAY_BE_UNDER: Tone.WARN,
    PartitionHealth.UNDER_REPLICATED: Tone.INFO,
    PartitionHealth.ONLINE: Tone.GOOD,
}
_RANK = {health: number for number, health in enumerate(PartitionHealth)}


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
    return _decided(row.decision, row.advice)


def _decided(decision: Decision, advice: Advice | None) -> str:
    """As what stands above the table: who is started or awaited before stands before."""
    before = () if advice is None else started_before(advice)
    match decision.verdict:
        case DecisionKind.ELECT:
            elects = advice is not None and advice.brokers == (decision.leader,)
            start = f"start {either(before)}, else " if before and elects else ""
            return f"{start}elect {decision.leader}"
        case DecisionKind.WAIT if decision.together:
            return f"start {both(decision.waits_for)}"
        case DecisionKind.WAIT if decision.waits_for:
            rather = awaited_before(decision, advice)
            first = f"start {either(rather)}, then " if rather else "wait for "
            return f"{first}{either(decision.waits_for)}"
        case DecisionKind.REFUSED if decision.why_not is WhyNot.BRANCHES or _is_choice(advice):
            return "choose"
        case verdict:
            return _SUGGESTED.get(verdict, "report only")


ELECTING = (AdviceKind.ELECT, AdviceKind.COMPARE, AdviceKind.CHOOSE)
"""What asks for the choice of a leader."""


def offers_election(advice: Advice) -> bool:
    """Whether a leader is what it asks for, or offers."""
    return bool(advice.instead) or advice.kind in ELECTING


def _is_choice(advice: Advice | None) -> bool:
    """Whether what stands above the table offers to choose a leader."""
    return advice is not None and advice.kind is AdviceKind.CHOOSE and not advice.reassigning


def awaited_before(decision: Decision, advice: Advice | None) -> list[int]:
    """Whom to start before those that the decision waits for."""
    before = () if advice is None else started_before(advice)
    return [broker for broker in before if broker not in decision.waits_for]


_SUGGESTED = {
    DecisionKind.ALREADY_ONLINE: "",
    DecisionKind.WAIT: "wait",
    DecisionKind.REFUSED: "refused",
    DecisionKind.NO_CANDIDATE: "no candidate",
}


def _suggested_order(row: PartitionRow) -> tuple[str, int]:
    decision = row.decision
    return ("", -1) if decision is None else (str(decision.verdict), decision.leader)


def _suggested_tone(row: PartitionRow) -> Tone:
    verdict = None if row.decision is None else row.decision.verdict
    if verdict in (DecisionKind.REFUSED, DecisionKind.NO_CANDIDATE):
        return Tone.BAD
    return Tone.INFO if verdict is DecisionKind.WAIT else Tone.STRONG


def loses(row: PartitionRow) -> str:
    """What the suggestion loses; while it is to wait or to choose, what electing somebody at once would lose."""
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
    rather = awaited_before(row.decision, row.advice)
    if row.decision.verdict is DecisionKind.WAIT and rather:
        return f"{either(rather)} first if the host kept power; then: {row.decision.reason}"
    return row.decision.reason


def _state(
    name: str,
    title: str,
    value: Callable[[PartitionState], Any],
    text: Callable[[Any], str] = str,
    **more: Any,
) -> Field[PartitionRow]:
    """Where the leader is not known, nothing of the state is."""

    def of_state(row: PartitionRow) -> Any:
        return None if row.leader_unknown is not None else value(row.state)

    def cell(row: PartitionRow) -> str:
        return "?" if row.leader_unknown is not None else text(value(row.state))

    return Field(name, title, of_state, cell, **more)


def _leader(row: PartitionRow) -> int | None:
    """Where the leader is not known, nothing of the state is."""
    return None if row.leader_unknown is not None else row.state.leader


def _min_isr(row: PartitionRow) -> str:
    return "?" if isinstance(row.min_isr, Unknown) else _min_isr_text(row)


def _min_isr_text(row: PartitionRow) -> str:
    return printable(str(row.min_isr) if row.survey is None else min_isr_text(row.survey))


def _by_broker(row: PartitionRow) -> dict[str, int] | None:
    return None if row.survey is None else {str(b): n for b, n in row.survey.min_isr_by_broker.items()}


def _moved(row: PartitionRow) -> str:
    """Whether it is being reassigned. Why that is not known can fill lines, and is told once for all partitions."""
    value = None if row.survey is None else row.survey.reassigning
    return str(value.why) if isinstance(value, Unknown) else "yes" if value else ""


def _json(value: int | bool | Unknown | None) -> object:
    return unknown_json(value) if isinstance(value, Unknown) else value


@dataclass(frozen=True, slots=True)
class PartitionsView:
    """The rows, and the ``reading`` that they are of; None: the partitions are not known yet. Times in seconds:
    ``now`` of this picture, ``first`` of the first one; ``picked``: what is in the plan, ``elected``: those of it
    that have their leader since; ``counts`` None: they are
    counted when shown; ``doubt`` says why the rows may not be those of now ("no controller leads"), "" where they
    are; ``doubt_advice`` is what to do about that first. ``may_lead`` draws who may lead a partition, in so many
    columns; ``overview``: the rest of the cluster, where no partition is listed, in so many columns, with so many
    rows of each noun. Not ``complete``: the first look
    is not over, and nothing is advised before it is. ``left``: what elections from here leave to a person, each
    with the key of what is done about it.
    """

    reading: ClusterReading | None
    rows: Sequence[PartitionRow] = ()
    now: float = 0.0
    title: str = ""
    picked: frozenset[TopicPartition] = frozenset()
    elected: frozenset[TopicPartition] = frozenset()
    counts: PartitionHealthCounts | None = None
    first: float = 0.0
    doubt: str = ""
    doubt_advice: str = ""
    ranking: Ranking = Ranking.LAST_RECORD
    may_lead: Callable[[Survey, int], list[Line]] | None = None
    overview: Callable[[int, int], Iterable[Line]] | None = None
    complete: bool = True
    left: tuple[tuple[str, str], ...] = ()


def partition_fields(view: Callable[[], PartitionsView]) -> tuple[Field[PartitionRow], ...]:
    """``view``: what is shown now, for what depends on more than the row."""

    def lasted(row: PartitionRow) -> str:
        if row.since is None:
            return ""
        return lasting_at_least(view().now - row.since, exact=row.exact or row.since > view().first)

    def leader_text(row: PartitionRow) -> str:
        if row.leader_unknown is not None:
            return "?"
        if row.state.leader != NO_LEADER:
            return str(row.state.leader)
        reading = view().reading
        before = None if reading is None else reading.partitions.led_before.get(row.state.tp)
        return "none" if before is None else f"none, {before} led"

    def planned(row: PartitionRow) -> str:
        shown = view()
        if row.state.tp in shown.elected:
            return "elected"
        return "in plan" if row.state.tp in shown.picked else ""

    def advised(row: PartitionRow) -> str:
        shown = view()
        if row.state.tp in shown.elected:
            return ""
        # What stands above the table says to apply the plan, or whom to start.
        planned = row.state.tp in shown.picked and row.advice is not None and offers_election(row.advice)
        waits = row.decision is None or row.decision.verdict is not DecisionKind.ELECT
        return "apply" if planned and waits else suggested(row)

    return (
        _pane("state", "STATE", lambda r: str(r.health), sort=lambda r: _RANK[r.health], tone=_state_tone),
        Field(
            "name",
            "PARTITION",
            lambda r: f"{r.state.topic}-{r.state.partition}",
            sort=lambda r: (natural(r.state.topic), r.state.partition),
            tone=Tone.STRONG,
            flex=True,
            json=False,
        ),
        _pane("plan", "PLAN", planned, tone=Tone.CURSOR, priority=4, width=7),
        _pane(
            "for",
            "FOR",
            lambda r: None if r.since is None else max(0, round(view().now - r.since)),
            lasted,
            sort=lambda r: 0.0 if r.since is None else -r.since,
            right=True,
            priority=5,
            width=6,
        ),
        _pane("answered", "ANSWERED", _answered, sort=_answered_order, tone=_answered_tone, priority=6),
        _pane("suggested", "SUGGESTED", advised, sort=_suggested_order, tone=_suggested_tone),
        _pane("loses", "OFFSETS LOST", loses, sort=lambda r: loss_order(r.loss), tone=_loses_tone),
        _data("topic", "TOPIC", lambda r: r.state.topic),
        _data("partition", "NUMBER", lambda r: r.state.partition),
        _data("topicId", "TOPIC ID", lambda r: r.state.topic_id),
        Field("leader", "LEADER", _leader, leader_text, priority=10),
        _state("leaderEpoch", "LEADER EPOCH", lambda s: s.leader_epoch, right=True, screen=False),
        _state("isr", "ISR", lambda s: s.isr, ids, sort=lambda r: len(r.state.isr), priority=7),
        _state("elr", "ELR", lambda s: s.elr, elr_text, priority=8),
        _state("lastKnownElr", "LAST KNOWN ELR", lambda s: s.last_known_elr, elr_text, screen=False),
        _state("replicas", "REPLICAS", lambda s: s.replicas, ids, priority=9),
        _data("offlineReplicas", "OFFLINE", lambda r: r.state.offline_replicas),
        Field(
            "minIsr",
            "MIN ISR",
            lambda r: _json(r.min_isr),
            _min_isr_text,
            brief=_min_isr,
            priority=11,
            right=True,
        ),
        _data("minIsrByBroker", "MIN ISR BY BROKER", _by_broker),
        Field(
            "reassigning",
            "REASSIGNING",
            lambda r: _json(r.survey and r.survey.reassigning),
            _moved,
            below=True,
            screen=False,
        ),
        _pane("why", "WHY", why, priority=12, tone=Tone.DIM, flex=True, width=30, shown_below=True),
    )


_pane: Callable[..., Field[PartitionRow]] = partial(Field, printed=False, json=False)
_data: Callable[..., Field[PartitionRow]] = partial(Field, screen=False, printed=False)


def fields_of(reading: ClusterReading) -> tuple[Field[PartitionRow], ...]:
    """For the text and the JSON of one reading."""
    view = PartitionsView(reading)
    return partition_fields(lambda: view)


def partition_lines(reading: ClusterReading, surveys: Iterable[Survey]) -> Iterator[str]:
    """One line per partition: leader, epoch, and the sets."""
    return text_rows(fields_of(reading), [unjudged_row(survey, None) for survey in surveys])


def survey_json(reading: ClusterReading) -> Callable[[Survey], dict[str, object]]:
    """From a survey of the reading to its object: a partition with all its replicas (docs/output.md, "partition"),
    and what each choice of leader loses of the acknowledged records.
    """
    fields = json_of(fields_of(reading))

    def of_survey(survey: Survey) -> dict[str, object]:
        verdicts = reading.verdicts.get(survey.tp)
        candidates = {} if verdicts is None else verdicts.candidates
        return {
            **fields(unjudged_row(survey, None)),
            "logs": list(map(log_json, replica_rows(reading, survey))),
            "acknowledged": [
                {"broker": broker, **verdict_json(verdict)} for broker, verdict in candidates.items()
            ],
        }

    return of_survey
