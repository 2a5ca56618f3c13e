"""Answers with error codes that kio does not know, as a newer release may send; each concerns one row only.

kio's decoder rejects the whole answer because of one such code. The answer is then decoded again with plain numbers
instead of codes, and a number without a name gets one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass
from functools import cache
from types import GenericAlias
from typing import Any, TypeVar, cast

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.static.primitive import i16
from kio.static.protocol import ResponsePayload

from backends.live.codec.message_fields import message_fields

R = TypeVar("R", bound=ResponsePayload)

_SCHEMA = ("__type__", "__version__", "__flexible__", "__api_key__", "__header_schema__")


def read_with_unknown_codes(response_type: type[R], data: bytes, offset: int) -> tuple[R, int]:
    """The answer and its size. Raises what kio raises if the bytes still do not fit."""
    plain, size = entity_reader(_numbered(cast("Any", response_type)))(memoryview(data), offset)
    return cast("R", _named(response_type, plain)), size


def error_code(value: int) -> ErrorCode:
    """Kafka's error with that number; an unknown one is named after its number, and is not retriable."""
    try:
        return ErrorCode(value)
    except ValueError:
        code = int.__new__(ErrorCode, value)
        code._name_ = f"error_{value}"
        code._value_ = i16(value)
        code.retriable = False
        return code


@cache
def _numbered(kind: Any) -> Any:
    """``kind`` with an int16 wherever it has an error code."""
    made = []
    for declared, shape in zip(fields(kind), message_fields(kind), strict=True):
        metadata: Mapping[str, Any] = declared.metadata
        annotation: Any = declared.type
        default = declared.default
        if shape.nested is not None:
            annotation = _numbered(shape.nested)
            if shape.many:
                annotation = GenericAlias(tuple, (annotation, ...))
            annotation = annotation | None if shape.nullable else annotation
        if shape.primitive == "error_code":
            annotation, metadata = i16, {**metadata, "kafka_type": "int16"}
            default = default if default is MISSING else i16(default)
        elif is_dataclass(default) and not isinstance(default, type):
            default = _values(type(default), default, _numbered(type(default)))
        reported = (
            field(metadata=metadata) if default is MISSING else field(metadata=metadata, default=default)
        )
        made.append((declared.name, annotation, reported))
    namespace = {name: getattr(kind, name) for name in _SCHEMA}
    return make_dataclass(kind.__name__, made, frozen=True, slots=True, kw_only=True, namespace=namespace)


def _named(kind: Any, plain: Any) -> Any:
    return _values(kind, plain, kind)


def _values(source: Any, entity: Any, target: Any) -> Any:
    """``entity``, field by field, as a ``target``; ``source`` has the annotations."""
    made = {}
    to_names = target is source
    for shape in message_fields(source):
        value = getattr(entity, shape.name)
        inner = shape.nested
        if shape.primitive == "error_code":
            value = error_code(value) if to_names else i16(value)
        elif inner is not None and value is not None:
            wanted = inner if to_names else _numbered(inner)
            value = (
                tuple(_values(inner, one, wanted) for one in value)
                if shape.many
                else _values(inner, value, wanted)
            )
        made[shape.name] = value
    return target(**made)
