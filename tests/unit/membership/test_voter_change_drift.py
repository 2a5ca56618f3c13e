"""A change of the voters whose preflight is as old as somebody's answer: it is made anew, and obeyed."""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from console.jobs.quorum.replacement_steps import ReplacementResult, StopReason, go_through
from console.jobs.quorum.voter_change import VoterChangeResult, execute, prepare_add, prepare_remove
from console.jobs.quorum.wizard_screens.wizard import Bridge, ReplacementProgress
from console.signals import StopRequest
from recovery.membership.replacement import ReplacementKind, ReplacementStep, StepKind
from tests.unit.membership.random_replacement import HEADER, Never, Notes, Operator, cluster


class Slow(Operator):
    """A person who takes eight seconds to answer; controller 101 dies meanwhile, and comes back after a refusal."""

    async def allows(self, step: ReplacementStep, prepared: PreparedChange) -> bool:
        await self.asks()
        return True

    asks: Callable[[], Any]
    asked = 0

    def changed(self, step: ReplacementStep, changed: VoterChangeResult) -> None:
        super().changed(step, changed)
        self.said.append(changed.detail)
        if changed.answer is None:
            self.world.start_controller(101)


async def shrunk(killed: bool) -> tuple[ReplacementResult, Slow, Notes]:
    """102 of three voters is to go."""
    backend = cluster((100, 101, 102))
    await backend.open()
    plan = await plan_replacement(
        backend.membership, ReplacementChoice(ReplacementKind.SHRINK, (102,)), HEADER
    )
    operator, notes = Slow(backend.simulation.world, plan), Notes()
    once = [killed]

    async def asks() -> None:
        if once and once.pop():
            backend.simulation.world.kill_controller(101)
        await backend.advance(8.0)
        operator.asked += 1

    operator.asks = asks
    gone = await go_through(backend.membership, plan, notes, operator, Never(), patience=60.0)
    return gone, operator, notes


def test_a_voter_that_dies_while_the_question_stands_holds_the_removal_back() -> None:
    gone, operator, notes = asyncio.run(shrunk(killed=True))
    (refused,) = [said for said in operator.said if "has changed since" in said]
    assert "101" in refused
    assert "does not fetch any more, or is behind" in refused
    assert "the new set could not commit" in refused
    # It is looked at again, and asked again once the other voter is back.
    assert gone.reason is StopReason.DONE
    assert operator.asked == 2
    assert notes.actions == ["remove-voter"]


def test_an_answer_that_takes_long_is_no_reason_by_itself() -> None:
    gone, operator, notes = asyncio.run(shrunk(killed=False))
    assert gone.reason is StopReason.DONE
    assert operator.asked == 1
    assert notes.actions == ["remove-voter"]


def test_another_disk_than_the_one_that_was_shown_is_not_added() -> None:
    async def go() -> tuple[VoterChangeResult, Notes]:
        backend, notes = cluster((100, 101, 102), (103,)), Notes()
        await backend.open()
        world = backend.simulation.world
        world.start_controller(103)
        await backend.advance(8.0)
        prepared = await prepare_add(backend.membership, 103, None)
        assert prepared.verdict.allowed
        world.kill_controller(103)
        world.replace_controller_disk(103)
        world.start_controller(103)
        await backend.advance(60.0)
        return await execute(backend.membership, prepared, notes), notes

    changed, notes = asyncio.run(go())
    assert changed.answer is None
    assert changed.done is False
    assert "node 103 was 103-" in changed.detail
    assert notes.actions == []


def test_a_voter_that_somebody_else_removed_meanwhile_is_told() -> None:
    async def go() -> tuple[VoterChangeResult, Notes]:
        backend, notes = cluster((100, 101, 102)), Notes()
        await backend.open()
        prepared = await prepare_remove(backend.membership, 102, None)
        await backend.membership.remove_voter(prepared.voter.key, Notes())
        await backend.advance(8.0)
        return await execute(backend.membership, prepared, notes), notes

    changed, notes = asyncio.run(go())
    assert changed.answer is None
    assert "VOTER_NOT_FOUND" in changed.detail
    assert notes.actions == []


def test_a_voter_that_came_back_meanwhile_is_no_reason_against_it() -> None:
    async def go() -> VoterChangeResult:
        backend = cluster((100, 101, 102, 103, 104))
        await backend.open()
        backend.simulation.world.kill_controller(104)
        await backend.advance(8.0)
        prepared = await prepare_remove(backend.membership, 102, None)
        backend.simulation.world.start_controller(104)
        await backend.advance(8.0)
        return await execute(backend.membership, prepared, Notes())

    assert asyncio.run(go()).done


def test_the_wizard_sends_nothing_on_an_old_answer_and_says_so() -> None:
    async def go() -> tuple[ReplacementResult, list[str], Notes]:
        backend, notes, said = cluster((100, 101, 102)), Notes(), list[str]()
        await backend.open()
        plan = await plan_replacement(
            backend.membership, ReplacementChoice(ReplacementKind.SHRINK, (102,)), HEADER
        )
        world, answers = backend.simulation.world, list[asyncio.Task[None]]()

        async def answer(question: PreparedChange) -> None:
            if not answers[1:]:
                world.kill_controller(101)
                await backend.advance(8.0)
            bridge.allow(question)

        def show(told: ReplacementProgress) -> None:
            said.append(told.said)
            if told.said.startswith("not sent: ") and 101 not in world.controllers:
                world.start_controller(101)
            if told.question is not None and told.question is not asked[-1]:
                asked.append(told.question)
                answers.append(asyncio.ensure_future(answer(told.question)))

        asked: list[PreparedChange | None] = [None]
        everything = frozenset(step.number for step in plan.steps if step.kind.operator_confirms)
        bridge = Bridge(show, StopRequest(), plan, everything)
        gone = await go_through(backend.membership, plan, notes, bridge, Never(), patience=60.0)
        await asyncio.gather(*answers)
        return gone, said, notes

    gone, said, notes = asyncio.run(go())
    assert any("not sent: the quorum has changed since this was shown: 101-" in text for text in said)
    assert "reading the quorum once more" in said
    assert any(text.startswith("sent: remove voter 102-") for text in said)
    # Nobody stops the controller that is no voter any more.
    assert gone.step is not None
    assert gone.step.kind is StepKind.STOP
    assert notes.actions == ["remove-voter"]
