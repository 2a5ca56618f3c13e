"""Makes a plan from surveys and decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.loss import Loss, loss
from recovery.model import NO_LEADER, Lineage, Replica, Survey, TopicPartition, Unknown
from recovery.old_leaders import growing_logs
from recovery.plan.topic_marks import Mark
from recovery.plan.values import BarePlan, Header, NotElected, Plan, PlanCandidate, PlanError, PlanRow, Silent
from recovery.ranking import Candidate, Ranking, rank
from recovery.strategy import Decision, DecisionKind, Strategy, clean_electors, decide, election_order
from recovery.wording.replica_text import STANDING_WORDS

_NO_MARKS: Mapping[str, tuple[Mark, ...]] = {}
_NO_TIMES: Mapping[TopicPartition, int] = {}


def make_plan(
    header: Header,
    choices: Iterable[tuple[Survey, Decision]],
    marks: Mapping[str, tuple[Mark, ...]] = _NO_MARKS,
    offline_since: Mapping[TopicPartition, int] = _NO_TIMES,
    offline_already: Mapping[TopicPartition, int] = _NO_TIMES,
) -> Plan:
    """The plan of those choices, in their order; ``marks`` by topic, ``offline_since`` and ``offline_already`` in
    ms since 1970.

    Raises PlanError where two choices are of one partition, or a decision names a leader that did not answer.
    """
    rows: list[PlanRow] = []
    not_elected: list[NotElected] = []
    planned: set[TopicPartition] = set()
    for survey, decision in choices:
        tp = survey.tp
        if tp in planned:
            raise PlanError(f"{tp} was chosen for twice")
        planned.add(tp)
        since, already = offline_since.get(tp), offline_already.get(tp)
        if decision.verdict is DecisionKind.ELECT:
            row = plan_row(survey, decision, header.ranking, marks.get(tp.topic, ()))
            rows.append(row._replace(offline_since_ms=since, offline_already_ms=already))
        else:
            why = one_line(decision.reason)
            not_elected.append(
                NotElected(tp, decision.verdict, decision.waits_for, why, decision.leader, since, already)
            )
    return Plan(header, tuple(rows), tuple(not_elected))


MISSING = "the partition does not exist or may not be seen"


def plan_of_bare(
    header: Header,
    bare: BarePlan,
    surveys: Iterable[Survey],
    marks: Mapping[str, tuple[Mark, ...]] = _NO_MARKS,
) -> Plan:
    """A bare file's leaders with the preconditions that fresh ``surveys`` show.

    A row that cannot be elected as asked is in ``not_elected`` with the reason; nobody else is chosen for it.
    """
    found = {survey.tp: survey for survey in surveys}
    plan = make_plan(
        header,
        (
            (found[row.tp], designate(found[row.tp], row.leader, header.ranking))
            for row in bare.rows
            if row.tp in found
        ),
        marks,
    )
    missing = tuple(
        NotElected(row.tp, DecisionKind.REFUSED, (), MISSING) for row in bare.rows if row.tp not in found
    )
    return Plan(plan.header, plan.rows, plan.not_elected + missing)


def misplaced_leaders(bare: BarePlan, surveys: Iterable[Survey]) -> tuple[tuple[TopicPartition, str], ...]:
    """The rows whose leader has no replica of the partition, with the reason: the file is a wrong one, whether the
    partition has a leader or not.
    """
    found = {survey.tp: survey for survey in surveys}
    return tuple(
        (row.tp, _no_replica(found[row.tp], row.leader))
        for row in bare.rows
        if row.tp in found and found[row.tp].replica(row.leader) is None
    )


def designate(
    survey: Survey, leader: int, ranking: Ranking, judged: PartitionVerdicts | None = None
) -> Decision:
    """The decision to elect ``leader`` because somebody says so; REFUSED with the reason where it cannot be."""
    decision = decide(survey, ranking, Strategy.AGGRESSIVE, judged)
    if decision.leader == leader or decision.verdict is not DecisionKind.ELECT:
        return decision
    ranked = rank(survey, ranking, () if judged is None else judged.steady)
    problem = str(ranked) if isinstance(ranked, Unknown) else _cannot_lead(survey, ranked, leader)
    if isinstance(ranked, Unknown) or problem:
        return Decision(DecisionKind.REFUSED, NO_LEADER, (), (), problem, None)
    other = decision.other_ranking_leader
    return Decision(
        DecisionKind.ELECT,
        leader,
        election_order(survey, ranked, leader),
        (),
        by_hand_reason(leader, decision.leader),
        other if other != leader else None,
        judged,
    )


def by_hand_reason(leader: int, best: int) -> str:
    """Why ``leader`` stands in a plan that somebody edited."""
    if leader == best:
        return f"{leader} is designated by hand, and ranks best of those that can be elected"
    return f"{leader} is designated by hand; {best} ranks best of those that can be elected"


def _cannot_lead(survey: Survey, ranked: tuple[Candidate, ...], leader: int) -> str:
    replica = survey.replica(leader)
    if replica is None:
        return _no_replica(survey, leader)
    if leader not in {candidate.broker for candidate in ranked}:
        silent = f"broker {leader} did not report its log ({replica.log})"
        return silent if replica.electable else f"{_not_electable(replica)}; {silent}"
    return "" if replica.electable else _not_electable(replica)


def _no_replica(survey: Survey, broker: int) -> str:
    return f"broker {broker} has no replica; the replicas are on {list(survey.state.replicas)}"


def _not_electable(replica: Replica) -> str:
    return f"broker {replica.broker} cannot be elected: {STANDING_WORDS[replica.standing]}"


def one_line(text: str) -> str:
    """``text`` as a plan may hold it: printable, on one line."""
    text = " ".join(text.split())
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def plan_row(survey: Survey, decision: Decision, ranking: Ranking, marks: tuple[Mark, ...] = ()) -> PlanRow:
    """The election of ``decision``'s leader, with what was seen of the partition as its preconditions.

    Raises PlanError where that leader did not report its log.
    """
    ranked = rank(survey, ranking, () if decision.judged is None else decision.judged.steady)
    reported = set() if isinstance(ranked, Unknown) else {candidate.broker for candidate in ranked}
    if isinstance(ranked, Unknown) or decision.leader not in reported:
        raise PlanError(f"{survey.tp}: broker {decision.leader} did not report its log")
    state = survey.state
    return PlanRow(
        survey.tp,
        state.topic_id,
        state.leader_epoch,
        state.replicas,
        decision.order,
        plan_candidates(survey, ranked, decision.judged),
        silent_replicas(survey, ranked),
        one_line(decision.reason),
        marks,
        decision.other_ranking_leader,
        clean_electors(survey),
    )


def plan_candidates(
    survey: Survey, ranked: Iterable[Candidate], judged: PartitionVerdicts | None
) -> tuple[PlanCandidate, ...]:
    """The ranked replicas, in their order, with what the choice of each loses."""
    losses: _Losses = {}
    return tuple([_candidate(survey, candidate, losses, judged) for candidate in ranked])


def silent_replicas(survey: Survey, ranked: Iterable[Candidate | PlanCandidate]) -> tuple[Silent, ...]:
    """The replicas that are not ranked."""
    reported = {candidate.broker for candidate in ranked}
    return tuple([Silent(r.broker, r.standing) for r in survey.replicas if r.broker not in reported])


# Equal logs lose the same, and most replicas of a partition are equal.
_Losses = dict[tuple[Lineage, int, int], Loss]


def _candidate(
    survey: Survey, candidate: Candidate, losses: _Losses, judged: PartitionVerdicts | None
) -> PlanCandidate:
    log = candidate.log
    return PlanCandidate(
        candidate.broker,
        candidate.standing,
        log.leader_epoch,
        log.lineage.last_epoch if isinstance(log.lineage, Lineage) else None,
        log.log_end_offset,
        log.log_start_offset,
        log.high_watermark,
        _loss(survey, candidate, losses),
        None if (replica := survey.replica(candidate.broker)) is None else replica.disk_read_ms,
        None if judged is None else judged.candidates.get(candidate.broker),
        candidate.broker in growing_logs(survey),
    )


def _loss(survey: Survey, candidate: Candidate, losses: _Losses) -> Loss:
    log = candidate.log
    if isinstance(log.lineage, Unknown) or survey.compacted is not None or growing_logs(survey):
        return loss(survey, candidate.broker)
    key = (log.lineage, log.log_start_offset, log.log_end_offset)
    known = losses.get(key)
    if known is None:
        known = losses[key] = loss(survey, candidate.broker)
    return known
