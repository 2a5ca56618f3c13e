"""Fields of a flexible Kafka message (KIP-482) in a metadata record's value."""

from __future__ import annotations

import base64
from collections.abc import Callable
from struct import Struct, error
from typing import TypeVar

T = TypeVar("T")

INT8, INT16, UINT16, INT32, INT64 = (Struct(f">{code}") for code in "bhHiq")
_UUID_BYTES = 16
_MAX_VARINT_BYTES = 5


class MalformedRecordError(ValueError):
    """A record that does not follow its schema: cut short, a wrong length, or bytes left over."""


class FieldReader:
    """Reads one message front to back. Every method raises MalformedRecordError if there are too few bytes."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def remaining(self) -> int:
        return len(self._data) - self.position

    def _number(self, form: Struct) -> int:
        try:
            (value,) = form.unpack_from(self._data, self.position)
        except error:
            raise MalformedRecordError(f"cut short at byte {self.position}") from None
        self.position += form.size
        return int(value)

    def int8(self) -> int:
        return self._number(INT8)

    def int16(self) -> int:
        return self._number(INT16)

    def uint16(self) -> int:
        return self._number(UINT16)

    def int32(self) -> int:
        return self._number(INT32)

    def int64(self) -> int:
        return self._number(INT64)

    def boolean(self) -> bool:
        return self._number(INT8) != 0

    def varint(self) -> int:
        """An unsigned varint of at most 32 bits."""
        value, shift = 0, 0
        for _ in range(_MAX_VARINT_BYTES):
            if self.remaining < 1:
                raise MalformedRecordError(f"cut short at byte {self.position}")
            byte = self._data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise MalformedRecordError(f"a varint longer than 32 bits before byte {self.position}")

    def raw(self, size: int) -> bytes:
        if size < 0 or size > self.remaining:
            raise MalformedRecordError(
                f"{size} bytes wanted at byte {self.position}, {self.remaining} are left"
            )
        self.position += size
        return self._data[self.position - size : self.position]

    def uuid(self) -> str:
        """In Kafka's own form: base64 for URLs, without padding."""
        return uuid_text(self.raw(_UUID_BYTES))

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise MalformedRecordError("null where a string must be")
        return value

    def nullable_string(self) -> str | None:
        length = self.varint() - 1
        if length < 0:
            return None
        try:
            return self.raw(length).decode()
        except UnicodeDecodeError:
            raise MalformedRecordError("a string that is not UTF-8") from None

    def array(self, item: Callable[[], T], item_size: int = 1) -> tuple[T, ...]:
        """Items of at least ``item_size`` bytes each. A count that the bytes cannot hold is refused at once, so
        that nothing is allocated for it.
        """
        items = self.nullable_array(item, item_size)
        if items is None:
            raise MalformedRecordError("null where an array must be")
        return items

    def nullable_array(self, item: Callable[[], T], item_size: int = 1) -> tuple[T, ...] | None:
        count = self.varint() - 1
        if count < 0:
            return None
        if count * item_size > self.remaining:
            raise MalformedRecordError(
                f"{count} items wanted at byte {self.position}, {self.remaining} bytes are left"
            )
        return tuple(item() for _ in range(count))

    def int32s(self) -> tuple[int, ...]:
        return self.array(self.int32, INT32.size)

    def tags(self, known: dict[int, Callable[[], object]]) -> dict[int, object]:
        """The tagged fields that are ``known``, by tag; others are skipped. A tag's value must fill its size."""
        found: dict[int, object] = {}
        for _ in range(self.varint()):
            tag, size = self.varint(), self.varint()
            end = self.position + size
            if size > self.remaining:
                raise MalformedRecordError(f"tag {tag} of {size} bytes, {self.remaining} are left")
            read = known.get(tag)
            if read is None:
                self.position = end
                continue
            found[tag] = read()
            if self.position != end:
                raise MalformedRecordError(f"tag {tag} does not fill its {size} bytes")
        return found

    def skip_tags(self) -> None:
        self.tags({})

    def end(self) -> None:
        """Raises MalformedRecordError if bytes are left over, as Kafka's own reader does."""
        if self.remaining:
            raise MalformedRecordError(f"{self.remaining} bytes are left over")


def uuid_text(data: bytes) -> str:
    """Sixteen bytes in Kafka's own form: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
