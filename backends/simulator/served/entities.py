"""Converts plain values to messages of the requested version.

A handler answers with everything that the newest version has. Fields that an older version lacks are left out
here, by kio's schema of that version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.protocol import RequestPayload, ResponsePayload

from backends.live.codec import recovery_tool_messages
from backends.live.codec.field_lengths import check_lengths
from backends.live.codec.message_fields import message_fields
from backends.live.codec.primitives import uuid_of

Values = Mapping[str, Any]
_Make = Callable[[Any], Any]


@cache
def request_type(api_key: int, version: int) -> type[RequestPayload]:
    """kio's type, or that of a native call that no release has. Raises kio's errors if there is none."""
    return recovery_tool_messages.REQUESTS.get((api_key, version)) or load_request_schema(api_key, version)


@cache
def response_type(api_key: int, version: int) -> type[ResponsePayload]:
    """As :func:`request_type`."""
    return recovery_tool_messages.RESPONSES.get((api_key, version)) or load_response_schema(api_key, version)


def encode(kind: type[ResponsePayload], values: Values) -> bytes:
    """The answer's bytes, without a header."""
    buffer = BytesIO()
    entity_writer(kind)(buffer, build(kind, values))
    return buffer.getvalue()


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
