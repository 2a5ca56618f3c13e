"""Frames on a connection: four bytes of length, a header, a message. Tests damage those that one node sends."""

from __future__ import annotations

from asyncio import StreamReader
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from struct import Struct

from kio.schema.request_header.v1.header import RequestHeader as Header1
from kio.schema.request_header.v2.header import RequestHeader as Header2
from kio.serial import entity_reader

from backends.live.codec.apis import Api
from backends.live.codec.message_fields import request_type
from backends.simulator.served.entities import Undecodable

LARGEST = 16 << 20
"""The largest request in bytes. Kafka allows 100 MiB (``socket.request.max.bytes``); no client here needs that."""

_LENGTH = Struct(">i")
_START = Struct(">hhi")


@dataclass(frozen=True, slots=True)
class Frame:
    """One request with its undecoded body."""

    api_key: int
    version: int
    correlation: int
    client: str
    body: memoryview


async def read_frame(reader: StreamReader) -> bytes:
    """The bytes of the next frame. Raises IncompleteReadError at the end, Undecodable for an impossible length."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if not _START.size <= length <= LARGEST:
        raise Undecodable(f"a frame of {length} bytes")
    return await reader.readexactly(length)


def parse(data: bytes, served: dict[int, tuple[int, int]]) -> Frame:
    """Raises Undecodable for a request that is not in ``served``.

    ApiVersions of an unknown version passes without a body, because it gets an answer (KIP-511).
    """
    api_key, version, correlation = _START.unpack_from(data)
    lowest, highest = served.get(api_key, (0, -1))
    if not lowest <= version <= highest:
        if api_key == Api.ApiVersions:
            return Frame(api_key, version, correlation, "", memoryview(b""))
        raise Undecodable(f"api key {api_key} version {version} is not served")
    try:
        flexible = request_type(api_key, version).__flexible__
        header, size = entity_reader(Header2 if flexible else Header1)(memoryview(data), 0)
    except Exception as error:  # kio's readers raise many kinds of errors
        raise Undecodable(f"a header: {type(error).__name__}") from None
    return Frame(
        api_key, version, correlation, getattr(header, "client_id", None) or "", memoryview(data)[size:]
    )


def answer(frame: Frame, body: bytes, *, flexible: bool) -> bytes:
    """The frame of the answer. ApiVersions always has the oldest response header (KIP-511)."""
    tags = b"\0" if flexible and frame.api_key != Api.ApiVersions else b""
    return b"".join((_LENGTH.pack(4 + len(tags) + len(body)), _LENGTH.pack(frame.correlation), tags, body))


Change = Callable[[int, bytes], Awaitable[bytes | None]]
"""Called with the API key and the whole frame of an answer. Returns the bytes to send; None: never answer."""


class ConnectionCut(Exception):
    """Raised by a change: these bytes are still sent, then the connection is closed."""

    def __init__(self, data: bytes) -> None:
        super().__init__(f"{len(data)} bytes, and no more")
        self.data = data


class FrameFaults:
    """``change`` is called for every answer before it is sent; None changes nothing."""

    def __init__(self) -> None:
        self.change: Change | None = None
