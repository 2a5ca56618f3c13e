"""Recorded responses: request, connection, port and the response frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple

_HEAD = Struct(">IHhhII?")


class Answer(NamedTuple):
    """``request`` is the message without its header; ``ours`` is False for aiokafka's own ApiVersions."""

    connection: int
    port: int
    api_key: int
    version: int
    request: bytes
    frame: bytes
    ours: bool

    def write(self, file: BinaryIO) -> None:
        connection, port, key, version, request, frame, ours = self
        file.write(_HEAD.pack(connection, port, key, version, len(request), len(frame), ours))
        file.write(request)
        file.write(frame)


def recorded(path: str | Path) -> Iterator[Answer]:
    """All responses in the order of arrival."""
    data = Path(path).read_bytes()
    at = 0
    while at < len(data):
        connection, port, key, version, asked, size, ours = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        request, frame = data[at : at + asked], data[at + asked : at + asked + size]
        at += asked + size
        yield Answer(connection, port, key, version, request, frame, ours)
