"""JSON output: one object with a schema, documented in docs/output.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import orjson

VERSIONS = {
    **dict.fromkeys(("replicas", "plan", "review", "apply", "resume", "journal", "log-dirs"), 2),
    **dict.fromkeys(("quorum-status", "quorum-replication", "simulate-run"), 2),
    **dict.fromkeys(("status", "recover", "elect", "verify", "report"), 3),
    "quorum-rebuild": 5,
}
"""Of the documents whose keys got new names or values since the first version, which all others have."""


def document(command: str, fields: Mapping[str, object]) -> Iterator[str]:
    """The lines of one JSON object; each item of a list of objects has its own line. An iterator of objects becomes
    a list that is never held whole.

    So a document of thousands of partitions can be searched by line, and can be written by the fast encoder,
    which has no indentation.
    """
    yield f'{{"schema": {_json(f"ktriage.{command}/{VERSIONS.get(command, 1)}")}'
    for key, value in fields.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f",{_json(key)}: ["
            last = len(value) - 1
            for i, item in enumerate(value):
                yield f"  {_json(item)}{',' if i < last else ''}"
            yield "]"
        elif isinstance(value, Iterator):
            yield f",{_json(key)}: ["
            for i, item in enumerate(value):
                yield f"  {',' if i else ''}{_json(item)}"
            yield "]"
        else:
            yield f",{_json(key)}: {_json(value)}"
    yield "}"


def one_line(fields: Mapping[str, object]) -> str:
    """One object on its own line, for events that are written as they happen."""
    return _json(fields)


def _json(value: object) -> str:
    # orjson writes a document of thousands of partitions in a sixth of the standard library's time. It does
    # not accept named tuples, nor half of a surrogate pair, which may be in a file name on a broker.
    try:
        text = orjson.dumps(value, default=tuple).decode()
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # JSON itself escapes what is below a blank only; a terminal also obeys others.
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]
