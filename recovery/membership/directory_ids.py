"""Directory ids in their two forms: Kafka's base64, and the UUID."""

from __future__ import annotations

import base64
import binascii
from uuid import UUID

_RESERVED = 100
"""The ids below this number are Kafka's own: unassigned, lost, migrating (KIP-858)."""


def directory_id(text: str) -> str:
    """Kafka's form (22 characters of URL-safe base64) of an id written in either. Raises ValueError, one line."""
    given = text.strip()
    value = _from_uuid(given) if len(given) in (32, 36) else _from_base64(given)
    if value is None:
        raise ValueError(f"{text!r} is no directory id: give 22 characters of base64, or a UUID")
    if value.int < _RESERVED:
        raise ValueError(f"{text!r} is an id that Kafka keeps for itself, not that of a directory")
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def directory_uuid(kafka_form: str) -> str:
    """The UUID of an id in Kafka's form, for display; "" for an empty or invalid id."""
    value = _from_base64(kafka_form)
    return "" if value is None else str(value)


def _from_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _from_base64(text: str) -> UUID | None:
    unpadded = text.rstrip("=")
    if len(unpadded) != 22:
        return None
    try:
        value = UUID(bytes=base64.b64decode(f"{unpadded}==", altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        return None
    # The last character carries four spare bits: an id with any of them set is a typing mistake.
    written = base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")
    return value if written == unpadded else None
