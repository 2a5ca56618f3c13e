"""Applying a plan: stale rows are refused one by one, the other rows are elected."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from backends.base.answers import Outcome
from backends.base.errors import BackendError
from backends.base.judged_partitions import judged
from backends.base.protocol import Backend
from console.change.access import Access
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question, settle_orders
from console.change.election_notes import note_plan
from console.change.loss_consent import REHEARSED, loss_question
from console.errors import NotDone, Status
from console.jobs.elect.election_batches import Elected, RowFailure, execute, note_elected, row_failure
from console.jobs.elect.preserved_logs import (
    PreservedLogs,
    cut_off_at_start,
    keep_logs,
    keep_notes,
    keeps,
    note_keeping,
    only_where_preserved,
    plan_to_keep,
    with_keep_offer,
    without_preserved,
)
from console.jobs.rescue.rescue_first import (
    rescue_first,
    rescue_notes,
    rescued_words,
    restore_words,
)
from console.jobs.rescue.rescue_outlook import DEFAULT_RESCUE, RescueChoice
from console.jobs.rescue.rescue_read import Rescued
from console.paths import unused
from console.plan_file_checks import WHOLE, PlanPart, refuse_other_cluster
from console.provenance import plan_header
from console.reading.consumer_reading import ConsumerReading, contradicted, read_back_as_consumer
from console.reading.plan_comparison import (
    PreparedPlan,
    ask_afresh,
    checked_just_now,
    prepare,
)
from recovery.advice import advise
from recovery.consumer_sight import Expected
from recovery.plan.judgement import Reason, RowDecision
from recovery.plan.values import BarePlan, Plan
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from recovery.unread_brokers import UnreadBrokers
from recovery.wording.advice_text import starts_instead

P = TypeVar("P")
MOST_TOPICS = 5
"""Beyond so many topics the next command asks for all offline partitions again."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The refused and the elected rows; ``elected`` is None if there was nothing to send.

    ``rescued`` is what was read before the elections, None where no rescue was asked for. ``preserved`` are the
    silent logs that were to be kept, None where nobody asked. ``consumer``: what consumers are given of the elected
    partitions; None: there is none to ask.
    """

    prepared: PreparedPlan
    elected: Elected | None
    rescued: Rescued | None = None
    preserved: PreservedLogs | None = None
    consumer: ConsumerReading | None = None

    @property
    def unread(self) -> UnreadBrokers:
        """The brokers that are down and whose disks nobody has read, of the partitions that were elected; without
        those that were taken out, which keep their logs.
        """
        return (
            {}
            if self.elected is None
            else cut_off_at_start(self.elected, self.prepared.unread, self.preserved)
        )

    @property
    def stale(self) -> bool:
        """No row of the plan holds any more, and nothing was applied: a new plan is needed.

        The rows that held when the plan was compared were judged again right before their elections.
        """
        if self.elected is None:
            return self.prepared.stale
        rows = len(self.prepared.refused) + len(self.elected.results)
        return self.elected.all_stale and rows == len(self.prepared.checks)

    @property
    def unfinished(self) -> bool:
        """Whether ``ktriage resume`` has something left: a request, or a broker whose log is to be kept and that is
        not out of the assignment yet.
        """
        elected = self.elected is not None and self.elected.unfinished
        return elected or (self.preserved is not None and self.preserved.open)

    @property
    def interrupted(self) -> bool:
        """Whether a row stands in the order that this plan writes: a run that applied it was killed, say."""
        results = () if self.elected is None else self.elected.results
        ours = (
            r.election.outcome is Outcome.STALE and r.election.reason is Reason.OUR_ORDER for r in results
        )
        return any(check.interrupted for check in self.prepared.refused) or any(ours)

    @property
    def failures(self) -> tuple[RowFailure, ...]:
        """Every row that is not recovered, or not finished."""
        refused = (RowFailure(one.tp, f"{one.decision}: {one.detail}") for one in self.prepared.refused)
        failed = self.elected.failures if self.elected is not None else ()
        return (
            *refused,
            *map(row_failure, failed),
            *(self.preserved.failures if self.preserved is not None else ()),
        )

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows by outcome, rows for which nothing was sent included."""
        found = Counter(str(check.decision) for check in self.prepared.checks if not check.holds)
        elected = self.elected.counts if self.elected is not None else {}
        found.update({str(outcome): count for outcome, count in elected.items()})
        return found


