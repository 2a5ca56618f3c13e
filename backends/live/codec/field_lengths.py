"""Checks the lengths in an answer against its size, before kio's decoder reads it.

That decoder allocates memory for as many items as an array declares. If the allocation fails, the process ends, and
no ``except`` can help: fourteen wrong bytes from one broker would end a recovery half-way. So every answer is
walked through by its schema first. Regular expressions match many usual rows at once, in flexible versions
(KIP-482); a row is usual if every length in it is small. One that does not match is walked through field by field:
this changes only how long the check takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
    one = _short_row(kind)
    return tuple(RowRun(items, re.compile(rb"(?s:%b){%d}" % (one, items))) for items in _RUNS)


def _short_row(kind: Any) -> bytes:
    plain = b"".join(_field_pattern(shape) for shape in message_fields(kind) if shape.tag is None)
    tagged = [
        rb"\x%02x[\x00-\x7f]%b" % (shape.tag, _field_pattern(shape))
        for shape in message_fields(kind)
        if shape.tag is not None
    ]
    tags = _one_of(rb"\x00", *(rb"\x01" + each for each in tagged))
    return rb"(?>%b%b)" % (plain, tags)


def _field_pattern(shape: MessageField) -> bytes:
    size = SIZES.get(shape.primitive) if shape.nested is None else None
    empty = rb"[\x00\x01]" if shape.nullable else rb"\x01"
    if shape.many and size is not None:
        counted = (rb"\x%02x.{%d}" % (count + 1, count * size) for count in range(1, SHORT + 1))
        return _one_of(empty, *counted)
    if shape.many or (shape.nested is None and size is None):
        return empty
    if size is not None:
        return rb".{%d}" % size
    nested = _short_row(shape.nested)
    return _one_of(rb"[\x80-\xff]", rb"[\x00-\x7f]" + nested) if shape.nullable else nested


def _one_of(*forms: bytes) -> bytes:
    return rb"(?>%b)" % b"|".join(forms)


_Walk = Callable[["_Walker"], None]


class LengthError(ValueError):
    """An answer declares more items or bytes than follow."""


def check_lengths(kind: Any, data: bytes | memoryview, offset: int) -> None:
    """Raises LengthError where a message of ``kind`` at ``offset`` declares more items, or bytes, than follow.

    Also where an array or a string is null and not nullable: that decoder returns None for it.
    """
    _message(kind)(_Walker(data, offset))


class _Walker:
    """A position in the bytes."""

    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self._data = data
        self._at = at

    def skip(self, size: int) -> None:
        if size < 0 or size > len(self._data) - self._at:
            raise LengthError(f"{size} bytes are declared at {self._at}, {len(self._data) - self._at} follow")
        self._at += size

    def integer(self, size: int) -> int:
        """A signed integer, big end first."""
        self.skip(size)
        return int.from_bytes(self._data[self._at - size : self._at], "big", signed=True)

    def varint(self) -> int:
        """An unsigned varint of at most five bytes."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.integer(1) & 0xFF
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # the continuation bit
                return value
        raise LengthError(f"a varint that does not end at {self._at}")

    def items(self, count: int, each: _Walk, runs: Sequence[RowRun] = ()) -> None:
        """Skip ``count`` items of at least one byte each; ``runs`` match several of them at once."""
        if count > len(self._data) - self._at:
            raise LengthError(
                f"{count} items are declared at {self._at}, {len(self._data) - self._at} bytes follow"
            )
        while count:
            for several, pattern in runs:
                found = pattern.match(self._data, self._at) if several <= count else None
                if found is not None:
                    self._at, count = found.end(), count - several
                    break
            else:
                each(self)
                count -= 1


@cache
def _message(kind: Any) -> _Walk:
    flexible: bool = kind.__flexible__
    plain = [_field(shape, flexible) for shape in message_fields(kind) if shape.tag is None]
    tagged = {shape.tag: _field(shape, flexible) for shape in message_fields(kind) if shape.tag is not None}

    def walk(walker: _Walker) -> None:
        for each in plain:
            each(walker)
        for _ in range(walker.varint() if flexible else 0):
            tag, size = walker.varint(), walker.varint()
            known = tagged.get(tag)
            if known is None:
                walker.skip(size)
            else:
                known(walker)

    return walk


def _field(shape: MessageField, flexible: bool) -> _Walk:
    one = _primitive(shape, flexible) if shape.nested is None else _message(shape.nested)
    if shape.many:
        several = runs(shape.nested) if flexible and shape.nested is not None else ()
        size = _length(4, flexible, shape.nullable)
        return lambda walker: walker.items(size(walker), one, several)
    if shape.nullable and shape.nested is not None:
        return lambda walker: None if walker.integer(1) < 0 else one(walker)
    return one


def _primitive(shape: MessageField, flexible: bool) -> _Walk:
    size = SIZES.get(shape.primitive)
    if size is not None:
        return lambda walker: walker.skip(size)
    nullable = shape.nullable and not shape.many  # for an array, nullable is about the array, not its items
    length = _length(2 if shape.primitive == "string" else 4, flexible, nullable)
    return lambda walker: walker.skip(length(walker))


def _length(width: int, flexible: bool, nullable: bool) -> Callable[[_Walker], int]:
    """How many items or bytes follow; 0 for null. ``width``: bytes of the length if it is not a varint."""

    def read(walker: _Walker) -> int:
        length = walker.varint() - 1 if flexible else walker.integer(width)
        if length < 0 and not nullable:
            raise LengthError("null where it may not be")
        return max(0, length)

    return read
