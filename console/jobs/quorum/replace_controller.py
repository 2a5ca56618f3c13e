"""Replaces a controller, and continues a replacement that is half done."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from backends.base.membership import Membership
from console.change.access import Access
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question
from console.change.unfinished_orders import unfinished_quorum
from console.errors import InputError, NotDone, Status
from console.jobs.quorum.replacement_plan import ReplacementChoice, refuse_possible_only_voter
from console.jobs.quorum.replacement_run import (
    LoadedReplacement,
    make_replacement,
    read_replacement,
    refuse_replacement_of_other_cluster,
    run_replacement,
    save_replacement,
)
from console.jobs.quorum.replacement_steps import ReplacementResult, StopReason, Watcher, standing
from console.jobs.quorum.unfinished_voter_changes import BROKERS
from console.journal.change_kinds import REPLACE
from console.journal.unfinished_entries import Unfinished, unfinished
from console.signals import StopRequest
from recovery.membership.possible_only_voter import NOT_REBUILT
from recovery.membership.quorum import Quorum
from recovery.membership.replacement import ReplacementPlan, ReplacementStep
from recovery.model import TopicPartition

GIVE_UP = "give up"
"""The answer that gives up a replacement."""


UNASKED = ("--yes", "--reason", "TEXT")
"""The additional options of ``resume`` if nobody can be asked."""


class ReplacementStanding(NamedTuple):
    """A plan and its next ``step``; None: all steps are done."""

    planned: LoadedReplacement
    quorum: Quorum
    step: ReplacementStep | None


class ReplacementEnding(NamedTuple):
    """The ``result`` of a plan's run; None: the plan was only shown, or nothing was run. ``planned`` is None if no
    replacement is half done, or none any more.

    ``given_up``: it was given up. ``orders`` are partitions whose assignment may still have the order of an
    election, which only the brokers can revert. ``attended``: a person could be asked.
    """

    planned: LoadedReplacement | None = None
    result: ReplacementResult | None = None
    given_up: bool = False
    orders: tuple[TopicPartition, ...] = ()
    attended: bool = True


Watch = Callable[[LoadedReplacement, StopRequest], AbstractContextManager[Watcher]]
"""The watcher of a replacement, until it ends."""


@dataclass(frozen=True, slots=True)
class ReplaceController(Change[Membership, ReplacementStanding, ReplacementEnding]):
    """Carries out a plan from the cluster's current step. The watcher asks before each change of the voters.

    ``source`` is the plan, in ``file``, or the choice from which a plan is made and written to ``file``
    (None: under the state directory; with ``dry_run``, which only shows the plan, nowhere). ``confirmed`` are the
    steps that an operator reported as done; during the run this is possible only if it is ``attended``.
    ``give_up`` is the command that gives up another replacement. ``not_rebuilt`` as in ReplacementChoice.
    """

    source: ReplacementChoice | ReplacementPlan
    file: Path | None
    watch: Watch
    reason: str
    give_up: str = "ktriage resume --give-up"
    confirmed: frozenset[int] = frozenset()
    attended: bool = True
    dry_run: bool = False
    not_rebuilt: bool = False

    def without_lock(self, cluster_id: str) -> None:
        if isinstance(self.source, ReplacementPlan):
            refuse_replacement_of_other_cluster(self.source, cluster_id)
            refuse_unconfirmable(self.source, self.confirmed)

    async def settle(self, access: Access[Membership], run: ChangeRun[ReplacementStanding]) -> None:
        half_done = (await unfinished_quorum(access.reading, run.cluster_id)).replacement
        made = isinstance(self.source, ReplacementPlan)
        mine = self.file.resolve() if made and self.file is not None else None
        if half_done is not None and half_done.file != mine:
            raise NotDone(
                f"another replacement is half done ({half_done.file}); nothing was sent. Continue it first:"
                f" {run.resume_command}; or give it up and leave the voters as they are: {self.give_up}"
            )

    async def prepare(
        self, cluster: Membership, cluster_id: str, operator: Operator[ReplacementStanding]
    ) -> ReplacementStanding:
        file = self.file
        if isinstance(self.source, ReplacementPlan):
            plan = self.source
            leaving = [key.id for key in plan.wanted.leaving]
            await refuse_possible_only_voter(cluster, leaving, not_rebuilt=self.not_rebuilt)
        else:
            plan = await make_replacement(cluster, self.source)
            refuse_unconfirmable(plan, self.confirmed)
            if file is not None or not self.dry_run:
                file = save_replacement(plan, file)
        return await replacement_standing(cluster, LoadedReplacement.of(plan, file, self.confirmed))

    def nothing_to_send(self, prepared: ReplacementStanding) -> ReplacementEnding | None:
        return None

    def question(self, prepared: ReplacementStanding) -> Question:
        refused = f"not confirmed; nothing was sent. The plan is {prepared.planned.file}"
        return Question("Carry out these steps now? Type yes:", ("yes",), refused)

    async def recheck(
        self,
        cluster: Membership,
        prepared: ReplacementStanding,
        answer: str,
        operator: Operator[ReplacementStanding],
    ) -> ReplacementStanding:
        """Nothing to do here: the run reads the quorum before each step, and asks again before each change of
        the voters.
        """
        return prepared

    async def execute(
        self, cluster: Membership, prepared: ReplacementStanding, run: ChangeRun[ReplacementStanding]
    ) -> ReplacementEnding:
        planned = prepared.planned
        return ReplacementEnding(
            planned, await _carried_out(self, cluster, planned, run), attended=self.attended
        )

    def conclusion(self, result: ReplacementEnding) -> Conclusion:
        return conclusion_of(result, not_rebuilt=self.not_rebuilt)


async def _carried_out(
    change: ReplaceController | ResumeReplacement,
    cluster: Membership,
    planned: LoadedReplacement,
    run: ChangeRun[Any],
) -> ReplacementResult:
    """The plan, step by step, as the change watches it."""
    with change.watch(planned, run.stop) as watcher:
        return await run_replacement(
            cluster,
            planned,
            run.journal,
            watcher,
            run.stop,
            attended=change.attended,
            not_rebuilt=change.not_rebuilt,
        )


class HalfDoneReplacement(NamedTuple):
    """What the journal shows; ``planned`` is None if it is given up."""

    found: Unfinished
    planned: LoadedReplacement | None


@dataclass(frozen=True, slots=True)
class ResumeReplacement(Change[Membership, HalfDoneReplacement, ReplacementEnding]):
    """Continues the replacement that the journal shows as half done, or the one in ``file``.

    ``ask``: a person can be asked whether to continue. ``agreed``: the operator agreed beforehand to changes
    of the voters. Without ``ask`` and ``agreed`` nothing is sent. ``forget``: the replacement is given up,
    and the voters stay as they are. ``brokers``: the cluster is reached through its brokers. ``not_rebuilt`` as in
    ReplacementChoice.
    """

    file: Path | None
    watch: Watch
    reason: str = "resume"
    give_up: str = "ktriage resume --give-up"
    confirmed: frozenset[int] = frozenset()
    attended: bool = True
    ask: bool = True
    agreed: bool = False
    forget: bool = False
    brokers: bool = True
    not_rebuilt: bool = False

    def without_lock(self, cluster_id: str) -> ReplacementEnding | None:
        none = self.file is None and unfinished(cluster_id).replacement is None
        return ReplacementEnding() if none else None

    async def prepare(
        self, cluster: Membership, cluster_id: str, operator: Operator[HalfDoneReplacement]
    ) -> HalfDoneReplacement:
        found = await unfinished_quorum(cluster, cluster_id)
        half_done = found.replacement
        path = self.file or (half_done.file if half_done is not None else None)
        if path is None or self.forget:
            return HalfDoneReplacement(found, None)
        try:
            plan = read_replacement(path)
        except InputError as error:
            raise InputError(
                f"{error}; without its plan the replacement can only be given up, which leaves the voters"
                f" as they are: {self.give_up}"
            ) from None
        refuse_replacement_of_other_cluster(plan, cluster_id)
        refuse_unconfirmable(plan, self.confirmed)
        leaving = [key.id for key in plan.wanted.leaving]
        await refuse_possible_only_voter(cluster, leaving, not_rebuilt=self.not_rebuilt)
        return HalfDoneReplacement(found, LoadedReplacement.of(plan, path, self.confirmed))

    def nothing_to_send(self, prepared: HalfDoneReplacement) -> ReplacementEnding | None:
        ended = prepared.planned is None and not self.forget and not prepared.found.of(REPLACE)
        return ReplacementEnding() if ended else None

    def question(self, prepared: HalfDoneReplacement) -> Question | None:
        if prepared.planned is None or not self.ask:
            return None
        text = (
            f"a controller replacement is half done ({prepared.planned.file}). Type go to continue it, or"
            " give up to give it up:"
        )
        return Question(text, ("go", GIVE_UP))

    async def recheck(
        self,
        cluster: Membership,
        prepared: HalfDoneReplacement,
        answer: str,
        operator: Operator[HalfDoneReplacement],
    ) -> HalfDoneReplacement:
        """Nothing to do here: the run reads the quorum before each step."""
        return prepared._replace(planned=None) if answer == GIVE_UP else prepared

    async def execute(
        self, cluster: Membership, prepared: HalfDoneReplacement, run: ChangeRun[HalfDoneReplacement]
    ) -> ReplacementEnding:
        found, planned = prepared
        if planned is None:
            entries = [entry.entry for entry in found.of(REPLACE)]
            run.journal.settle("given up by the operator", entries=entries)
            run.operator.says("given up: the voters stay as they are; see ktriage quorum status")
            return ReplacementEnding(given_up=True)
        orders = () if self.brokers else tuple(sorted({order.written.tp for order in found.orders}))
        if orders:
            run.operator.says(f"not reverted: {', '.join(map(str, orders))}: {BROKERS}")
        result = None if self.ask or self.agreed else await self._unasked(cluster, planned, run)
        if result is None:
            result = await _carried_out(self, cluster, planned, run)
        return ReplacementEnding(planned, result, orders=orders, attended=self.attended)

    async def _unasked(
        self, cluster: Membership, planned: LoadedReplacement, run: ChangeRun[HalfDoneReplacement]
    ) -> ReplacementResult | None:
        """Refuses the run if nobody can be asked and voters would be changed; None: no such change is left."""
        _, quorum, step = await replacement_standing(cluster, planned)
        steps = planned.plan.steps
        left = [] if step is None else [s for s in steps if s.number >= step.number and s.kind.sends]
        if not left:
            return None
        changes = "; ".join(f"step {s.number}, {s.title}" for s in left)
        run.operator.says(
            f"a controller replacement is half done ({planned.file}); continuing it would send {changes}",
            "there is no terminal to ask on: give --yes and --reason TEXT; nothing was sent",
        )
        return ReplacementResult(StopReason.UNATTENDED, step, None, quorum)

    def conclusion(self, result: ReplacementEnding) -> Conclusion:
        return conclusion_of(result, not_rebuilt=self.not_rebuilt)


async def replacement_standing(membership: Membership, planned: LoadedReplacement) -> ReplacementStanding:
    """The current state of a replacement, with the steps that operators confirmed in earlier runs. Raises
    BackendError.
    """
    plan = planned.plan
    found = await unfinished_quorum(membership, planned.cluster_id)
    confirmed = found.confirmed_steps(plan.header.plan_id)
    picture, step = await standing(membership, plan, planned.confirmed | confirmed)
    return ReplacementStanding(planned, picture.quorum, step)


def conclusion_of(ending: ReplacementEnding, *, not_rebuilt: bool = False) -> Conclusion:
    """The exit status of a replacement, and the next command: it carries out a plan that was only shown."""
    planned, result = ending.planned, ending.result
    known = (NOT_REBUILT,) if not_rebuilt else ()
    if result is None:
        file = None if planned is None else planned.file
        return Conclusion(
            Status.DONE, next=() if file is None else ("quorum", "replace", "--plan", str(file), *known)
        )
    if result.reason is StopReason.DONE:
        status = Status.PARTLY if ending.orders else Status.DONE
        return Conclusion(status, next=("quorum", "status"))
    confirmable = (
        result.step is not None
        and result.step.kind.operator_confirms
        and result.reason is not StopReason.UNATTENDED
    )
    options = ("--confirmed", str(result.step.number)) if result.step is not None and confirmable else ()
    unasked = () if ending.attended else UNASKED
    return Conclusion(Status.PARTLY, unfinished=True, next=("resume", *options, *known, *unasked))


def refuse_unconfirmable(plan: ReplacementPlan, confirmed: frozenset[int]) -> None:
    """Raises InputError if a confirmed step does not exist, or if the cluster itself shows whether it is
    done.
    """
    said = {step.number for step in plan.steps if step.kind.operator_confirms}
    wrong = sorted(confirmed - said)
    if wrong:
        may = (
            f"of this plan only {', '.join(map(str, sorted(said)))} can be confirmed"
            if said
            else ("the cluster itself shows every step of this plan")
        )
        raise InputError(f"--confirmed {wrong[0]}: {may}; nothing was sent")
