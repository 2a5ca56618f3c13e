"""The schema of a flexible Kafka message (KIP-482), read and written by one table of fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from recovery.metadata_log.field_reader import FieldReader
from recovery.metadata_log.field_writer import FieldWriter


class FieldType(NamedTuple):
    """How values of one type are read and written; ``size`` is their minimum number of bytes."""

    read: Callable[[FieldReader], Any]
    write: Callable[[FieldWriter, Any], None]
    size: int = 1


INT8 = FieldType(FieldReader.int8, FieldWriter.int8)
INT16 = FieldType(FieldReader.int16, FieldWriter.int16, 2)
UINT16 = FieldType(FieldReader.uint16, FieldWriter.uint16, 2)
INT32 = FieldType(FieldReader.int32, FieldWriter.int32, 4)
INT64 = FieldType(FieldReader.int64, FieldWriter.int64, 8)
BOOLEAN = FieldType(FieldReader.boolean, FieldWriter.boolean)
UUID = FieldType(FieldReader.uuid, FieldWriter.uuid, 16)
STRING = FieldType(FieldReader.string, FieldWriter.string)
NULLABLE_STRING = FieldType(FieldReader.nullable_string, FieldWriter.nullable_string)


def array(item: FieldType) -> FieldType:
    """An array that may not be null, as a tuple."""

    def read(reader: FieldReader) -> Any:
        return reader.array(lambda: item.read(reader), item.size)

    return FieldType(read, nullable_array(item).write)


def nullable_array(item: FieldType) -> FieldType:
    """An array, or None."""

    def read(reader: FieldReader) -> Any:
        return reader.nullable_array(lambda: item.read(reader), item.size)

    def write(writer: FieldWriter, items: Any) -> None:
        writer.nullable_array(item.write, items)

    @lru_cache(4096)
    def encoded(items: Any) -> bytes:
        writer = FieldWriter()
        write(writer, items)
        return writer.data()

    def write_repeated(writer: FieldWriter, items: Any) -> None:
        """Thousands of partitions have the same few brokers and log dirs."""
        writer.raw(encoded(None if items is None else tuple(items)))

    return FieldType(read, write_repeated if item in (INT32, UUID) else write)


class SchemaField(NamedTuple):
    """A field of every message from version ``since`` on.

    ``default`` is its value in earlier versions, and is written if no value is given.
    """

    name: str
    type: FieldType
    since: int = 0
    default: Any = None


class Tagged(NamedTuple):
    """A field that is only written if it differs from its ``default``."""

    tag: int
    name: str
    type: FieldType
    since: int = 0
    default: Any = None


class MessageSchema:
    """``fields`` in their order, and the ``tagged`` fields that are read; other tags are skipped."""

    def __init__(self, *fields: SchemaField, tagged: tuple[Tagged, ...] = ()) -> None:
        self._fields = fields
        self._tagged = tuple(sorted(tagged))

    def read(self, reader: FieldReader, version: int, *, skip: int = 0) -> dict[str, Any]:
        """Values by name. The first ``skip`` fields have already been read. Raises MalformedRecordError."""
        values = {
            field.name: field.type.read(reader) if version >= field.since else field.default
            for field in self._fields[skip:]
        }
        known: dict[int, Callable[[], object]] = {
            field.tag: partial(field.type.read, reader) for field in self._tagged if version >= field.since
        }
        found = reader.tags(known)
        for field in self._tagged:
            values[field.name] = found.get(field.tag, field.default)
        return values

    def write(self, writer: FieldWriter, version: int, values: Mapping[str, Any]) -> None:
        for field in self._fields:
            if version >= field.since:
                field.type.write(writer, values.get(field.name, field.default))
        tags = []
        for tagged in self._tagged:
            value = values.get(tagged.name, tagged.default)
            if version >= tagged.since and value != tagged.default:
                inner = FieldWriter()
                tagged.type.write(inner, value)
                tags.append((tagged.tag, inner.data()))
        writer.tags(tags)

    @property
    def type(self) -> FieldType:
        """The message as an item of an array, by version 0."""
        return FieldType(
            lambda reader: self.read(reader, 0), lambda writer, values: self.write(writer, 0, values)
        )
