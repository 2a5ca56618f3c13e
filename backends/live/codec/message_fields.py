"""kio's messages by call and version, their fields from their annotations, and messages from plain values: once for
client and simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from backends.live.codec.apis import Api
from backends.live.codec.primitives import uuid_of


@cache
def request_type(api_key: int, version: int) -> type[RequestPayload]:
    """kio's message of that version, or ours where no release has it. The number of GetReplicaLogInfo is another
    call's in kio. Raises KeyError if there is none.
    """
    if api_key != Api.GetReplicaLogInfo:
        with suppress(KioIndexError):
            return load_request_schema(api_key, version)
    from backends.live.codec.recovery_tool_messages import REQUESTS

    return REQUESTS[api_key, version]


@cache
def response_type(api_key: int, version: int) -> type[ResponsePayload]:
    """As :func:`request_type`."""
    if api_key != Api.GetReplicaLogInfo:
        with suppress(KioIndexError):
            return load_response_schema(api_key, version)
    from backends.live.codec.recovery_tool_messages import RESPONSES

    return RESPONSES[api_key, version]


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


Values = Mapping[str, Any]
_Make = Callable[[Any], Any]


def build(kind: type[Any], values: Values) -> Any:
    """The message from its fields' values: times in ms, ids in Kafka's form, errors by number.

    A nested message is a mapping. A missing field has the schema's default, or is zero.
    """
    made: dict[str, Any] = {}
    for name, make, absent in _plan(kind):
        if name in values:
            value = values[name]
            made[name] = make(value) if make is not None and value is not None else value
        elif absent is not MISSING:
            made[name] = absent
    return kind(**made)


_Plan = tuple[tuple[str, _Make | None, Any], ...]
_PLANS: dict[type[Any], _Plan] = {}


def _plan(kind: Any) -> _Plan:
    if kind in _PLANS:
        return _PLANS[kind]
    plan = []
    for shape in message_fields(kind):
        make: _Make | None
        if shape.nested is not None:
            make = _many(shape.nested) if shape.many else _one(shape.nested)
        else:
            make = _MAKERS.get(shape.primitive)
        absent = MISSING if shape.default is not MISSING else _ABSENT.get(shape.name, MISSING)
        plan.append((shape.name, make, absent))
    return _PLANS.setdefault(kind, tuple(plan))


def _one(nested: type[Any]) -> _Make:
    return lambda value: build(nested, value)


def _many(nested: type[Any]) -> _Make:
    return lambda values: tuple(build(nested, value) for value in values)


_MAKERS: dict[str, _Make] = {
    "timedelta_i32": lambda ms: timedelta(milliseconds=ms),
    "timedelta_i64": lambda ms: timedelta(milliseconds=ms),
    "datetime_i64": lambda ms: None if ms < 0 else datetime.fromtimestamp(ms / 1000, UTC),
    "error_code": ErrorCode,
    "uuid": uuid_of,
}
_ABSENT: dict[str, Any] = {
    "throttle_time": timedelta(0),
    "error_code": ErrorCode.none,
    "error_message": None,
}
