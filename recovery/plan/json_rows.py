"""Walking a large JSON document: the rows of its lists are decoded and read one at a time.

A plan of 200,000 partitions never stands in memory as dictionaries, which takes a third of the time; and an
error knows the line of its row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from recovery.plan.json_fields import FieldError, Object, as_object
from recovery.plan.values import PlanError

Readers = Mapping[str, Callable[[Object], object]]

_space = re.compile(r"[ \t\r\n]*").match


def read_document(text: str, readers: Readers) -> dict[str, object]:
    """The members of the object in ``text``; lists at the keys of ``readers`` hold what these made of each row.

    Raises PlanError with the line, and for what a reader refuses the path: not JSON, a key twice.
    """
    try:
        return _members(text, readers)
    except json.JSONDecodeError as error:
        raise PlanError(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None


def _members(text: str, readers: Readers) -> dict[str, object]:
    at = _skip(text, 0)
    if at == len(text):
        raise PlanError("the file is empty")
    if text[at] != "{":
        raise PlanError(f"{_line(text, at)}: expected one object, {{ … }}")
    members: dict[str, object] = {}
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        here = at
        key, at = _key(text, at)
        if key in members:
            raise PlanError(f'{_line(text, here)}: the key "{key}" stands twice in one object')
        reader = readers.get(key)
        if reader is None:
            members[key], at = _decode(text, at)
        else:
            members[key], at = _list(text, at, key, reader)
        at = _after(text, at, "}")
    if (end := _skip(text, at + 1)) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return members


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise json.JSONDecodeError("Expecting a key in double quotes", text, at)
    key, at = _decode(text, at)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    return str(key), _skip(text, at + 1)


def _list(text: str, at: int, key: str, reader: Callable[[Object], object]) -> tuple[object, int]:
    if text[at : at + 1] != "[":
        return _decode(text, at)
    values: list[object] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        here = at
        value, at = _decode(text, at)
        try:
            values.append(reader(as_object(value)))
        except FieldError as wrong:
            raise PlanError(f"{_line(text, here)}: {wrong.under(f'.{key}[{len(values)}]')}") from None
        at = _after(text, at, "]")
    return values, at + 1


def _after(text: str, at: int, closing: str) -> int:
    """The place of the next member or of ``closing``."""
    at = _skip(text, at)
    found = text[at : at + 1]
    if found == ",":
        at = _skip(text, at + 1)
        if text[at : at + 1] == closing:
            raise json.JSONDecodeError("Expecting another value after ','", text, at)
    elif found != closing:
        raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
    return at


def _decode(text: str, at: int) -> tuple[object, int]:
    try:
        return _decoder.raw_decode(text, at)
    except FieldError as wrong:
        raise PlanError(f"{_line(text, at)}: {wrong}") from None
    except RecursionError:
        raise PlanError(f"{_line(text, at)}: nested too deep") from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise PlanError(f"{_line(text, at)}: a number of too many digits") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise FieldError("", f'the key "{twice}" stands twice in one object')
    return fields


def _refuse(constant: str) -> NoReturn:
    raise FieldError("", f"{constant} is not JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)


def _skip(text: str, at: int) -> int:
    found = _space(text, at)
    return found.end() if found else at


def _line(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}"
