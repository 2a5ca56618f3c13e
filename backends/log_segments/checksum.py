"""CRC-32C (Castagnoli, RFC 3720), which every record batch of magic 2 carries.

The package ``crc32c`` where it is installed. Without it, as on a broker's host, pure Python: long data is cut into
lanes of equal length, and one step advances all lanes by a byte with whole-string operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isqrt

_POLYNOMIAL = 0x82F63B78
_FEWEST_LANES = 32
"""Below this square, a table lookup for each byte is as quick as lanes."""
_MOST_LANES = 1024


def _byte_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _byte_table()
_TABLE_BYTES = [bytes((entry >> shift) & 0xFF for entry in _TABLE) for shift in (0, 8, 16, 24)]
"""Byte 0 to 3 of every table entry, for ``bytes.translate``."""
_ZEROS: dict[int, list[list[int]]] = {}
"""For a number of zero bytes: what they turn each byte of a CRC into."""


def crc32c_portable(data: bytes | memoryview, crc: int = 0) -> int:
    """CRC-32C of ``data`` behind data of the checksum ``crc``, with nothing but the standard library."""
    data = bytes(data)
    crc ^= 0xFFFFFFFF
    at = 0
    while len(data) - at >= _FEWEST_LANES * _FEWEST_LANES:
        lanes = min(isqrt(len(data) - at), _MOST_LANES)
        length = min((len(data) - at) // lanes, _MOST_LANES)
        crc = _behind_zeros(crc, lanes * length) ^ _lanes(data[at : at + lanes * length], lanes, length)
        at += lanes * length
    return _bytewise(data[at:], crc) ^ 0xFFFFFFFF


def _bytewise(data: bytes, crc: int) -> int:
    table = _TABLE
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc


def _lanes(data: bytes, lanes: int, length: int) -> int:
    """CRC of ``lanes`` runs of ``length`` bytes, from an initial value of 0."""
    first, second, third, fourth = _TABLE_BYTES
    # The CRC of every lane, least significant byte first: one number a byte, a lane being a byte of it.
    low = low_middle = high_middle = high = 0
    for step in range(length):
        index = (low ^ int.from_bytes(data[step::length], "big")).to_bytes(lanes, "big")
        low = low_middle ^ int.from_bytes(index.translate(first), "big")
        low_middle = high_middle ^ int.from_bytes(index.translate(second), "big")
        high_middle = high ^ int.from_bytes(index.translate(third), "big")
        high = int.from_bytes(index.translate(fourth), "big")
    columns = [number.to_bytes(lanes, "big") for number in (low, low_middle, high_middle, high)]
    zeros = _zeros(length)
    crc = 0
    for lane in range(lanes):
        crc = _apply(zeros, crc)
        crc ^= columns[0][lane] | columns[1][lane] << 8 | columns[2][lane] << 16 | columns[3][lane] << 24
    return crc


def _behind_zeros(crc: int, count: int) -> int:
    return _apply(_zeros(count), crc)


def _apply(zeros: list[list[int]], crc: int) -> int:
    return (
        zeros[0][crc & 0xFF]
        ^ zeros[1][(crc >> 8) & 0xFF]
        ^ zeros[2][(crc >> 16) & 0xFF]
        ^ zeros[3][crc >> 24]
    )


def _zeros(count: int) -> list[list[int]]:
    """What ``count`` zero bytes turn each of the four bytes of a CRC into."""
    found = _ZEROS.get(count)
    if found is None:
        if len(_ZEROS) >= 64:
            _ZEROS.clear()
        found = _ZEROS[count] = _zero_tables(count)
    return found


def _zero_tables(count: int) -> list[list[int]]:
    bits = [_bit_behind_zeros(1 << bit, count) for bit in range(32)]
    tables = []
    for byte in range(4):
        table = [0] * 256
        for value in range(1, 256):
            lowest = (value & -value).bit_length() - 1
            table[value] = table[value & (value - 1)] ^ bits[8 * byte + lowest]
        tables.append(table)
    return tables


def _bit_behind_zeros(crc: int, count: int) -> int:
    """``crc`` times x^(8 * count), by squaring."""
    power = 0x00800000  # x^8; bit 31 is x^0
    while count:
        if count & 1:
            crc = _multiply(crc, power)
        power = _multiply(power, power)
        count >>= 1
    return crc


def _multiply(left: int, right: int) -> int:
    """Product of two polynomials over GF(2), modulo the CRC's."""
    product = 0
    for bit in range(31, -1, -1):
        if left >> bit & 1:
            product ^= right
        right = (right >> 1) ^ (_POLYNOMIAL if right & 1 else 0)
    return product


def crc32c(data: bytes | memoryview, crc: int = 0) -> int:
    """CRC-32C of ``data``, behind data of the checksum ``crc``."""
    return _implementation()(data, crc)


@cache
def _implementation() -> Callable[[bytes | memoryview, int], int]:
    """Found when it is needed first: the package imports much."""
    try:
        from crc32c import crc32c as native  # noqa: PLC0415  # it imports much
    except ImportError:
        return crc32c_portable
    return native
