"""Recovery in one command (KIP-966, ``kafka-unclean-recovery``): survey, choose, elect, read the result back."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from backends.base.answers import Depth, Outcome
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend, Progress
from backends.metadata_log.copied_log import CopiedMetadataLog
from console.change.access import Access
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question, settle_orders
from console.change.loss_consent import loss_question
from console.command_words import choice_words, evidence_words
from console.errors import Status
from console.jobs.elect.apply_plan import Applied, elect_rows
from console.jobs.elect.election_batches import Elected, RowFailure
from console.jobs.elect.leader_choice import Choices, NextChoice, choose
from console.jobs.elect.preserved_logs import (
    keep_notes,
    only_where_preserved,
    plan_to_keep,
    without_preserved,
)
from console.jobs.rescue.rescue_first import rescue_notes, rescued_words, restore_words
from console.jobs.rescue.rescue_outlook import DEFAULT_RESCUE, RescueChoice
from console.paths import unused
from console.plan_files import save_plan
from console.provenance import plan_header
from console.reading.consumer_reading import contradicted
from console.reading.partition_selection import Selection
from console.reading.plan_comparison import PreparedPlan, checked_just_now
from console.reading.read_cluster import Depths, read_selected, tasks
from recovery.disk_evidence import DiskReading
from recovery.plan.importance import NO_TIERS, Importance
from recovery.plan.values import NotElected
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy
from recovery.wording.quantity_text import some_of

ASK_AGAIN = 0.5
"""Seconds between two surveys of a recovery whose choice a silent broker can still change."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The choices and what became of them: ``applied`` is None if there was nothing to elect. ``file`` is where the
    plan was saved before it was applied.
    """

    choices: Choices
    applied: Applied | None = None
    file: Path | None = None

    @property
    def left_over(self) -> tuple[NotElected, ...]:
        """Partitions of the input that stay without a leader because none was chosen."""
        return tuple(
            row for row in self.choices.plan.not_elected if row.verdict is not DecisionKind.ALREADY_ONLINE
        )

    @property
    def elected(self) -> Elected | None:
        return None if self.applied is None else self.applied.elected

    @property
    def failures(self) -> tuple[RowFailure, ...]:
        """Every partition that is not recovered, or not finished."""
        left = (RowFailure(row.tp, f"{row.verdict}: {row.reason}") for row in self.left_over)
        return (*left, *(self.applied.failures if self.applied is not None else ()))

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of partitions by outcome, those for which nothing was sent included."""
        found = Counter(str(row.verdict) for row in self.choices.plan.not_elected)
        found.update(self.applied.counts if self.applied is not None else {})
        return found


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """Which partitions are recovered, and how their leaders are chosen; brokers have ``seconds`` to answer.

    ``words`` are the options that select the same partitions, for the next command. ``evidence``: the disks of
    brokers that are down, as they were read. ``copy``: a copied metadata log. ``accepted``: why conditions that
    were not checked are taken to hold; "": they are not.
    """

    selection: Selection
    ranking: Ranking = Ranking.LAST_RECORD
    strategy: Strategy = Strategy.BALANCED
    seconds: float = 30.0
    words: tuple[str, ...] = ("--all-offline-partitions",)
    evidence: tuple[DiskReading, ...] = ()
    importance: Importance = NO_TIERS
    copy: CopiedMetadataLog | None = None
    accepted: str = ""

    def plan_again(
        self, file: str, *, strategy: Strategy | None = None, accept_unchecked: bool = False
    ) -> tuple[str, ...]:
        """The words of the command that chooses as this run did, or by another ``strategy``, into ``file``. With
        ``accept_unchecked`` the reason is still to be written.
        """
        strategy = strategy or self.strategy
        how = choice_words(self.ranking, strategy)
        copied = None if self.copy is None else self.copy.path
        sources = evidence_words((reading.source for reading in self.evidence), copied)
        why = self.accepted or ("WHY" if accept_unchecked else "")
        accepted = ("--accept-unchecked", "--reason", why) if why and strategy is Strategy.BALANCED else ()
        return "plan", *self.words, *how, *sources, *accepted, file


async def survey_and_choose(
    cluster: Backend,
    options: ChoiceOptions,
    progress: Progress | None = None,
    *,
    picture_wait: float | None = None,
) -> Choices:
    """Surveys the partitions and chooses a leader for each. Raises ConsoleError and BackendError.

    ``picture_wait`` as in SurveyRequest. None, for a recovery: it goes on asking until its deadline, brokers that
    refuse too (the recovery tool's specification), as long as an answer can change a choice. A simulation's time
    stands still meanwhile, so that it is asked once.
    """
    if picture_wait is not None or cluster.simulated:
        return await _chosen_once(cluster, options, progress, picture_wait)
    clock = asyncio.get_running_loop().time
    deadline = clock() + options.seconds
    left = options
    while True:
        choices = await _chosen_once(cluster, left, progress, None)
        awaited = choices.awaited
        if not awaited or deadline - clock() <= ASK_AGAIN:
            return choices
        if progress is not None:
            seconds = options.seconds - (deadline - clock())
            progress(f"asking broker {some_of(awaited)} again, seconds:", int(seconds), int(options.seconds))
        await asyncio.sleep(ASK_AGAIN)
        left = replace(options, seconds=max(deadline - clock(), ASK_AGAIN))


