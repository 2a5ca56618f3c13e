"""Fields of a flexible Kafka message (KIP-482), written: the counterpart of :mod:`.field_reader`."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct

from recovery.metadata_log.field_reader import INT8, INT16, INT32, INT64, UINT16

BYTES = [bytes((value,)) for value in range(256)]


@lru_cache(4096)
def _uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


class FieldWriter:
    """Writes one message front to back. Raises struct.error for a number that does not fit its field."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def data(self) -> bytes:
        """The bytes written so far."""
        return b"".join(self._parts)

    def raw(self, data: bytes) -> None:
        self._parts.append(data)

    def _number(self, form: Struct, value: int) -> None:
        self._parts.append(form.pack(value))

    def int8(self, value: int) -> None:
        self._number(INT8, value)

    def int16(self, value: int) -> None:
        self._number(INT16, value)

    def uint16(self, value: int) -> None:
        self._number(UINT16, value)

    def int32(self, value: int) -> None:
        self._number(INT32, value)

    def int64(self, value: int) -> None:
        self._number(INT64, value)

    def boolean(self, value: bool) -> None:
        self._number(INT8, int(value))

    def varint(self, value: int) -> None:
        """An unsigned varint."""
        while value >= 0x80:
            self._parts.append(BYTES[value & 0x7F | 0x80])
            value >>= 7
        self._parts.append(BYTES[value])

    def uuid(self, text: str) -> None:
        """From Kafka's own form: base64 for URLs, without padding."""
        self._parts.append(_uuid(text))

    def string(self, text: str) -> None:
        self.nullable_string(text)

    def nullable_string(self, text: str | None) -> None:
        data = None if text is None else text.encode()
        self.varint(0 if data is None else len(data) + 1)
        self._parts.append(data or b"")

    def nullable_array(
        self, write: Callable[[FieldWriter, object], None], items: Sequence[object] | None
    ) -> None:
        self.varint(0 if items is None else len(items) + 1)
        for item in items or ():
            write(self, item)

    def tags(self, fields: Sequence[tuple[int, bytes]]) -> None:
        """Tagged fields by (tag, value), in the order of their tags."""
        self.varint(len(fields))
        for tag, value in fields:
            self.varint(tag)
            self.varint(len(value))
            self._parts.append(value)
