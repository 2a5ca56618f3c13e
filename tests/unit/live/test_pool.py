"""One connection for each broker, to where it is now, and none that outlives the pool."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from backends.live.connections.connection import BrokerConnection
from backends.live.connections.pool import NOT_BEGUN, Pool
from backends.live.errors import BrokerError, ConnectionProblem


class Connection:
    """An open connection to an address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Brokers:
    """``addresses`` are where they listen now; ``opened`` all connections."""

    def __init__(self) -> None:
        self.addresses = {1: "here"}
        self.opened: list[Connection] = []
        self.asked = asyncio.Event()
        self.may_open = asyncio.Event()
        self.may_open.set()

    async def connect(self, broker: int) -> BrokerConnection:
        address = self.addresses[broker]
        self.asked.set()
        try:
            await self.may_open.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # as a connection that is just being established
        self.opened.append(Connection(address))
        return cast("BrokerConnection", self.opened[-1])

    def fits(self, broker: int, connection: BrokerConnection) -> bool:
        return connection.address == self.addresses[broker]  # type: ignore[comparison-overlap]  # a word here


async def test_a_broker_that_has_moved_is_asked_where_it_is_now_and_the_former_connection_is_closed() -> None:
    brokers = Brokers()
    pool = Pool(brokers.connect, brokers.fits)
    first = await pool.get(1)
    assert await pool.get(1) is first
    brokers.addresses[1] = "there"
    second = await pool.get(1)
    assert cast("Connection", second).address == "there"
    assert [one.closed for one in brokers.opened] == [True, False]


async def test_concurrent_callers_share_one_connection() -> None:
    brokers = Brokers()
    pool = Pool(brokers.connect, brokers.fits)
    one, other = await asyncio.gather(pool.get(1), pool.get(1))
    assert one is other and len(brokers.opened) == 1


async def test_a_connection_that_opens_after_the_end_does_not_stay_open() -> None:
    brokers = Brokers()
    brokers.may_open.clear()
    pool = Pool(brokers.connect, brokers.fits)
    waiting = asyncio.ensure_future(pool.get(1))
    await brokers.asked.wait()
    await pool.close()
    await asyncio.gather(waiting, return_exceptions=True)
    assert [one.closed for one in brokers.opened] == [True]
    with pytest.raises(BrokerError, match="closed here"):
        await pool.get(1)


async def test_who_gives_up_waiting_takes_the_connection_from_nobody_else() -> None:
    begun, may_open = asyncio.Event(), asyncio.Event()

    async def connect(_broker: int) -> BrokerConnection:
        begun.set()
        await may_open.wait()
        return cast("BrokerConnection", Connection("here"))

    pool = Pool(connect, lambda _broker, _connection: True)
    first, second = asyncio.ensure_future(pool.get(1)), asyncio.ensure_future(pool.get(1))
    await begun.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    may_open.set()
    assert not (await second).closed


async def test_a_connection_that_is_being_checked_is_waited_for_and_no_second_one_is_opened() -> None:
    brokers = Brokers()
    pool = Pool(brokers.connect, brokers.fits)
    may_pass = asyncio.Event()

    async def check(_: BrokerConnection) -> None:
        await may_pass.wait()

    adopted, too_late = Connection("here"), Connection("here")
    assert pool.steps(1) == NOT_BEGUN
    pool.adopt(1, cast("BrokerConnection", adopted), check)
    assert 0 < pool.steps(1) < NOT_BEGUN
    pool.adopt(1, cast("BrokerConnection", too_late), check)
    assert too_late.closed
    may_pass.set()
    assert cast("Connection", await pool.get(1)) is adopted
    assert (adopted.closed, pool.steps(1), brokers.opened) == (False, 0, [])


async def test_who_is_being_checked_is_asked_before_who_is_still_being_opened() -> None:
    brokers = Brokers()
    brokers.addresses[2] = "there"
    brokers.may_open.clear()
    pool = Pool(brokers.connect, brokers.fits)

    async def check(_: BrokerConnection) -> None:
        await brokers.may_open.wait()

    pool.adopt(1, cast("BrokerConnection", Connection("here")), check)
    opening = asyncio.ensure_future(pool.get(2))
    await brokers.asked.wait()
    assert 0 < pool.steps(1) < pool.steps(2) < NOT_BEGUN
    brokers.may_open.set()
    await opening
    assert pool.steps(1) == pool.steps(2) == 0


async def test_a_connection_whose_check_fails_is_closed_and_another_one_is_opened() -> None:
    brokers = Brokers()
    pool = Pool(brokers.connect, brokers.fits)

    async def check(_: BrokerConnection) -> None:
        raise BrokerError(ConnectionProblem.WRONG_NODE, "broker 1", "another broker answers there")

    adopted = Connection("here")
    pool.adopt(1, cast("BrokerConnection", adopted), check)
    with pytest.raises(BrokerError, match="another broker answers there"):
        await pool.get(1)
    assert adopted.closed
    assert cast("Connection", await pool.get(1)) is brokers.opened[0]


async def test_a_connection_that_is_still_checked_is_closed_with_the_pool() -> None:
    brokers = Brokers()
    pool = Pool(brokers.connect, brokers.fits)

    async def check(_: BrokerConnection) -> None:
        await asyncio.Event().wait()

    adopted = Connection("here")
    pool.adopt(1, cast("BrokerConnection", adopted), check)
    await pool.close()
    assert adopted.closed
