"""Kafka's primitive types: ids in text form (URL-safe base64), compact arrays and strings in bytes (KIP-482)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from uuid import UUID


def kafka_id(value: UUID | None) -> str:
    """A topic or directory id in Kafka's form: 22 characters of URL-safe base64; empty for the zero id."""
    return kafka_id_of(value.bytes) if value else ""


def kafka_id_of(value: bytes) -> str:
    """The same of its 16 bytes."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii") if any(value) else ""


def uuid_of(text: str | None) -> UUID | None:
    """The id of that text; None for the zero id, as for no text. Raises ValueError for text that is not an id."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "==")) if text else None


NO_TAGS = b"\0"
"""No tagged fields."""


def unsigned_varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_array(items: Sequence[bytes]) -> bytes:
    """Its length plus one, then the items."""
    return unsigned_varint(len(items) + 1) + b"".join(items)


def compact_string(text: str) -> bytes:
    """Its length in bytes plus one, then UTF-8."""
    data = text.encode()
    return unsigned_varint(len(data) + 1) + data
