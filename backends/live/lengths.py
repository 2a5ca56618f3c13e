"""Lengths that an answer declares, held against what it holds, before kio's decoder sees them.

That decoder reserves memory for as many items as an array declares, and where it gets none it ends the process,
which no ``except`` sees: fourteen wrong bytes from one broker would end a recovery half-way. An array that long
shows in the bytes, so that nearly every answer is passed on after one look; the rest are walked through by schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_origin

_LONG = re.compile(rb"[\x80-\xff]{4}[\x01-\x0f]")
"""A varint of 2^28 and more: no frame that is read here holds so many items."""

_SIZES = {
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

_Walk = Callable[["_Walker"], None]


class LengthError(ValueError):
    """An answer declares more than it holds."""


def check_lengths(kind: Any, data: bytes | memoryview, offset: int) -> None:
    """Raises LengthError where a message of ``kind`` at ``offset`` declares more items, or bytes, than follow."""
    if kind.__flexible__ and _LONG.search(data, offset) is None:
        return
    _message(kind)(_Walker(data, offset))


class _Walker:
    """A place in the bytes."""

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

    def items(self, count: int, each: _Walk) -> None:
        """``count`` items of at least one byte each."""
        if count > len(self._data) - self._at:
            raise LengthError(
                f"{count} items are declared at {self._at}, {len(self._data) - self._at} bytes follow"
            )
        for _ in range(count):
            each(self)


@cache
def _message(kind: Any) -> _Walk:
    flexible: bool = kind.__flexible__
    plain = [_field(held, flexible) for held in fields(kind) if "tag" not in held.metadata]
    tagged = {
        int(held.metadata["tag"]): _field(held, flexible) for held in fields(kind) if "tag" in held.metadata
    }

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


def _field(held: Field[Any], flexible: bool) -> _Walk:
    annotation = held.type
    parts = get_args(annotation)
    nullable = type(None) in parts
    if nullable:
        annotation = next(part for part in parts if part is not type(None))
    many = get_origin(annotation) is tuple
    inner: Any = get_args(annotation)[0] if many else annotation
    nested: bool = is_dataclass(inner)
    one = _message(inner) if nested else _primitive(held.metadata["kafka_type"], flexible)
    if many:
        return lambda walker: walker.items(_count(walker, flexible), one)
    if nullable and nested:
        return lambda walker: None if walker.integer(1) < 0 else one(walker)
    return one


def _count(walker: _Walker, flexible: bool) -> int:
    return max(0, walker.varint() - 1 if flexible else walker.integer(4))


def _primitive(name: str, flexible: bool) -> _Walk:
    size = _SIZES.get(name)
    if size is not None:
        return lambda walker: walker.skip(size)
    if flexible:
        return lambda walker: walker.skip(max(0, walker.varint() - 1))
    width = 2 if name == "string" else 4
    return lambda walker: walker.skip(max(0, walker.integer(width)))
