"""A broker that stays silent is waited for once, by whoever asks, and not again for a while."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem
from backends.live.nodes.brokers import SILENT_FOR, Unreached


class Brokers:
    """``answers`` are how attempts end, one after the other: with a connection (None), an error, or not before
    ``go``.
    """

    def __init__(self, *answers: ConnectionProblem | None) -> None:
        self.answers = list(answers)
        self.attempts = 0
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()

    async def connect(self, broker: int) -> BrokerConnection:
        self.attempts += 1
        self.asked.set()
        await self.go.wait()
        trouble = self.answers.pop(0)
        if trouble is not None:
            raise BrokerError(trouble, f"broker {broker}", str(trouble), sent=True)
        return cast("BrokerConnection", object())


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def attempt(unreached: Unreached, brokers: Brokers) -> BrokerError | None:
    try:
        await unreached.attempt(1, brokers.connect)
    except BrokerError as error:
        return error
    return None


@pytest.mark.parametrize("silent", [ConnectionProblem.CONNECT_TIMEOUT, ConnectionProblem.NO_ANSWER])
async def test_nobody_waits_again_for_a_broker_that_was_silent(silent: ConnectionProblem) -> None:
    clock, brokers = Clock(), Brokers(silent, None)
    unreached = Unreached(clock)
    first, second = await attempt(unreached, brokers), await attempt(unreached, brokers)
    assert first is not None and second is not None
    assert str(first) == str(second) and not first.remembered
    assert second.remembered and not second.sent, "certainly nothing was sent the second time"
    assert brokers.attempts == 1
    clock.now = SILENT_FOR + 1
    assert await attempt(unreached, brokers) is None, "a console's next look asks again"


async def test_who_is_to_go_on_asking_asks_again_at_once() -> None:
    brokers = Brokers(ConnectionProblem.NO_ANSWER, None)
    unreached = Unreached(Clock())
    await attempt(unreached, brokers)
    unreached.forget(1)
    assert await attempt(unreached, brokers) is None
    assert not unreached.lately(1)


async def test_a_broker_that_refuses_costs_nobody_time_and_may_be_back_at_once() -> None:
    brokers = Brokers(ConnectionProblem.REFUSED, None)
    unreached = Unreached(Clock())
    assert (await attempt(unreached, brokers)) is not None
    assert unreached.lately(1), "the others are asked first"
    assert await attempt(unreached, brokers) is None


async def test_two_attempts_at_once_wait_no_longer_than_the_first_of_them() -> None:
    """Each pool has its own: the one that began later would wait for its whole time after the other."""
    first, later = Brokers(ConnectionProblem.CONNECT_TIMEOUT), Brokers(None)
    later.go.clear()
    unreached = Unreached(Clock())
    waiting = asyncio.ensure_future(attempt(unreached, later))
    await later.asked.wait()
    await attempt(unreached, first)
    error = await waiting
    assert error is not None and error.remembered and error.trouble is ConnectionProblem.CONNECT_TIMEOUT


async def test_who_is_cancelled_is_cancelled_and_its_attempt_too() -> None:
    brokers = Brokers(None)
    brokers.go.clear()
    waiting = asyncio.ensure_future(Unreached(Clock()).attempt(1, brokers.connect))
    await brokers.asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
