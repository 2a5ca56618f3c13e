"""Peers that are no Kafka, or that answer nonsense: one line each, and the connection is gone.

No Kafka can be made to answer like this, so a small server on loopback plays the peer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

import pytest
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest, TopicRequest
from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
from kio.schema.types import TopicName

from backends.base.errors import Refused
from backends.live.calls.describe_cluster import describe_cluster
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.codec.aiokafka_requests import RawAnswer
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem

Reply = Callable[[int, bytes], bytes | None]
"""Given the number of the request and its correlation id, what to write; None closes the connection."""

SETTINGS = ClientSettings(bootstrap=(), connect_timeout=20.0, request_timeout=20.0)
HASTY = replace(SETTINGS, connect_timeout=0.5, request_timeout=0.5)

# API key 18, 60, 75 in the layouts of ApiVersions v0 and v3, which is that of v4 too.
_KEYS = ((18, 0, 3), (60, 0, 0), (75, 0, 0))
_V0 = b"".join(n.to_bytes(2, "big") for key in _KEYS for n in key)
UNSUPPORTED = b"\0\x23" + len(_KEYS).to_bytes(4, "big") + _V0
VERSIONS_V3 = (
    b"\0\0"
    + bytes([len(_KEYS) + 1])
    + b"".join(b"".join(n.to_bytes(2, "big") for n in key) + b"\0" for key in _KEYS)
    + b"\0\0\0\0\0"
)


def framed(correlation: bytes, body: bytes) -> bytes:
    data = correlation + body
    return len(data).to_bytes(4, "big") + data


def greeting(_number: int, correlation: bytes) -> bytes | None:
    return framed(correlation, VERSIONS_V3)


@asynccontextmanager
async def peer(reply: Reply, pause: float = 0.0) -> AsyncIterator[Address]:
    """With a ``pause``, answers come byte by byte, so many seconds apart."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                request = await reader.readexactly(size)
                answer = reply(number, request[4:8])
                number += 1
                if answer is None:
                    break
                for at in range(len(answer)) if pause else ():
                    writer.write(answer[at : at + 1])
                    await writer.drain()
                    await asyncio.sleep(pause)
                if not pause:
                    writer.write(answer)
        except (EOFError, ConnectionError, asyncio.CancelledError):  # the test may end first
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def trouble_at_greeting(reply: Reply, settings: ClientSettings = SETTINGS) -> BrokerError:
    async with peer(reply) as address:
        with pytest.raises(BrokerError) as caught:
            await BrokerConnection.open(address, settings, broker=7)
    assert str(caught.value).startswith(f"broker 7 at {address}: ")
    assert "\n" not in str(caught.value)
    return caught.value


async def test_a_peer_that_hangs_up() -> None:
    error = await trouble_at_greeting(lambda _number, _id: None)
    assert error.trouble is ConnectionProblem.CLOSED
    assert "security.protocol is PLAINTEXT" in error.detail


async def test_a_peer_that_says_nothing() -> None:
    error = await trouble_at_greeting(lambda _number, _id: b"", HASTY)
    assert error.trouble is ConnectionProblem.NO_ANSWER
    assert error.detail.startswith("took the connection, but no answer within 0.")


async def test_a_peer_that_answers_byte_by_byte_has_no_more_time_than_others() -> None:
    """Each byte comes in time; the answer would take a minute."""
    async with peer(lambda _number, _id: b"\0\0\x10\0" + b"\0" * 4096, pause=0.02) as address:
        with pytest.raises(BrokerError) as caught:
            async with asyncio.timeout(20.0):
                await BrokerConnection.open(address, HASTY, broker=7)
    assert caught.value.trouble is ConnectionProblem.NO_ANSWER


@pytest.mark.parametrize(
    "nonsense",
    [
        b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        b"\x15\x03\x03\0\2\2F",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\0\0\0\1\0",
    ],
)
async def test_a_peer_that_is_no_kafka(nonsense: bytes) -> None:
    error = await trouble_at_greeting(lambda number, _id: nonsense if number == 0 else None, HASTY)
    assert error.trouble in (
        ConnectionProblem.UNDECODABLE,
        ConnectionProblem.NO_ANSWER,
        ConnectionProblem.CLOSED,
    )


