"""Sends one request of any version and returns the decoded response."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from io import BytesIO
from struct import pack, unpack
from typing import Any

from kio.schema.request_header.v1.header import RequestHeader as Header1
from kio.schema.request_header.v2.header import RequestHeader as Header2
from kio.serial import entity_reader, entity_writer

from backends.live.codec.message_fields import build, request_type, response_type


async def send_request(port: int, key: int, version: int, fields: Mapping[str, Any]) -> Any:
    """Sends one request on its own connection; the response must be decoded to its last byte."""
    kind = request_type(key, version)
    header = Header2 if kind.__flexible__ else Header1
    body = BytesIO()
    header_fields: Any = {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": 77,
        "client_id": "t",
    }
    entity_writer(header)(body, header(**header_fields))
    entity_writer(kind)(body, build(kind, fields))
    data = body.getvalue()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(pack(">i", len(data)) + data)
        async with asyncio.timeout(10):
            (size,) = unpack(">i", await reader.readexactly(4))
            frame = await reader.readexactly(size)
    finally:
        writer.close()
    answer = response_type(key, version)
    head, at = entity_reader(answer.__header_schema__)(frame, 0)
    assert getattr(head, "correlation_id", None) == 77
    entity, taken = entity_reader(answer)(memoryview(frame), at)
    assert at + taken == len(frame)
    return entity