async def _chosen_once(
    cluster: Backend, options: ChoiceOptions, progress: Progress | None, picture_wait: float | None
) -> Choices:
    info = await cluster.cluster()
    # A disk may have parted from the others earlier than these parted from each other.
    depth = Depth.FULL if options.evidence else Depth.DIVERGENCE
    depths = Depths(options.seconds, depth, picture_wait=picture_wait)
    source = MetadataLogSource()
    async with tasks() as group:
        # Most of the metadata log is read during the survey, and what is newer after it.
        log_read = group.create_task(source.read(cluster))
        reading = await read_selected(cluster, info, options.selection, depths, progress, health=True)
        if not any(survey.state.offline for survey in reading.surveys):
            log_read.cancel()
    if options.evidence:
        # Most recoveries have no disk, and none of the modules that judge one.
        from console.reading.disk_evidence import with_evidence  # noqa: PLC0415

        reading = await with_evidence(cluster, reading, options.evidence)
    header = plan_header(info.cluster_id, options.ranking, options.strategy, options.accepted)
    return await choose(cluster, reading, header, options.importance, copy=options.copy, source=source)


@dataclass(frozen=True, slots=True)
class RecoverPartitions(Change[Backend, Choices, Recovery]):
    """Chooses leaders and elects them; the plan is saved first. ``title`` names the cluster in the question.
    ``keep_logs_of`` as in :class:`console.jobs.elect.apply_plan.ApplyPlan`.
    ``rescue`` None: what the elections cut off is not read first.
    """

    options: ChoiceOptions
    reason: str
    title: str
    attempts: int = 3
    keep_logs_of: frozenset[int] | None = None
    rescue: RescueChoice | None = DEFAULT_RESCUE

    async def settle(self, access: Access[Backend], run: ChangeRun[Choices]) -> None:
        await settle_orders(access, run)

    async def prepare(self, cluster: Backend, cluster_id: str, operator: Operator[Choices]) -> Choices:
        choices = await survey_and_choose(cluster, self.options, operator.progress)
        prepared = checked_just_now(choices.plan)
        keep = None
        if self.keep_logs_of is not None and choices.plan.rows:
            keep = await plan_to_keep(cluster, choices.plan, self.keep_logs_of)
            prepared = without_preserved(prepared, keep)
        notes = await rescue_notes(
            cluster, prepared, self.rescue, operator.progress, unread=not operator.asks
        )
        return replace(choices, notes=(*notes, *keep_notes(keep)))

    def nothing_to_send(self, prepared: Choices) -> Recovery | None:
        return None if prepared.plan.rows else Recovery(prepared)

    def question(self, prepared: Choices) -> Question:
        checked = replace(
            _checked(prepared), native=prepared.native, notes=prepared.notes, instead=prepared.instead
        )
        return loss_question(checked, self.title)

    async def recheck(
        self, cluster: Backend, prepared: Choices, answer: str, operator: Operator[Choices]
    ) -> Choices:
        # Every row is judged again right before its election is sent, by logs and states that are read then.
        return prepared

    async def execute(self, cluster: Backend, prepared: Choices, run: ChangeRun[Choices]) -> Recovery:
        checked = _checked(prepared)
        file = save_plan(checked.plan)
        run.operator.says(f"the plan is saved in {file}")
        if self.keep_logs_of is not None:
            keep = await plan_to_keep(cluster, checked.plan, self.keep_logs_of)
            checked = replace(only_where_preserved(checked, keep), keep=keep)
        applied = await elect_rows(cluster, checked, run, self.rescue, file, attempts=self.attempts)
        return Recovery(prepared, applied, file)

    def conclusion(self, result: Recovery) -> Conclusion:
        applied = result.applied
        unfinished = applied is not None and applied.unfinished
        disagrees = applied is not None and contradicted(applied.consumer)
        partly = result.failures or result.choices.reading.may_hide_partitions or disagrees
        stale = ""
        if applied is not None and applied.elected is not None and applied.stale:
            stale = (
                "the chosen partitions changed while the question was open; nothing was sent. Run the command"
                " again"
            )
        status = Status.STALE if stale else Status.PARTLY if partly else Status.DONE
        return Conclusion(status, result.counts, unfinished, self._next(result), stale)

    def _next(self, result: Recovery) -> tuple[str, ...]:
        applied, file = result.applied, str(result.file)
        if applied is None or (applied.elected is None and not applied.prepared.refused):
            return self._by_other_choice(result.choices.next_choice)
        if applied.unfinished:
            return ("resume",)
        failed = () if applied.elected is None else applied.elected.failures
        again = {one.election.outcome for one in failed}
        if again == {Outcome.STALE}:
            return self.options.plan_again(unused())
        if again or applied.elected is None:
            return "apply", file, *rescued_words(applied.rescued)
        return restore_words(applied.rescued, result.choices.plan) or ("verify", file)

    def _by_other_choice(self, way: NextChoice | None) -> tuple[str, ...]:
        if way is None:
            return ()
        return self.options.plan_again(unused(), strategy=way.strategy, accept_unchecked=way.accept_unchecked)


def _checked(choices: Choices) -> PreparedPlan:
    """The plan of the choices, of the partitions that are elected."""
    return checked_just_now(replace(choices.plan, not_elected=()))
