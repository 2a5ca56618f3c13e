"""The fields of kio's messages, from their annotations, for other readers and writers of the same messages."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin


class MessageField(NamedTuple):
    """One field: ``nested`` is the message it holds, ``primitive`` Kafka's type where it holds none.

    ``many``: an array of them. ``tag`` is None for a field that is no tagged one (KIP-482); ``default`` is
    ``dataclasses.MISSING`` where there is none.
    """

    name: str
    nested: Any
    primitive: str
    many: bool
    nullable: bool
    tag: int | None
    default: Any


@cache
def message_fields(kind: Any) -> tuple[MessageField, ...]:
    """The fields of the message ``kind``, in the order in which they are written."""
    found = []
    for field in fields(kind):
        annotation = field.type
        parts = get_args(annotation)
        nullable = type(None) in parts
        if nullable:
            annotation = next(part for part in parts if part is not type(None))
        many = get_origin(annotation) is tuple
        inner: Any = get_args(annotation)[0] if many else annotation
        nested = inner if isinstance(inner, type) and is_dataclass(inner) else None
        tag = field.metadata.get("tag")
        found.append(
            MessageField(
                field.name,
                nested,
                field.metadata.get("kafka_type", ""),
                many,
                nullable,
                None if tag is None else int(tag),
                field.default,
            )
        )
    return tuple(found)
