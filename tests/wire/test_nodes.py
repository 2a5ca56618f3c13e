"""What a client meets at the port of a node that is dead, cut off or only starting, and when it is well again."""

from __future__ import annotations

import asyncio
from struct import pack

import pytest

from backends.simulator.network import NetworkNode, broker, controller
from backends.simulator.scenario.files import read
from backends.simulator.served.control_socket import checked, inject, read_fault
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from tests.wire.response_faults import SCENARIO

HELLO = pack(">ihhih", 10, 18, 0, 1, -1)
HANG_SECONDS = 30.0
SILENCE = 0.3
ANSWERS, REFUSES, HANGS, CLOSES = "answers", "refuses", "hangs", "closes"
"""A node that hangs says nothing for as long as anybody waits; SILENCE seconds stand for that."""


async def met(served: ServedCluster, node: NetworkNode) -> str:
    """What one connection and one ApiVersions request meet."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.ports[node])
    except ConnectionRefusedError:
        return REFUSES
    except ConnectionResetError:
        return CLOSES
    try:
        writer.write(HELLO)
        async with asyncio.timeout(SILENCE):
            return ANSWERS if await reader.read(4) else CLOSES
    except TimeoutError:
        return HANGS
    except ConnectionResetError:
        return CLOSES
    finally:
        writer.transport.abort()


async def until(served: ServedCluster, node: NetworkNode, what: str) -> None:
    """Listening follows a moment after the node."""
    async with asyncio.timeout(HANG_SECONDS):
        while await met(served, node) != what:  # noqa: ASYNC110  # sockets set no event
            await asyncio.sleep(0.02)


def happen(served: ServedCluster, words: str) -> None:
    inject(served, checked(read_fault(words.split())))


def still() -> ServedCluster:
    return ServedCluster(read(str(SCENARIO)), ServedClusterOptions(speed=0))


@pytest.mark.parametrize(
    ("fault", "node", "meets", "undone"),
    [
        ("kill broker-1", broker(1), REFUSES, "start broker-1"),
        ("shut-down broker-4", broker(4), REFUSES, "start broker-4"),
        ("kill-controller controller-101", controller(101), REFUSES, "start-controller controller-101"),
        ("power-off broker-2", broker(2), HANGS, "start broker-2"),
        ("cut broker-2 others=[operator]", broker(2), HANGS, "heal"),
        ("cut controller-100 others=[operator]", controller(100), HANGS, "heal"),
    ],
)
async def test_a_node_that_is_away_refuses_or_hangs_and_answers_when_it_is_back(
    fault: str, node: NetworkNode, meets: str, undone: str
) -> None:
    async with still() as served:
        assert await met(served, node) == ANSWERS
        happen(served, fault)
        served.clock.step(5)
        await until(served, node, meets)
        happen(served, undone)
        served.clock.step(5)
        await until(served, node, ANSWERS)


async def test_a_client_that_never_closes_keeps_no_node_from_its_port() -> None:
    """Its connection is closed when the broker dies; the broker comes back to the same port all the same."""
    async with still() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.ports[broker(1)])
        writer.write(HELLO)
        await reader.readexactly(4)
        happen(served, "kill broker-1")
        await until(served, broker(1), REFUSES)
        async with asyncio.timeout(HANG_SECONDS):
            await reader.read()
        happen(served, "start broker-1")
        served.clock.step(5)
        await until(served, broker(1), ANSWERS)
        writer.transport.abort()


async def test_a_broker_that_starts_listens_once_it_has_the_metadata() -> None:
    """Until then it would tell of a cluster without brokers and topics."""
    async with still() as served:
        happen(served, "kill broker-1")
        await until(served, broker(1), REFUSES)
        happen(served, "start broker-1")
        assert not served.listener(broker(1)).answers
        assert await met(served, broker(1)) == REFUSES
        served.clock.step(5)
        await until(served, broker(1), ANSWERS)
        assert served.world.brokers[1].state.image.partitions


async def test_a_machine_that_has_its_power_again_refuses_until_its_broker_serves() -> None:
    async with still() as served:
        happen(served, "power-off broker-2")
        await until(served, broker(2), HANGS)
        happen(served, "start broker-2")
        await until(served, broker(2), REFUSES)
        served.clock.step(5)
        await until(served, broker(2), ANSWERS)


async def test_a_fenced_broker_answers() -> None:
    async with still() as served:
        happen(served, "cut broker-4 others=[controllers]")
        served.clock.step(6)
        assert served.world.image.brokers[4].fenced
        assert await met(served, broker(4)) == ANSWERS
