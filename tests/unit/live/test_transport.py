"""A login: the password or token goes to the broker, and to no log and no message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from backends.live.client.addresses import Address
from backends.live.client.sasl import Sasl
from backends.live.client.secret import Secret
from backends.live.client.settings import ClientSettings
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem

PASSWORD = "correct-horse-battery-staple"
_KEYS = ((17, 0, 1), (18, 0, 3), (36, 0, 0))
_VERSIONS_V3 = bytes([len(_KEYS) + 1]) + b"".join(
    b"".join(n.to_bytes(2, "big") for n in key) + b"\0" for key in _KEYS
)
ANSWERS = (
    b"\0\0" + _VERSIONS_V3 + b"\0\0\0\0\0",
    b"\0\0" + b"\0\0\0\1" + b"\0\5PLAIN",  # SaslHandshake v1
    b"\0\0" + b"\xff\xff" + b"\0\0\0\0",  # SaslAuthenticate v0
)


@asynccontextmanager
async def broker(requests: list[bytes], answers: Sequence[bytes] = ANSWERS) -> AsyncIterator[Address]:
    """Gives the answers one after the other, whatever it is asked."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            size = int.from_bytes(await reader.readexactly(4), "big")
            requests.append(await reader.readexactly(size))
            data = requests[-1][4:8] + answer
            writer.write(len(data).to_bytes(4, "big") + data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def test_a_password_is_sent_to_the_broker_and_to_no_log(caplog: pytest.LogCaptureFixture) -> None:
    requests: list[bytes] = []
    sasl = Sasl("PLAIN", "ada", Secret(PASSWORD))
    settings = ClientSettings(bootstrap=(), sasl=sasl, connect_timeout=20.0)
    with caplog.at_level(logging.DEBUG):
        async with broker(requests) as address:
            connection = await BrokerConnection.open(address, settings)
            assert connection.api_keys[36] == (0, 0)
            connection.close()
    assert f"\0ada\0{PASSWORD}".encode() in requests[2].replace(b"ada\0ada", b"\0ada")
    assert PASSWORD not in caplog.text


async def a_token() -> Secret:
    return Secret(PASSWORD)


@pytest.mark.parametrize(
    "sasl",
    [Sasl("PLAIN", "ada", Secret(PASSWORD)), Sasl("OAUTHBEARER", token=a_token)],
    ids=lambda sasl: sasl.mechanism,
)
async def test_a_broker_that_repeats_the_login_in_its_refusal_is_not_quoted_with_the_secret(
    sasl: Sasl,
) -> None:
    words = f"no login for ada with {PASSWORD} or {PASSWORD}".encode()
    refusal = (58).to_bytes(2, "big") + len(words).to_bytes(2, "big") + words + b"\0\0\0\0"
    handshake = b"\0\0" + b"\0\0\0\2" + b"\0\5PLAIN" + b"\0\x0bOAUTHBEARER"
    settings = ClientSettings(bootstrap=(), sasl=sasl, connect_timeout=20.0)
    async with broker([], (ANSWERS[0], handshake, refusal)) as address:
        with pytest.raises(BrokerError) as caught:
            await BrokerConnection.open(address, settings)
    assert caught.value.trouble is ConnectionProblem.AUTHENTICATION
    assert caught.value.detail == "authentication failed: no login for ada with *** or ***"
