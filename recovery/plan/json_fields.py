"""Reading fields of a parsed JSON object, each with its bounds.

An error names the path and what was expected there: ``partitions[3].candidates[0].logEnd: …``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from recovery.model import NO_EPOCH, EpochSpan, TopicPartition

MAX_INT32 = (1 << 31) - 1
MAX_INT64 = (1 << 63) - 1

Object = Mapping[str, object]
Bounds = Sequence[tuple[str, int, int]]
T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
_SHOWN = 40


class FieldError(Exception):
    """A value at ``path`` is not what it should be. Stays among the readers: they raise PlanError."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def under(self, parent: str) -> FieldError:
        """The same, seen from the object that holds ``parent``."""
        return FieldError(f"{parent}{self.path}", self.problem)

    def __str__(self) -> str:
        where = self.path.removeprefix(".")
        return f"{where}: {self.problem}" if where else self.problem


def integer(fields: Object, key: str, low: int = 0, high: int = MAX_INT64) -> int:
    """The integer at ``key``, within bounds."""
    value = fields.get(key)
    # type() and not isinstance(): True is an int.
    if type(value) is int and low <= value <= high:
        return value
    raise _expected(fields, key, f"an integer from {low} to {high}")


def integers(fields: Object, bounds: Bounds) -> list[int]:
    """Several integers with one call, in the order of ``bounds``: (key, low, high) each."""
    values = []
    for key, low, high in bounds:
        # As integer() does; the call for each would take half of the time of reading a plan.
        value = fields.get(key)
        if type(value) is not int or not low <= value <= high:
            raise _expected(fields, key, f"an integer from {low} to {high}")
        values.append(value)
    return values


def optional_integer(fields: Object, key: str, low: int = 0, high: int = MAX_INT64) -> int | None:
    """The integer at ``key``, or None where it is null; the key itself must be there."""
    value = fields.get(key, ...)
    if value is None or (type(value) is int and low <= value <= high):
        return value
    raise _expected(fields, key, f"an integer from {low} to {high}, or null")


def text(fields: Object, key: str) -> str:
    """The printable one-line text at ``key``: what is shown on a terminal must not drive it."""
    value = fields.get(key)
    if type(value) is str and value.isprintable():
        return value
    raise _expected(fields, key, "printable text on one line")


def choice(fields: Object, key: str, kind: type[E]) -> E:
    """The member of ``kind`` that is named at ``key``."""
    value = fields.get(key)
    try:
        if type(value) is str:
            return kind(value)
    except ValueError:
        pass
    raise _expected(fields, key, f"one of {', '.join(kind)}")


def brokers(fields: Object, key: str) -> tuple[int, ...]:
    """The broker ids at ``key``, none of them twice; may be empty."""
    ids: list[int] = []
    for value in items(fields, key):
        if type(value) is not int or not 0 <= value <= MAX_INT32:
            raise FieldError(f".{key}", f"expected broker ids (integers from 0), not {shown(value)}")
        if value in ids:
            raise FieldError(f".{key}", f"broker {value} stands in it twice")
        ids.append(value)
    return tuple(ids)


def items(fields: Object, key: str) -> list[object]:
    """The list at ``key``."""
    value = fields.get(key)
    if type(value) is list:
        return value
    raise _expected(fields, key, "a list")


def objects(fields: Object, key: str, read: Callable[[Object], T]) -> tuple[T, ...]:
    """Each object of the list at ``key``, as ``read`` makes it; errors name the position in the list."""
    values = []
    for index, value in enumerate(items(fields, key)):
        try:
            values.append(read(as_object(value)))
        except FieldError as wrong:
            raise wrong.under(f".{key}[{index}]") from None
    return tuple(values)


def as_object(value: object) -> Object:
    """``value`` as an object's fields."""
    if type(value) is dict:
        return value
    raise FieldError("", f"expected an object, not {shown(value)}")


def spans(fields: Object, key: str) -> tuple[EpochSpan, ...]:
    """The ``[epoch, start, end]`` spans at ``key``."""
    return tuple([_span(key, value) for value in items(fields, key)])


def _span(key: str, value: object) -> EpochSpan:
    if type(value) is list and len(value) == len(EpochSpan._fields):
        epoch, start, end = value
        if (
            type(epoch) is type(start) is type(end) is int
            and NO_EPOCH <= epoch <= MAX_INT32
            and 0 <= start < end <= MAX_INT64
        ):
            return EpochSpan(epoch, start, end)
    raise FieldError(f".{key}", f"expected [epoch, start, end] with rising offsets, not {shown(value)}")


def topic_partition(fields: Object) -> TopicPartition:
    """The ``topic`` and ``partition`` of an object."""
    return TopicPartition(topic(fields), integer(fields, "partition", 0, MAX_INT32))


def topic(fields: Object) -> str:
    """A topic name that Kafka would take."""
    value = fields.get("topic")
    if type(value) is str and is_topic_name(value):
        return value
    raise _expected(fields, "topic", "a topic name")


def is_topic_name(value: str) -> bool:
    """Whether Kafka would take it: at most 249 letters, digits, ``.``, ``_``, ``-``; neither ``.`` nor ``..``."""
    return _TOPIC.fullmatch(value) is not None


def shown(value: object) -> str:
    """A value as an error message shows it: short, and on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "an object"
    # A huge integer cannot even be printed.
    if isinstance(value, int) and abs(value) > MAX_INT64:
        return "a number beyond 64 bits"
    text = ascii(value) if not isinstance(value, str) else f'"{ascii(value)[1:-1]}"'
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _expected(fields: Object, key: str, what: str) -> FieldError:
    if key not in fields:
        return FieldError(f".{key}", f"is missing; expected {what}")
    return FieldError(f".{key}", f"expected {what}, not {shown(fields[key])}")