async def test_a_greeting_of_two_hundred_megabytes_is_not_waited_for() -> None:
    """A description of a large cluster may be that long, the list of a broker's requests not."""
    error = await trouble_at_greeting(lambda _number, _id: (200 << 20).to_bytes(4, "big") + _id, HASTY)
    assert error.trouble is ConnectionProblem.UNDECODABLE


async def test_an_answer_to_another_question() -> None:
    error = await trouble_at_greeting(lambda _number, _id: framed(b"\0\0\x7f\xff", VERSIONS_V3))
    assert error.trouble is ConnectionProblem.UNDECODABLE


async def test_an_answer_that_breaks_off_is_not_understood() -> None:
    error = await trouble_at_greeting(lambda _number, _id: framed(_id, VERSIONS_V3[:-7]))
    assert error.trouble is ConnectionProblem.UNDECODABLE


def after_greeting(body: bytes) -> Reply:
    return lambda number, correlation: (
        greeting(number, correlation) if number < 1 else framed(correlation, body)
    )


async def failing(reply: Reply, act: Callable[[BrokerConnection], Awaitable[object]]) -> BrokerError:
    async with peer(reply) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        with pytest.raises(BrokerError) as caught:
            await act(conn)
        assert conn.closed
        with pytest.raises(BrokerError) as again:
            await describe_cluster(conn)
        assert (again.value.trouble, again.value.sent) == (ConnectionProblem.CLOSED, False)
    return caught.value


async def test_an_answer_that_is_not_understood_ends_the_connection() -> None:
    error = await failing(after_greeting(b"\0\0\0\0\0\0\0\xff"), describe_cluster)
    assert error.trouble is ConnectionProblem.UNDECODABLE
    assert error.sent
    assert "DescribeClusterResponse not understood" in error.detail


async def test_a_request_without_an_answer_ends_the_connection() -> None:
    error = await failing(
        lambda number, correlation: greeting(number, correlation) if number < 1 else b"",
        lambda conn: describe_cluster(conn, timeout=0.1),
    )
    assert (error.trouble, error.sent, error.detail) == (
        ConnectionProblem.NO_ANSWER,
        True,
        "no answer within 0.1 s",
    )


async def test_a_request_whose_connection_breaks_may_have_been_carried_out() -> None:
    error = await failing(
        lambda number, correlation: greeting(number, correlation) if number < 1 else None, describe_cluster
    )
    assert (error.trouble, error.sent) == (ConnectionProblem.CLOSED, True)


async def test_a_peer_that_announces_two_gigabytes_is_not_waited_for() -> None:
    error = await trouble_at_greeting(lambda _number, _id: b"\x7f\xff\xff\xff", HASTY)
    assert error.trouble is ConnectionProblem.UNDECODABLE


async def test_who_waits_behind_a_request_that_hangs_is_not_kept_for_ever() -> None:
    async with peer(
        lambda number, correlation: greeting(number, correlation) if number < 1 else b""
    ) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        first = asyncio.ensure_future(describe_cluster(conn, timeout=60.0))
        await asyncio.sleep(0)
        with pytest.raises(BrokerError, match="to an earlier request"):
            await conn.send(asking_for("t"), DescribeTopicPartitionsResponse, timeout=0.1)
        assert not conn.closed, "the first may still be answered"
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert conn.closed, "its answer would come back to nobody"


async def test_questions_that_are_written_ahead_fail_with_the_one_that_is_not_answered() -> None:
    """The connection is closed: who waits behind it is told why, and that the question may have been read."""
    async with peer(
        lambda number, correlation: greeting(number, correlation) if number < 1 else b""
    ) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        first = asyncio.ensure_future(describe_cluster(conn, timeout=0.1))
        await asyncio.sleep(0)
        with pytest.raises(BrokerError, match=r"no answer within 0\.1 s to an earlier request") as caught:
            await describe_cluster(conn, timeout=60.0)
        assert caught.value.sent
        await asyncio.gather(first, return_exceptions=True)


