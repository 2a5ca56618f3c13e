"""Changes of the metadata quorum: voters and kraft.version."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from backends.base.membership import ChangeAnswer, Membership
from console.change.access import Access
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question
from console.change.unfinished_orders import unfinished_quorum
from console.errors import Status
from console.jobs.quorum.kraft_upgrade import UpgradeCheck, check_upgrade, upgrade
from console.jobs.quorum.prepared_change import PreparedChange, RequestedVoter, VoterChange
from console.jobs.quorum.replacement_plan import refuse_possible_only_voter
from console.jobs.quorum.voter_change import (
    VoterChangeResult,
    execute,
    is_done,
    prepare_add,
    prepare_remove,
    unregistered,
)
from console.reading.remembered_voters import quorum_problems, remember_new_voters
from recovery.model import Unknown, Why

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class ChangeVoters(Change[Membership, PreparedChange, VoterChangeResult]):
    """One voter added or removed, if the preflight allows it. ``title`` names the cluster in the question.
    ``unregister``: the registration of the controller is removed after its vote. ``not_rebuilt`` as in
    :func:`refuse_possible_only_voter`.
    """

    change: VoterChange
    given: RequestedVoter
    reason: str
    title: str
    unregister: bool = False
    not_rebuilt: bool = False

    async def settle(self, access: Access[Membership], run: ChangeRun[PreparedChange]) -> None:
        await tell_half_done_replacement(access.reading, run)

    async def prepare(
        self, cluster: Membership, cluster_id: str, operator: Operator[PreparedChange]
    ) -> PreparedChange:
        node, directory, endpoints = self.given
        if self.change is VoterChange.ADD:
            return await prepare_add(cluster, node, directory, endpoints)
        await refuse_possible_only_voter(cluster, (node,), not_rebuilt=self.not_rebuilt)
        return await prepare_remove(cluster, node, directory)

    def nothing_to_send(self, prepared: PreparedChange) -> VoterChangeResult | None:
        return None if prepared.verdict.allowed else VoterChangeResult(prepared, None, False)

    def question(self, prepared: PreparedChange) -> Question:
        means, number = "the node id", prepared.voter.key.id
        return Question.number(f"This will {prepared.sentence} ({self.title}).", means, number)

    async def recheck(
        self, cluster: Membership, prepared: PreparedChange, answer: str, operator: Operator[PreparedChange]
    ) -> PreparedChange:
        """Nothing to do here: :func:`execute` repeats the preflight and sends the change only if nothing
        differs from what was shown.
        """
        return prepared

    async def execute(
        self, cluster: Membership, prepared: PreparedChange, run: ChangeRun[PreparedChange]
    ) -> VoterChangeResult:
        with run.stop.in_flight():
            changed = await execute(cluster, prepared, run.journal, run.operator.says)
            if changed.done and self.unregister:
                changed = replace(changed, unregistered=await _unregistered(cluster, prepared, run))
            await remember_new_voters(cluster)
            if changed.done:
                run.operator.says(*(await quorum_problems(cluster)).texts)
        return changed

    def conclusion(self, result: VoterChangeResult) -> Conclusion:
        if result.unsent:
            return Conclusion(Status.DONE)
        left = self.unregister and not is_done(result.unregistered)
        status = Status.DONE if result.done and not left else Status.PARTLY
        return Conclusion(status, next=() if result.prepared.verdict.refused else ("quorum", "status"))


async def _unregistered(
    cluster: Membership, prepared: PreparedChange, run: ChangeRun[PreparedChange]
) -> ChangeAnswer | Unknown:
    """Not sent while the controller runs: it would be registered again within seconds (seen on 4.4.0)."""
    key = prepared.voter.key
    if key in prepared.verdict.before.up:
        tool = f"kafka-cluster.sh unregister-controller --id {key.id} --bootstrap-server HOST:PORT"
        return Unknown(Why.FAILED, f"it runs, and would register again within seconds: stop it, then {tool}")
    return await unregistered(cluster, key.id, run.journal)


class UpgradeResult(NamedTuple):
    """The problems found, the answer if the upgrade was sent, and whether the cluster ``confirmed`` the level."""

    check: UpgradeCheck
    answer: ChangeAnswer | None = None
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class UpgradeKraftVersion(Change[Membership, UpgradeCheck, UpgradeResult]):
    """Upgrades kraft.version from 0 to 1 if the check finds no problem."""

    reason: str

    async def settle(self, access: Access[Membership], run: ChangeRun[UpgradeCheck]) -> None:
        await tell_half_done_replacement(access.reading, run)

    async def prepare(
        self, cluster: Membership, cluster_id: str, operator: Operator[UpgradeCheck]
    ) -> UpgradeCheck:
        return await check_upgrade(cluster)

    def nothing_to_send(self, prepared: UpgradeCheck) -> UpgradeResult | None:
        return (
            UpgradeResult(prepared, None, prepared.already) if prepared.already or prepared.refused else None
        )

    def question(self, prepared: UpgradeCheck) -> Question:
        return Question.number("kraft.version cannot be lowered again.", "the new version", 1)

    async def recheck(
        self, cluster: Membership, prepared: UpgradeCheck, answer: str, operator: Operator[UpgradeCheck]
    ) -> UpgradeCheck:
        return await check_upgrade(cluster)

    async def execute(
        self, cluster: Membership, prepared: UpgradeCheck, run: ChangeRun[UpgradeCheck]
    ) -> UpgradeResult:
        with run.stop.in_flight():
            answer, confirmed = await upgrade(cluster, run.journal)
        return UpgradeResult(prepared, answer, confirmed)

    def conclusion(self, result: UpgradeResult) -> Conclusion:
        shown = result.answer is None and not result.check.refused
        return Conclusion(Status.DONE if result.confirmed or shown else Status.PARTLY)


async def tell_half_done_replacement(membership: Membership, run: ChangeRun[P]) -> None:
    """Says that an unfinished controller replacement can be continued from the current voter set."""
    half_done = (await unfinished_quorum(membership, run.cluster_id)).replacement
    if half_done is not None:
        run.operator.says(f"a controller replacement is half done: {half_done.file}")
