"""Converts plain values to messages of the requested version.

A handler answers with everything that the newest version has. Fields that an older version lacks are left out
here, by kio's schema of that version.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from kio.serial import entity_reader, entity_writer
from kio.static.protocol import RequestPayload, ResponsePayload

from backends.live.codec.field_lengths import check_lengths
from backends.live.codec.message_fields import Values, build


def encode(kind: type[ResponsePayload], values: Values) -> bytes:
    """The answer's bytes, without a header."""
    buffer = BytesIO()
    entity_writer(kind)(buffer, build(kind, values))
    return buffer.getvalue()


class Undecodable(ValueError):
    """A frame without a request that is served here."""


def decode(kind: type[RequestPayload], body: memoryview) -> Any:
    """A decoded request. Raises Undecodable.

    Extra bytes at the end are ignored, as by Kafka: librdkafka sends three when it asks for all topics.
    """
    try:
        check_lengths(kind, body, 0)
        entity, _ = entity_reader(kind)(body, 0)
    except Exception as error:  # kio's readers raise many kinds of errors
        raise Undecodable(f"{kind.__name__}: {type(error).__name__}") from None
    return entity