async def test_a_change_is_not_written_while_a_question_is_open() -> None:
    """It would be in doubt with it, where now certainly nothing was sent."""
    read: list[int] = []

    def silent(number: int, correlation: bytes) -> bytes | None:
        read.append(number)
        return greeting(number, correlation) if number < 1 else b""

    async with peer(silent) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        question = asyncio.ensure_future(describe_cluster(conn, timeout=60.0))
        await asyncio.sleep(0)
        with pytest.raises(BrokerError, match="to an earlier request") as caught:
            await conn.send(asking_for("t"), DescribeTopicPartitionsResponse, timeout=0.1)
        assert not caught.value.sent and len(read) == 2
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)


async def test_a_broker_that_does_not_serve_the_newest_greeting_is_asked_with_the_one_before() -> None:
    """Before Kafka 4.0 ApiVersions ends at v3: the refusal is an answer of v0."""

    def older(number: int, correlation: bytes) -> bytes | None:
        return framed(correlation, UNSUPPORTED if number == 0 else VERSIONS_V3)

    async with peer(older) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        assert conn.api_keys == {18: (0, 3), 60: (0, 0), 75: (0, 0)}
        conn.close()


async def test_a_broker_of_before_kafka_2_4_is_not_understood() -> None:
    refusal = b"\0\x23" + (1).to_bytes(4, "big") + b"\0\x12" + b"\0\0" + b"\0\2"
    error = await trouble_at_greeting(lambda _number, _id: framed(_id, refusal))
    assert error.trouble is ConnectionProblem.UNDECODABLE


async def test_a_name_that_cannot_be_written_is_refused_and_nothing_is_sent() -> None:
    async with peer(
        lambda number, correlation: greeting(number, correlation) if number < 1 else None
    ) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        with pytest.raises(Refused, match="nothing sent"):
            await conn.send(asking_for("\ud800"), DescribeTopicPartitionsResponse)
        assert not conn.closed
        conn.close()


def asking_for(name: str) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=(TopicRequest(name=TopicName(name)),))


def throttled(milliseconds: int) -> Reply:
    """DescribeCluster v0: throttle time, no error, null message, cluster id "c", controller 1, no brokers."""
    return after_greeting(b"\0" + milliseconds.to_bytes(4, "big") + b"\0\0\0\2c\0\0\0\1\1\x80\0\0\0\0")


async def test_a_throttled_caller_does_not_ask_before_its_time() -> None:
    async with peer(throttled(600_000)) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        assert (await describe_cluster(conn)).cluster_id == "c"
        with pytest.raises(
            BrokerError, match=r"throttled for \d+\.\d s more, which is beyond 20 s"
        ) as caught:
            await describe_cluster(conn)
        assert not caught.value.sent
        assert not conn.closed
        conn.close()


async def test_a_short_throttle_is_waited_out() -> None:
    loop = asyncio.get_running_loop()
    free_from = 0.0

    def strict(number: int, correlation: bytes) -> bytes | None:
        """Hangs up on who comes too early."""
        nonlocal free_from
        if loop.time() < free_from:
            return None
        if number >= 1:
            free_from = loop.time() + 0.05
        return throttled(100)(number, correlation)

    async with peer(strict) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        for _ in range(3):
            assert (await describe_cluster(conn)).cluster_id == "c"
        conn.close()


async def test_a_throttle_in_an_answer_that_is_read_as_columns_holds_too() -> None:
    class Columns(NamedTuple):
        throttle_ms: int

    async with peer(throttled(0)) as address:
        conn = await BrokerConnection.open(address, SETTINGS)
        assert conn.columns(RawAnswer(b"", 0), lambda _data, _offset: Columns(600_000)) is not None
        with pytest.raises(BrokerError, match="throttled for"):
            await describe_cluster(conn)
        conn.close()
