"""Compares a plan with the cluster: every row is judged, stale rows are refused one by one, the others are
elected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from backends.base.answers import (
    ClusterInfo,
    Partitions,
)
from backends.base.errors import NotAllowed
from backends.base.protocol import Backend, Progress
from console.errors import InputError
from console.reading.partition_selection import Selection, described, surveyed
from console.reading.read_cluster import Depths, read_selected
from recovery.log_preservation import KeepPlan
from recovery.model import Survey, TopicPartition, Why
from recovery.plan.compare import compare
from recovery.plan.judgement import Judgement, Reason, RowDecision
from recovery.plan.make import MISSING, misplaced_leaders, plan_of_bare
from recovery.plan.values import BarePlan, Header, NotElected, Plan
from recovery.rescue_branches import cuts_off
from recovery.strategy import DecisionKind
from recovery.unread_brokers import UnreadBrokers, unread_brokers
from recovery.wording.quantity_text import and_more


@dataclass(frozen=True, slots=True)
class PreparedPlan:
    """A plan compared with the cluster as it is now. ``plan`` is the given plan, ``checks`` the judgement of
    its rows, ``holding`` the part that may be applied. ``native``: the cluster elects designated leaders itself;
    asked only where a row has a successor. ``cut_off`` are the rows of ``holding`` whose elections cut off what can
    be read, or could when the plan was made, ``unread`` the brokers that are down and whose logs nobody read.
    ``notes`` belong to the question, one line each; ``instead``: what keeps more than these elections, a sentence
    each. ``surveys`` are those that were compared with.
    ``rehearsal`` is what happened on a simulated copy of the cluster, one sentence each; empty: nobody asked.
    ``keep``: which silent logs are to be kept, None where nobody asked; ``offered``: which could be, of a question.
    """

    plan: Plan
    checks: tuple[Judgement, ...]
    holding: Plan
    native: bool = False
    keep: KeepPlan | None = None
    offered: KeepPlan | None = None
    cut_off: frozenset[TopicPartition] = frozenset()
    unread: UnreadBrokers = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rehearsal: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    surveys: tuple[Survey, ...] = ()

    @property
    def counts(self) -> Mapping[RowDecision, int]:
        return Counter(check.decision for check in self.checks)

    @property
    def refused(self) -> tuple[Judgement, ...]:
        """The rows that are not applied, and are not online either."""
        return tuple(
            check
            for check in self.checks
            if not check.holds and check.decision is not RowDecision.ALREADY_ONLINE
        )

    @property
    def stale(self) -> bool:
        """Nothing can be applied, because preconditions are not true any more: a new plan is needed."""
        moved = any(check.decision is RowDecision.STALE for check in self.refused)
        return not self.holding.rows and moved and len(self.refused) == len(self.checks)


async def prepare(
    backend: Backend, plan: Plan, cluster_id: str, progress: Progress | None = None
) -> PreparedPlan:
    """Surveys the plan's partitions and compares. Raises BackendError, and NotAllowed where none may be seen."""
    found = await described(backend, [row.tp for row in plan.rows])
    surveys = await surveyed(backend, found.states, progress, Depths().duration)
    checks = _with_missing_permissions(found, compare(plan, surveys, cluster_id))
    holds = {check.tp for check in checks if check.holds}
    holding = replace(plan, rows=tuple(row for row in plan.rows if row.tp in holds))
    cut_off, unread = _at_risk(holding, surveys)
    native = await elects_natively(backend, holding)
    return PreparedPlan(plan, checks, holding, native, cut_off=cut_off, unread=unread, surveys=tuple(surveys))


async def still_holding(
    backend: Backend, prepared: PreparedPlan, progress: Progress | None = None
) -> PreparedPlan:
    """Compares again after work that took long: rows that changed meanwhile are refused. Raises as
    :func:`prepare`.
    """
    now = await prepare(backend, prepared.holding, prepared.plan.header.cluster_id, progress)
    later = {check.tp: check for check in now.checks}
    checks = tuple(later.get(check.tp, check) for check in prepared.checks)
    return replace(prepared, checks=checks, holding=now.holding, cut_off=now.cut_off, unread=now.unread)


def _at_risk(plan: Plan, surveys: Sequence[Survey]) -> tuple[frozenset[TopicPartition], UnreadBrokers]:
    """What the elections cut off at once, and what they cut off when brokers start that are down. Without a survey
    as the plan says, which was just made then.
    """
    now = {survey.tp: survey for survey in surveys}
    cut_off = set()
    unread: dict[TopicPartition, tuple[int, ...]] = {}
    for row in plan.rows:
        survey = now.get(row.tp)
        if row.loss.tail or row.loss.head or (survey is not None and cuts_off(survey, row.leader)):
            cut_off.add(row.tp)
        if brokers := unread_brokers(row, survey):
            unread[row.tp] = brokers
    return frozenset(cut_off), unread