@dataclass(frozen=True, slots=True)
class ApplyPlan(Change[Backend, PreparedPlan, Applied]):
    """Elects the leaders of a plan.

    ``file`` is where it was read from, for messages; ``title`` names the cluster in the question. A plan of
    leaders only is surveyed first; ``ranking``, ``seconds`` and ``part`` (the part of it that is applied) are
    used only for such a plan. ``keep_logs_of``: brokers whose logs are to be kept, None: of nobody, empty: of each
    that is down and was not read. ``keep_where_possible``: partitions where that is not possible are elected too.
    ``compared``: the plan as a screen compared it before it asked. ``rescue`` None: what
    the elections cut off is not read first. ``rehearse``: it is tried on a simulated copy of the cluster before the
    question; where nobody is asked, it is refused if a row was not elected there.
    """

    plan: Plan | BarePlan
    reason: str
    title: str
    file: Path | None = None
    part: PlanPart = WHOLE
    attempts: int = 3
    stop_after: int | None = None
    seconds: float = 30.0
    ranking: Ranking = Ranking.LAST_RECORD
    rescue: RescueChoice | None = DEFAULT_RESCUE
    keep_logs_of: frozenset[int] | None = None
    keep_where_possible: bool = False
    compared: PreparedPlan | None = None
    reviewed: str = ""
    rehearse: bool = False

    def without_lock(self, cluster_id: str) -> None:
        refuse_other_cluster(self.plan, cluster_id, self.file)

    async def settle(self, access: Access[Backend], run: ChangeRun[PreparedPlan]) -> None:
        await settle_orders(access, run)

    async def prepare(
        self, cluster: Backend, cluster_id: str, operator: Operator[PreparedPlan]
    ) -> PreparedPlan:
        prepared = self.compared or await self._compared_now(cluster, cluster_id, operator)
        keep = None
        if self.keep_logs_of is not None:
            keep = await plan_to_keep(cluster, prepared.holding, self.keep_logs_of)
            prepared = prepared if self.keep_where_possible else only_where_preserved(prepared, keep)
            prepared = replace(prepared, keep=keep)
        if self.compared is not None:
            return prepared
        cut_off = without_preserved(prepared, keep)
        notes = await rescue_notes(cluster, cut_off, self.rescue, operator.progress, unread=not operator.asks)
        offered = None
        if keep is None and operator.asks and prepared.unread and prepared.holding.rows:
            offered = await plan_to_keep(cluster, prepared.holding, frozenset())
        instead = await _starts_instead(cluster, prepared) if operator.asks else ()
        tried = await self._rehearsal(cluster, prepared, operator)
        return replace(
            prepared,
            notes=(*notes, *keep_notes(keep)),
            offered=offered,
            rehearsal=tried,
            instead=instead,
        )

    async def _rehearsal(
        self, cluster: Backend, prepared: PreparedPlan, operator: Operator[PreparedPlan]
    ) -> tuple[str, ...]:
        if not self.rehearse or not prepared.holding.rows:
            return ()
        from console.jobs.elect.plan_rehearsal import rehearsed  # noqa: PLC0415  # the simulator, for this only

        found = await rehearsed(
            cluster,
            prepared.holding,
            attempts=self.attempts,
            seconds=self.seconds,
            progress=operator.progress,
        )
        sentences = tuple(found.lines())
        if not operator.asks and not found.succeeded:
            raise NotDone(f"the rehearsal did not end as planned, so nothing was sent: {' '.join(sentences)}")
        if not operator.asks:  # whoever is asked reads them with the question
            operator.says(*(f"{REHEARSED}: {sentence}" for sentence in sentences))
        return sentences

    async def _compared_now(
        self, cluster: Backend, cluster_id: str, operator: Operator[PreparedPlan]
    ) -> PreparedPlan:
        if isinstance(self.plan, Plan):
            return await prepare(cluster, self.plan, cluster_id, operator.progress)
        header = plan_header(cluster_id, self.ranking, Strategy.AGGRESSIVE)
        info = await cluster.cluster()
        plan = await ask_afresh(
            cluster,
            info,
            self.plan,
            header,
            seconds=self.seconds,
            file=self.file,
            progress=operator.progress,
        )
        return checked_just_now(self.part.of(plan) if plan.rows else plan, self.plan)

    def nothing_to_send(self, prepared: PreparedPlan) -> Applied | None:
        return None if prepared.holding.rows else Applied(prepared, None)

    def question(self, prepared: PreparedPlan) -> Question:
        return with_keep_offer(loss_question(prepared, self.title), prepared.offered)

    async def recheck(
        self, cluster: Backend, prepared: PreparedPlan, answer: str, operator: Operator[PreparedPlan]
    ) -> PreparedPlan:
        # Every row is judged again right before its election is sent, by logs and states that are read then.
        return replace(prepared, keep=prepared.offered) if keeps(answer) else prepared

    async def execute(
        self, cluster: Backend, prepared: PreparedPlan, run: ChangeRun[PreparedPlan]
    ) -> Applied:
        return await elect_rows(
            cluster,
            prepared,
            run,
            self.rescue,
            self.file,
            attempts=self.attempts,
            stop_after=self.stop_after,
        )

    def conclusion(self, result: Applied) -> Conclusion:
        if result.stale:
            status = Status.STALE
        else:
            # Stopped before anything was sent: the rows that could have been applied are not done.
            stopped = result.elected is None and bool(result.prepared.holding.rows)
            unread = result.rescued is not None and bool(result.rescued.problems)
            disagrees = contradicted(result.consumer)
            status = Status.PARTLY if result.failures or stopped or unread or disagrees else Status.DONE
        none_left = f"{self.file}: no row can be applied any more; nothing was applied. Make a new plan"
        stale = none_left if result.stale else ""
        return Conclusion(status, result.counts, result.unfinished, self._next(result), stale)

    def _next(self, result: Applied) -> tuple[str, ...]:
        file, decisions = str(self.file), {check.decision for check in result.prepared.refused}
        if result.unfinished:
            return ("resume",)
        if result.interrupted:
            return "resume", "--plan", file
        # Online or stale, all of it: applying it again would change nothing.
        unsent = result.elected is None
        if (unsent and RowDecision.STALE in decisions) or result.stale:
            return _choose_again(result, file)
        if _away(result):
            return _choose_again(result, file)
        only_without_keeping = any(check.reason is Reason.NOT_KEPT for check in result.prepared.refused)
        if unsent and (only_without_keeping or RowDecision.TRY_AGAIN in decisions):
            return "apply", file, *rescued_words(result.rescued)
        rescued = None if result.elected is None else result.rescued
        return restore_words(rescued, result.prepared.plan) or ("verify", file)


