"""The files of topic-partitions that Kafka's tools read (unclean-recovery-tool, ``--path-to-json-file``).

Strict JSON, and the specification's own example too, whose keys stand without quotes. Two shapes, which may
be mixed: ``{"topic": "foo", "partitions": [0, 3]}`` and ``{"topic": "foo", "partition": 1,
"designatedLeader": 0}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from console.errors import InputError
from recovery.model import TopicPartition

_STRING_OR_KEY = re.compile(r'("(?:[^"\\]|\\.)*")|([A-Za-z_]\w*)(?=\s*:)')


class Wanted(NamedTuple):
    """One partition of a file; ``leader`` is its designated leader, None where the file names none."""

    tp: TopicPartition
    leader: int | None


def read_document(path: Path) -> dict[str, object]:
    """The JSON object in ``path``. Raises InputError: missing, unreadable, empty, not JSON, a key twice."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not JSON: it is not UTF-8 text") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not text.strip():
        raise InputError(f'{path}: the file is empty; it should hold {{"partitions": […]}}')
    document = _parse(text, path)
    if not isinstance(document, dict):
        raise InputError(f'{path}: it should hold one object, {{"partitions": […]}}')
    return document


def read_partitions(path: Path) -> tuple[Wanted, ...]:
    """The partitions that the file names, in its order. Raises InputError: unreadable, none, or one twice."""
    return partitions_of(read_document(path), path)


def partitions_of(document: Mapping[str, object], path: Path) -> tuple[Wanted, ...]:
    """The partitions of a document that :func:`read_document` read from ``path``."""
    entries = document.get("partitions")
    if not isinstance(entries, list):
        raise InputError(f'{path}: it has no "partitions" list')
    wanted = tuple(row for number, entry in enumerate(entries, 1) for row in _rows(number, entry, path))
    if not wanted:
        raise InputError(f"{path}: it names no partition")
    seen: set[TopicPartition] = set()
    for row in wanted:
        if row.tp in seen:
            raise InputError(f"{path}: {row.tp} is there twice")
        seen.add(row.tp)
    return wanted


def _rows(number: int, entry: object, path: Path) -> Iterator[Wanted]:
    where = f"{path}: entry {number} of partitions"
    if not isinstance(entry, dict):
        raise InputError(f"{where} is not an object")
    topic = entry.get("topic")
    if not isinstance(topic, str) or not topic:
        raise InputError(f'{where} has no "topic"')
    if ("partition" in entry) == ("partitions" in entry):
        raise InputError(f'{where} ({topic}): give either "partition", a number, or "partitions", a list')
    several = "partitions" in entry
    numbers = entry["partitions"] if several else [entry["partition"]]
    if not isinstance(numbers, list) or not all(_is_number(value) for value in numbers):
        raise InputError(f"{where} ({topic}): partitions are whole numbers from 0")
    leader = entry.get("designatedLeader")
    if leader is not None and (several or not _is_number(leader)):
        raise InputError(f'{where} ({topic}): "designatedLeader" is one broker id, for one partition')
    for value in numbers:
        yield Wanted(TopicPartition(topic, value), leader)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _parse(text: str, path: Path) -> object:
    try:
        return _loads(text, path)
    except json.JSONDecodeError as strict:
        try:
            return _loads(_STRING_OR_KEY.sub(_quoted, text), path)
        except json.JSONDecodeError:
            where = f"{path}:{strict.lineno}:{strict.colno}"
            raise InputError(f"{where}: not JSON: {strict.msg[0].lower()}{strict.msg[1:]}") from None


def _loads(text: str, path: Path) -> object:
    def checked(pairs: list[tuple[str, object]]) -> dict[str, object]:
        # Of two equal keys JSON readers keep the last in silence: partitions would be lost unseen.
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise InputError(f"{path}: not JSON: the key {key!r} is there twice in one object")
            found[key] = value
        return found

    return json.loads(text, object_pairs_hook=checked)


def _quoted(found: re.Match[str]) -> str:
    return found.group(1) or f'"{found.group(2)}"'
