"""Fast path: the rows of one topic are unpacked together, into one tuple per field instead of one object per row.

Only rows with the usual encoding (:class:`RowFormat`) are read this way. Anything else raises
:class:`NeedsFullDecoder`, and the caller uses kio's full decoder: this module changes only how long decoding takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple

Columns = tuple[tuple[Any, ...], ...]

_AT_A_STROKE = 64
"""Rows that one format covers; a longer run is unpacked row by row, and turned round."""
_FORMATS = 1_024


class NeedsFullDecoder(Exception):
    """The bytes are not in the form that the fast path reads; they may still be valid. Use the full decoder."""


class RowFormat(NamedTuple):
    """Rows of ``size`` bytes each; ``code`` is a struct format with ``width`` fields, ``x`` skips a byte.

    ``marks`` map an offset in the row to the byte values allowed there: an empty array, no tags.
    """

    code: str
    width: int
    size: int
    marks: tuple[tuple[int, bytes], ...]


@lru_cache(_FORMATS)
def _format(code: str, rows: int) -> Struct:
    return Struct(">" + code * rows)


class ColumnReader:
    """A position in the bytes of one answer (compact encodings, KIP-482). Every method raises NeedsFullDecoder."""

    __slots__ = ("_data", "at")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def fields(self, code: str) -> tuple[Any, ...]:
        """A few fields of fixed size, big end first."""
        form = _format(code, 1)
        return form.unpack_from(self._data, self._take(form.size))

    def length(self) -> int:
        """The length of an array or string that is not nullable."""
        value = self._varint()
        if not value:
            raise NeedsFullDecoder
        return value - 1

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        at = self._take(size)
        return self._data[at : self.at]

    def boolean(self) -> bool:
        """One byte, 0 or 1."""
        value = self.take(1)
        if value not in (b"\0", b"\1"):
            raise NeedsFullDecoder
        return value == b"\1"

    def string(self) -> str:
        """A string that is not nullable."""
        try:
            return self.take(self.length()).decode()
        except UnicodeDecodeError:
            raise NeedsFullDecoder from None

    def no_tags(self) -> None:
        """The end of a message without tagged fields."""
        if self.take(1) != b"\0":
            raise NeedsFullDecoder

    def end(self) -> None:
        """The end of the answer."""
        self.no_tags()
        if self.at != len(self._data):
            raise NeedsFullDecoder

    def fits(self, form: RowFormat, rows: int) -> bool:
        """Whether the next ``rows`` rows have that format."""
        at, data = self.at, self._data
        end = at + form.size * rows
        if end > len(data):
            return False
        size = form.size
        for offset, allowed in form.marks:  # noqa: SIM110  # the generator of any() takes as long as the test
            if data[at + offset : end : size].strip(allowed):
                return False
        return True

    def runs(self, offset: int, forms: Mapping[int, RowFormat], rows: int) -> list[tuple[RowFormat, int]]:
        """Consecutive rows by format, which the byte at ``offset`` of each row tells.

        The rows are not checked yet: see :meth:`columns`.
        """
        data, at = self._data, self.at
        found = []
        try:
            if rows and self.fits(forms[data[at + offset]], rows):
                return [(forms[data[at + offset]], rows)]
            for _ in range(rows):
                form = forms[data[at + offset]]
                found.append(form)
                at += form.size
        except (IndexError, KeyError):
            raise NeedsFullDecoder from None
        return [(form, len(list(run))) for form, run in groupby(found)]

    def columns(self, form: RowFormat, rows: int) -> Columns:
        """The next ``rows`` rows of format ``form``: one tuple per field."""
        if not rows:
            return ((),) * form.width
        if not self.fits(form, rows):
            raise NeedsFullDecoder
        at = self._take(form.size * rows)
        if rows > _AT_A_STROKE:
            one = _format(form.code, 1)
            return tuple(zip(*one.iter_unpack(self._data[at : self.at]), strict=True))
        flat = _format(form.code, rows).unpack_from(self._data, at)
        width = form.width
        return tuple([flat[index::width] for index in range(width)])

    def _take(self, size: int) -> int:
        at = self.at
        if size > len(self._data) - at:
            raise NeedsFullDecoder
        self.at = at + size
        return at

    def _varint(self) -> int:
        data, at = self._data, self.at
        value = 0
        for shift in range(0, 28, 7):  # enough for any length that fits into a frame
            if at >= len(data):
                break
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # the continuation bit
                self.at = at
                return value
        raise NeedsFullDecoder


def joined(parts: Sequence[Columns]) -> Columns:
    """Columns of consecutive rows, joined."""
    if len(parts) == 1:
        return parts[0]
    return tuple(tuple(chain.from_iterable(column)) for column in zip(*parts, strict=True))


def aligned(asked: Sequence[int], columns: Columns) -> Columns:
    """The rows in the order of ``asked``, by the numbers in the first column; other rows are dropped.

    Raises NeedsFullDecoder where one is missing or comes twice.
    """
    numbers = columns[0]
    if numbers == asked:
        return columns
    places: Mapping[int, int] = dict(zip(numbers, range(len(numbers)), strict=True))
    if len(places) != len(numbers):
        raise NeedsFullDecoder
    try:
        wanted = [places[number] for number in asked]
    except KeyError:
        raise NeedsFullDecoder from None
    if len(wanted) == 1:
        return tuple((column[wanted[0]],) for column in columns)
    return tuple(map(itemgetter(*wanted), columns))
