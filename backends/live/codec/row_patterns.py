"""Regular expressions that match many usual rows at once, for the length check (``field_lengths``).

Only for flexible versions (KIP-482). A row is usual if every length in it is small. A row that does not match is
walked through field by field: this changes only how long the check takes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from backends.live.codec.message_fields import MessageField, message_fields

SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "float64": 8,
    "uuid": 16,
}
"""Bytes of the primitives that have a size of their own."""

SHORT = 8
"""Numbers in an array, at most: replicas, an ISR."""
_RUNS = (64, 8, 1)


class RowRun(NamedTuple):
    """A pattern that matches ``items`` consecutive usual items."""

    items: int
    pattern: re.Pattern[bytes]


@cache
def runs(kind: Any) -> tuple[RowRun, ...]:
    """Patterns for items of the message ``kind``, the longest first."""
    one = _short(kind)
    return tuple(RowRun(items, re.compile(rb"(?s:%b){%d}" % (one, items))) for items in _RUNS)


def _short(kind: Any) -> bytes:
    plain = b"".join(_field(shape) for shape in message_fields(kind) if shape.tag is None)
    tagged = [
        rb"\x%02x[\x00-\x7f]%b" % (shape.tag, _field(shape))
        for shape in message_fields(kind)
        if shape.tag is not None
    ]
    tags = _one_of(rb"\x00", *(rb"\x01" + each for each in tagged))
    return rb"(?>%b%b)" % (plain, tags)


def _field(shape: MessageField) -> bytes:
    size = SIZES.get(shape.primitive) if shape.nested is None else None
    empty = rb"[\x00\x01]" if shape.nullable else rb"\x01"
    if shape.many and size is not None:
        counted = (rb"\x%02x.{%d}" % (count + 1, count * size) for count in range(1, SHORT + 1))
        return _one_of(empty, *counted)
    if shape.many or (shape.nested is None and size is None):
        return empty
    if size is not None:
        return rb".{%d}" % size
    nested = _short(shape.nested)
    return _one_of(rb"[\x80-\xff]", rb"[\x00-\x7f]" + nested) if shape.nullable else nested


def _one_of(*forms: bytes) -> bytes:
    return rb"(?>%b)" % b"|".join(forms)