async def _starts_instead(cluster: Backend, prepared: PreparedPlan) -> tuple[str, ...]:
    """What keeps more than these elections, by what is known now; nothing where that cannot be judged."""
    planned = {row.tp for row in prepared.holding.rows}
    surveys = [one for one in prepared.surveys if one.tp in planned and one.state.offline]
    if not surveys:
        return ()
    ranking = prepared.plan.header.ranking
    try:
        elr = (await cluster.cluster()).elr_enabled
        verdicts = (await judged(cluster, elr, surveys, await cluster.log_dirs())).verdicts
    except BackendError:
        return ()
    found = ((one.tp, advise(one, ranking, verdicts.get(one.tp))) for one in surveys)
    return starts_instead((tp, advice) for tp, advice in found if advice is not None)


async def elect_rows(
    cluster: Backend,
    prepared: PreparedPlan,
    run: ChangeRun[P],
    rescue: RescueChoice | None,
    file: Path | None,
    *,
    attempts: int,
    stop_after: int | None = None,
) -> Applied:
    """Reads first what the elections cut off, elects the rows that hold, and keeps the logs of ``prepared.keep``.

    ``rescue`` None: nothing is read first. ``file`` is where the plan is, for the journal.
    """
    if run.stop or not prepared.holding.rows:
        return Applied(prepared, None)
    rescued, prepared = await rescue_first(cluster, prepared, rescue, run)
    if run.stop or not prepared.holding.rows:
        return Applied(prepared, None, rescued)
    keep = prepared.keep and prepared.keep.of(row.tp for row in prepared.holding.rows)
    keeping = note_keeping(run.journal, keep, prepared.holding) if keep and keep.moves else ""
    entry = note_plan(run.journal, prepared.holding, file, prepared.unread)
    elected = await execute(
        cluster,
        prepared.holding,
        run.journal,
        attempts=attempts,
        stop=run.stop,
        progress=run.operator.progress,
        stop_after=stop_after,
    )
    note_elected(run.journal, entry, elected)
    preserved = await keep_logs(cluster, keep, keeping, elected, run) if keep and keeping else None
    done = {} if run.stop else {r.row.tp: Expected() for r in elected.results if r.succeeded}
    consumer = await read_back_as_consumer(cluster, done)
    return Applied(prepared, elected, rescued, preserved, consumer)


def _away(applied: Applied) -> bool:
    """Whether a chosen broker cannot be elected now. The same plan would fail again for as long as it is away; a
    new plan says whom to wait for, and chooses it again where it is back.
    """
    failed = () if applied.elected is None else applied.elected.failures
    reasons = {one.election.reason for one in failed}
    return Reason.NOT_ELECTABLE in reasons | {check.reason for check in applied.prepared.refused}


def _choose_again(applied: Applied, file: str) -> tuple[str, ...]:
    """The command that makes the same choice afresh."""
    if all(check.reason is Reason.PARTITION for check in applied.prepared.checks):
        return ("status",)  # the topics were deleted, or may not be seen: no plan can name them
    return "plan", *_same_choice(applied.prepared.plan), unused(file)


def _same_choice(plan: Plan) -> tuple[str, ...]:
    """The options that make the same choice afresh."""
    topics = dict.fromkeys(row.tp.topic for row in plan.rows)
    named = [word for topic in topics for word in ("--topic", topic)]
    which = named if len(topics) <= MOST_TOPICS else ["--all-offline-partitions"]
    return (*which, "--ranking", str(plan.header.ranking), "--strategy", str(plan.header.strategy))
