"""How long a change of the voters is waited for where nobody leads any more: real time, and it is told."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from console.change.elapsed_time import ElapsedWait
from console.jobs.quorum import endpoint_update, kraft_upgrade, replacement_steps, voter_change
from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from console.jobs.quorum.replacement_steps import ReplacementResult, StopReason, go_through
from console.jobs.quorum.voter_change import VoterChangeResult, execute, prepare_remove
from recovery.membership.replacement import ReplacementKind, ReplacementStep
from recovery.membership.voters import VoterEndpoint
from tests.unit.membership.leaderless_quorum import Clock, Leaderless
from tests.unit.membership.random_replacement import HEADER, Never, Notes, Operator, cluster


def test_looks_that_take_long_count_as_time_and_what_is_waited_for_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, told = Clock(), list[str]()
    monkeypatch.setattr(voter_change, "ElapsedWait", lambda membership: ElapsedWait(membership, clock))

    async def go() -> VoterChangeResult:
        backend = cluster((100, 101, 102))
        await backend.open()
        membership: Any = Leaderless(backend.membership, clock)
        prepared = await prepare_remove(membership, 102, None)
        return await execute(membership, prepared, Notes(), told.append)

    changed = asyncio.run(go())
    assert changed.done is None
    assert clock.now <= 16.0
    assert told[0].startswith("sent: remove voter 102-")
    assert "waiting at most 30 s for the commit" in told[0]
    assert "REQUEST_TIMED_OUT" in told[1]
    assert told[2:] == ["not visible yet: nobody leads"]


def test_the_upgrade_is_looked_for_no_longer_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(kraft_upgrade, "ElapsedWait", partial(ElapsedWait, clock=clock))

    async def go() -> bool:
        backend = cluster((100, 101, 102), kraft_version=0)
        await backend.open()
        membership: Any = Leaderless(backend.membership, clock)
        _, seen = await kraft_upgrade.upgrade(membership, Notes())
        return seen

    assert not asyncio.run(go())
    assert clock.now <= kraft_upgrade.CONFIRM_WITHIN + 4.0


def test_a_new_endpoint_is_waited_for_no_longer_than_it_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(endpoint_update, "ElapsedWait", partial(ElapsedWait, clock=clock))
    monkeypatch.setattr(endpoint_update, "PATIENCE", 20.0)
    wanted = (VoterEndpoint("CONTROLLER", "kafka-101.new", 9093),)

    class Quiet:
        class screen:  # the run's
            say = staticmethod(lambda *_lines: None)

    async def go() -> bool:
        backend = cluster((100, 101, 102))
        await backend.open()
        membership: Any = Leaderless(backend.membership, clock, lost=True)
        run: Any = Quiet()
        stop: Any = Never()
        return await endpoint_update._until(run, membership, 101, wanted, stop)

    assert not asyncio.run(go())
    assert clock.now <= 24.0


class Thinks(Operator):
    """Takes long to answer."""

    clock: Clock
    thinks = 0.0

    async def allows(self, step: ReplacementStep, prepared: PreparedChange) -> bool:  # noqa: ARG002  # the protocol's
        self.clock.now += self.thinks
        return True


async def shrunk(clock: Clock, *, thinks: float, loses: bool) -> ReplacementResult:
    """102 is to go, with a patience of 60 seconds."""
    backend = cluster((100, 101, 102))
    await backend.open()
    plan = await plan_replacement(
        backend.membership, ReplacementChoice(ReplacementKind.SHRINK, (102,)), HEADER
    )
    operator = Thinks(backend.simulation.world, plan)
    operator.clock, operator.thinks = clock, thinks
    membership: Any = Leaderless(backend.membership, clock) if loses else backend.membership
    return await go_through(membership, plan, Notes(), operator, Never(), patience=60.0)


def test_a_replacement_is_given_up_in_time_where_nobody_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for module in (replacement_steps, voter_change):
        monkeypatch.setattr(module, "ElapsedWait", partial(ElapsedWait, clock=clock))
    gone = asyncio.run(shrunk(clock, thinks=0.0, loses=True))
    assert gone.reason is StopReason.TOO_LONG
    assert clock.now <= 90.0


def test_a_person_may_take_longer_than_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(replacement_steps, "ElapsedWait", partial(ElapsedWait, clock=clock))
    assert asyncio.run(shrunk(clock, thinks=1000.0, loses=False)).reason is StopReason.DONE


def test_what_a_person_takes_is_not_counted() -> None:
    clock = Clock()

    async def go() -> None:
        backend = cluster((100,))
        await backend.open()
        waited = ElapsedWait(backend.membership, clock)
        await waited.pause(3.0)
        assert waited.seconds == 3.0
        clock.now += 5.0
        assert waited.seconds == 5.0
        with waited.not_counted():
            clock.now += 1000.0
        assert waited.seconds == 5.0
        waited.restart()
        assert waited.seconds == 0.0

    asyncio.run(go())
