"""Recovery in one command (KIP-966, ``kafka-unclean-recovery``): survey, choose, elect, read the result back."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from backends.base.protocol import Backend, Progress
from console.exit_status import Status
from console.operations.access import Access
from console.operations.change import Change, ChangeRun, Conclusion, Operator, Question, settle_orders
from console.operations.election_batches import Elected, carry_out, failure_text
from console.operations.leader_choice import Choices, choose
from console.operations.partition_picture import Depths, examine
from console.operations.partition_selection import Selection
from console.operations.plan_comparison import PreparedPlan, checked_just_now, loss_question, still_holding
from console.provenance import plan_header
from console.saved_plans import save_plan
from recovery.model import TopicPartition
from recovery.plan.judgement import Judgement, RowDecision
from recovery.plan.values import NotElected
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy


@dataclass(frozen=True, slots=True)
class Recovery:
    """The choices and their results; ``elected`` is None if there was nothing to send.

    ``moved`` are the rows of the choice that were refused when they were compared again. ``file`` is where the plan
    was saved before it was carried out.
    """

    choices: Choices
    elected: Elected | None
    moved: tuple[Judgement, ...] = ()
    file: Path | None = None

    @property
    def left_over(self) -> tuple[NotElected, ...]:
        """Partitions of the input that stay without a leader because nobody was chosen."""
        return tuple(
            row for row in self.choices.plan.not_elected if row.verdict is not DecisionKind.ALREADY_ONLINE
        )

    @property
    def refused(self) -> tuple[Judgement, ...]:
        """The rows of the choice that do not hold any more, and that the planned leader does not lead either."""
        return tuple(check for check in self.moved if check.decision is not RowDecision.ALREADY_ONLINE)

    @property
    def stale(self) -> bool:
        """All chosen rows were stale, and nothing was sent: survey and choose again."""
        return self.elected is None and any(check.decision is RowDecision.STALE for check in self.refused)

    @property
    def failures(self) -> tuple[tuple[TopicPartition, str], ...]:
        """Every partition that was not recovered, with the reason in one line."""
        left = tuple((row.tp, f"{row.verdict}: {row.reason}") for row in self.left_over)
        refused = tuple((check.tp, f"{check.decision}: {check.detail}") for check in self.refused)
        failed = self.elected.failures if self.elected is not None else ()
        return (*left, *refused, *((result.row.tp, failure_text(result)) for result in failed))

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of partitions by outcome, those for which nothing was sent included."""
        found = Counter(str(row.verdict) for row in self.choices.plan.not_elected)
        found.update(str(check.decision) for check in self.moved)
        elected = self.elected.counts if self.elected is not None else {}
        found.update({str(outcome): count for outcome, count in elected.items()})
        return found


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """Which partitions are recovered, and how their leaders are chosen; brokers have ``seconds`` to answer."""

    selection: Selection
    ranking: Ranking = Ranking.LAST_RECORD
    strategy: Strategy = Strategy.BALANCED
    seconds: float = 30.0


async def survey_and_choose(
    cluster: Backend, options: ChoiceOptions, progress: Progress | None = None
) -> Choices:
    """Surveys the partitions and chooses a leader for each. Raises ConsoleError and BackendError."""
    info = await cluster.cluster()
    picture = await examine(cluster, info, options.selection, Depths(options.seconds), progress, health=True)
    return await choose(cluster, picture, plan_header(info.cluster_id, options.ranking, options.strategy))


class Chosen(NamedTuple):
    """A choice, and its plan compared with the cluster."""

    choices: Choices
    prepared: PreparedPlan


@dataclass(frozen=True, slots=True)
class RecoverPartitions(Change[Backend, Chosen, Recovery]):
    """Chooses leaders and elects them; the plan is saved before. ``title`` names the cluster in the question."""

    options: ChoiceOptions
    reason: str
    title: str
    attempts: int = 3

    async def settle(self, access: Access[Backend], run: ChangeRun[Chosen]) -> None:
        await settle_orders(access, run)

    async def prepare(self, cluster: Backend, cluster_id: str, operator: Operator[Chosen]) -> Chosen:
        choices = await survey_and_choose(cluster, self.options, operator.progress)
        return Chosen(choices, checked_just_now(replace(choices.plan, not_elected=())))

    def unsent(self, prepared: Chosen) -> Recovery | None:
        if prepared.prepared.holding.rows:
            return None
        return Recovery(prepared.choices, None, prepared.prepared.not_holding)

    def question(self, prepared: Chosen) -> Question:
        return loss_question(prepared.prepared.holding, self.title)

    async def compare_again(
        self, cluster: Backend, prepared: Chosen, answer: str, operator: Operator[Chosen]
    ) -> Chosen:
        return prepared._replace(prepared=await still_holding(cluster, prepared.prepared, operator.progress))

    async def carry_out(self, cluster: Backend, prepared: Chosen, run: ChangeRun[Chosen]) -> Recovery:
        plan = prepared.prepared.holding
        file = save_plan(plan)
        run.operator.says(f"the plan is saved in {file}")
        elected = await carry_out(
            cluster,
            plan,
            run.journal,
            attempts=self.attempts,
            stop=run.stop,
            progress=run.operator.progress,
        )
        return Recovery(prepared.choices, elected, prepared.prepared.not_holding, file)

    def conclusion(self, result: Recovery) -> Conclusion:
        unrestored = result.elected is not None and bool(result.elected.unrestored)
        partly = result.failures or result.choices.picture.unseen
        status = Status.STALE if result.stale else Status.PARTLY if partly else Status.DONE
        return Conclusion(status, result.counts, unfinished=unrestored)
