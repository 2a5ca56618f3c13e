"""Topic and directory ids in Kafka's text form (URL-safe base64)."""

from __future__ import annotations

import base64
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
