"""A journal line: one JSON object. Secrets are removed here, whatever the caller passes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import orjson

from console.journal.errors import JournalError
from console.redaction import REDACTED, redact
from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition
from recovery.secret_names import names_secret

FORMAT_VERSION = 1

ROW_LISTS = ("applied", "refused", "unknown")
"""The results of an entry's rows; the result of a row in none of them is unknown."""


class KafkaElectionKind(StrEnum):
    """Elections in which Kafka chooses the leader."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> KafkaElectionKind | None:
        """The kind in the detail of an entry; None: the leader is designated."""
        kind = detail.get("election")
        return cls(kind) if kind in tuple(cls) else None


def encode(kind: str, at: datetime, members: Mapping[str, object]) -> bytes:
    """The line, with its newline."""
    line = {"v": FORMAT_VERSION, "kind": kind, "at": moment(at), **members}
    try:
        return orjson.dumps(line, default=tuple, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half of a surrogate pair, as a file name may contain
        return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def moment(at: datetime) -> str:
    """A time as the journal writes it: UTC, with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def before_members(entry: str, action: str, detail: Mapping[str, object]) -> dict[str, object]:
    """An intention. WrittenOrder rows are written in full, so that they can be reverted from it."""
    rest = dict(detail)
    rows = rest.get("rows")
    members: dict[str, object] = {"entry": entry, "action": action}
    if isinstance(rows, Sequence) and rows and all(isinstance(row, WrittenOrder) for row in rows):
        del rest["rows"]
        members["rows"] = [order_fields(row) for row in rows]
    return {**members, "detail": plain(rest)}


def after_members(entry: str, result: Mapping[str, object]) -> dict[str, object]:
    """A result: ``applied`` is a list of partitions, ``refused`` and ``unknown`` map partitions to the reason."""
    rest = dict(result)
    members: dict[str, object] = {"entry": entry}
    for key in ROW_LISTS:
        rows = rest.pop(key, ())
        if isinstance(rows, Mapping):
            members[key] = [[*tp, redact(str(why))] for tp, why in rows.items()]
        elif isinstance(rows, Iterable):
            members[key] = partition_list(rows)
    return {**members, "result": plain(rest)}


def partition_list(rows: Iterable[TopicPartition]) -> list[list[object]]:
    """Partitions as ``[topic, partition]``."""
    return [[*tp] for tp in rows]


def order_fields(row: WrittenOrder) -> dict[str, object]:
    """A row as JSON; :func:`written_order` reads it back."""
    return {
        "topic": row.tp.topic,
        "partition": row.tp.partition,
        "topicId": row.topic_id,
        "replicas": row.replicas,
        "order": row.order,
    }


def written_order(members: Mapping[str, Any]) -> WrittenOrder:
    """The row of a line. Raises JournalError if it is not one."""
    try:
        row = WrittenOrder(
            TopicPartition(members["topic"], members["partition"]),
            members["topicId"],
            tuple(members["replicas"]),
            tuple(members["order"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JournalError(f"a row that cannot be read ({error})") from None
    if not row.order or sorted(row.order) != sorted(row.replicas):
        raise JournalError(f"a row of {row.tp} whose order does not have the same replicas")
    return row


def plain(value: object) -> object:
    """Any value as JSON, without secrets."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _member(str(key), item) for key, item in value.items()}
    if isinstance(value, bytes | bytearray | memoryview):
        return REDACTED
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(item) for item in value]
    return redact(str(value))


def _member(name: str, value: object) -> object:
    return REDACTED if names_secret(name) else plain(value)