def _with_missing_permissions(found: Partitions, checks: tuple[Judgement, ...]) -> tuple[Judgement, ...]:
    """A partition that is missing because this caller may not see it needs a permission, not a new plan."""
    if all(check.reason is not Reason.PARTITION for check in checks):
        return checks
    forbidden = {tp.topic for tp, why in found.unknown.items() if why.why is Why.NOT_ALLOWED} | set(
        found.hidden
    )
    reported = tuple(
        _why_missing(check, found, forbidden) if check.reason is Reason.PARTITION else check
        for check in checks
    )
    if all(check.tp.topic in forbidden and check.reason is Reason.NOT_ALLOWED for check in reported):
        raise NotAllowed("DESCRIBE", f"topic {reported[0].tp.topic}", "see the partitions of the plan")
    return reported


def _why_missing(check: Judgement, found: Partitions, forbidden: Collection[str]) -> Judgement:
    """Why the broker returned nothing for the partition, if that is known."""
    tp = check.tp
    if tp.topic in forbidden:
        need = f"needs DESCRIBE on topic {tp.topic}"
        return Judgement(tp, RowDecision.NOT_POSSIBLE, Reason.NOT_ALLOWED, need)
    if tp in found.unknown:
        return Judgement(tp, RowDecision.NOT_POSSIBLE, Reason.STATE_UNKNOWN, found.unknown[tp].detail)
    return check


async def ask_afresh(
    backend: Backend,
    cluster: ClusterInfo,
    bare: BarePlan,
    header: Header,
    *,
    seconds: float,
    file: Path | None,
    progress: Progress | None = None,
) -> Plan:
    """A file that only names leaders has no preconditions: its partitions are surveyed now, and the result
    becomes the preconditions.

    A row is refused alone: its partition does not exist, or the leader has no replica of it or cannot be elected.
    Raises InputError where that leaves none.
    """
    selection = Selection(partitions=tuple(row.tp for row in bare.rows), best_effort=True)
    reading = await read_selected(backend, cluster, selection, Depths(seconds), progress)
    misplaced = dict(misplaced_leaders(bare, reading.surveys))
    placed = BarePlan(tuple(row for row in bare.rows if row.tp not in misplaced))
    plan = plan_of_bare(header, placed, reading.surveys, reading.topic_marks)
    refused = (NotElected(tp, DecisionKind.REFUSED, (), why) for tp, why in misplaced.items())
    plan = replace(plan, not_elected=(*plan.not_elected, *refused))
    if not plan.rows and all(row.verdict is not DecisionKind.ALREADY_ONLINE for row in plan.not_elected):
        refuse_rows(file, [(row.tp, row.reason) for row in plan.not_elected])
    return plan


def refuse_rows(file: Path | None, refused: Sequence[tuple[TopicPartition, str]]) -> None:
    """Raises InputError, with the first of the ``refused`` rows, if there are any."""
    if refused:
        tp, why = refused[0]
        where = f"{file}: " if file else ""
        raise InputError(f"{where}{tp}: {why}{and_more(len(refused))}; nothing was sent")


def checked_just_now(plan: Plan, bare: BarePlan = BarePlan(())) -> PreparedPlan:  # noqa: B008  # frozen
    """A plan that was just made: its elections may be sent without another comparison, the rest is refused.

    ``bare``: the file of leaders that it was made of. A partition that has another leader is named.
    """
    designated = {row.tp: row.leader for row in bare.rows}
    checks = [Judgement(row.tp, RowDecision.SEND, Reason.AS_PLANNED, "") for row in plan.rows]
    for row in plan.not_elected:
        if row.verdict is DecisionKind.ALREADY_ONLINE:
            leader = designated.get(row.tp, row.leader)
            other = f"led by {row.leader}, not by {leader} as the file says; nothing is sent for it"
            notes = () if leader == row.leader else (other,)
            online = RowDecision.ALREADY_ONLINE
            checks.append(Judgement(row.tp, online, Reason.DESIGNATED_LEADER, row.reason, notes))
        else:
            why = Reason.PARTITION if row.reason == MISSING else Reason.NOT_ELECTABLE
            checks.append(Judgement(row.tp, RowDecision.NOT_POSSIBLE, why, row.reason))
    cut_off, unread = _at_risk(plan, ())
    return PreparedPlan(plan, tuple(checks), plan, cut_off=cut_off, unread=unread)


async def elects_natively(backend: Backend, plan: Plan) -> bool:
    """Whether the cluster elects a designated leader by a call of its own, without a reordered assignment. Asked
    only where a row has a successor: nothing else depends on it. Raises BackendError.
    """
    return any(row.successor for row in plan.rows) and (await backend.capabilities()).native_elections
