"""One question for a disk's removal and the addition that follows: what it covers, and when it is asked anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from backends.simulator.adapter import SimulatorBackend
from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.replacement_consent import Consent
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from console.jobs.quorum.voter_change import VoterChangeResult, prepare_add, prepare_remove
from recovery.membership.replacement import ReplacementKind, ReplacementStep, StepKind
from tests.unit.membership.random_replacement import HEADER, Notes, cluster

VOTERS = (100, 101, 102, 103, 104)
Between = Callable[[SimulatorBackend], Awaitable[None]]


async def nothing(_backend: SimulatorBackend) -> None:
    """All stays as it is."""


async def agreed(between: Between) -> tuple[Consent, ReplacementStep, PreparedChange]:
    """102 has a new disk; its removal was allowed and carried out. The addition, prepared after ``between``."""
    backend = cluster(VOTERS)
    await backend.open()
    world, membership = backend.simulation.world, backend.membership
    plan = await plan_replacement(membership, ReplacementChoice(ReplacementKind.DISK, (102,)), HEADER)
    world.kill_controller(102)
    world.replace_controller_disk(102)
    world.start_controller(102)
    await backend.advance(60.0)
    remove, add = (next(s for s in plan.steps if s.kind is kind) for kind in (StepKind.REMOVE, StepKind.ADD))
    assert remove.key is not None
    taken = await prepare_remove(membership, 102, remove.key.directory_id)
    consent = Consent(plan)
    assert f"{taken.sentence} and then add voter 102-" in consent.question(remove, taken)
    assert not consent.covers(remove, taken), "nobody was asked yet"
    consent.given(remove, taken)
    assert not consent.covers(remove, taken), "a removal is asked for each time"
    consent.changed(VoterChangeResult(taken, await membership.remove_voter(taken.voter.key, Notes()), True))
    await between(backend)
    prepared = await prepare_add(membership, 102, None)
    consent.judged(add, prepared)
    return consent, add, prepared


def test_the_addition_is_covered_while_all_is_as_it_was_agreed_to() -> None:
    consent, add, prepared = asyncio.run(agreed(nothing))
    assert prepared.verdict.allowed
    assert consent.covers(add, prepared)
    assert consent.question(add, prepared) == prepared.sentence


def test_it_is_asked_for_anew_where_another_voter_went_down_in_between() -> None:
    async def dies(backend: SimulatorBackend) -> None:
        quorum = await backend.membership.describe()
        follower = next(node for node in VOTERS if node not in (102, quorum.leader.id))
        backend.simulation.world.kill_controller(follower)
        await backend.advance(8.0)

    consent, add, prepared = asyncio.run(agreed(dies))
    assert prepared.verdict.allowed, "four of five: it may be added, once somebody has seen that"
    assert not consent.covers(add, prepared)


def test_it_is_asked_for_anew_where_the_node_has_yet_another_disk() -> None:
    async def swaps(backend: SimulatorBackend) -> None:
        world = backend.simulation.world
        world.kill_controller(102)
        world.replace_controller_disk(102)
        world.start_controller(102)
        await backend.advance(400.0)

    consent, add, prepared = asyncio.run(agreed(swaps))
    assert not consent.covers(add, prepared)


def test_what_was_held_back_at_the_last_moment_is_asked_for_anew() -> None:
    consent, add, prepared = asyncio.run(agreed(nothing))
    consent.changed(
        VoterChangeResult(prepared, None, False, detail="the quorum has changed since this was shown")
    )
    assert not consent.covers(add, prepared)
