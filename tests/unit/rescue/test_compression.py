"""Records of every compression are shown; damaged ones are told, and never unpacked beyond bounds."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from struct import pack, pack_into

import pyarrow as pa
import pytest

from console.jobs.rescue.rescue_view import record_line
from console.rescue_files import compression
from console.rescue_files.compression import DamagedCompression, gzipped, unpacked
from console.rescue_files.record_batches import CannotUnpack, MalformedRecord, Record, records_of
from tests.unit.rescue.batches import batch

RECORDS = b"".join(b"record %d, " % number for number in range(5_000))


def xerial(data: bytes) -> bytes:
    """As snappy-java writes: a header, then blocks of 32 KiB with their lengths."""
    blocks = [packed("snappy", data[at : at + 32768]) for at in range(0, len(data), 32768)]
    return b"\x82SNAPPY\x00" + pack(">ii", 1, 1) + b"".join(pack(">i", len(one)) + one for one in blocks)


def packed(codec: str, data: bytes) -> bytes:
    found: bytes = pa.compress(data, codec=codec, asbytes=True)
    return found


WRITERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzipped),
    "snappy of Java": ("snappy", xerial),
    "snappy of librdkafka": ("snappy", lambda data: packed("snappy", data)),
    "lz4": ("lz4", lambda data: packed("lz4", data)),
    "zstd": ("zstd", lambda data: packed("zstd", data)),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_client_packed_is_unpacked(writer: str) -> None:
    codec, pack_with = WRITERS[writer]
    assert unpacked(codec, pack_with(RECORDS)) == RECORDS
    assert unpacked(codec, pack_with(b"")) == b""


@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_data_is_told_in_one_line(writer: str) -> None:
    codec, pack_with = WRITERS[writer]
    whole, chance = pack_with(RECORDS), random.Random(7)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            unpacked(codec, bytes(damaged[: chance.randrange(len(damaged))]))
        except DamagedCompression as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_batch_that_grows_beyond_bounds_is_refused(writer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST_RECORDS", len(RECORDS) - 1)
    codec, pack_with = WRITERS[writer]
    with pytest.raises(DamagedCompression, match="more than"):
        unpacked(codec, pack_with(RECORDS))


def test_records_of_a_compressed_batch_are_those_of_the_plain_one() -> None:
    plain = batch(100, 20, 3)
    for number, codec in enumerate(("gzip", "snappy", "lz4", "zstd"), 1):
        data = bytearray(plain[:61] + packed(codec, plain[61:]))
        pack_into(">h", data, 21, number)
        assert list(records_of(bytes(data))) == list(records_of(plain))
        del data[-20:]
        with pytest.raises(MalformedRecord):
            list(records_of(bytes(data)))


@pytest.mark.parametrize(("number", "codec"), [(2, "snappy"), (3, "lz4"), (4, "zstd")])
def test_without_arrow_the_records_say_what_would_unpack_them(
    monkeypatch: pytest.MonkeyPatch, number: int, codec: str
) -> None:
    plain = batch(100, 20, 3)
    data = bytearray(plain[:61] + packed(codec, plain[61:]))
    pack_into(">h", data, 21, number)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CannotUnpack) as said:
        list(records_of(bytes(data)))
    assert str(said.value) == f"records compressed with {codec} need pyarrow: pip install 'ktriage[large]'"


def test_a_record_is_shown_as_text_as_json_on_one_line_or_in_hexadecimal_digits() -> None:
    header = ((b"trace", b"a\nb"), (b"\xff", None))
    values = (b"plain", b'{\n  "id": 7\n}', b"{\nbroken", b"\x00\xff", None)
    lines = [record_line(Record(1000, 0, b"k", value, header)) for value in values]
    shown = [line.split("  ")[3] for line in lines]
    assert shown == ["plain", '{"id": 7}', "{ broken", "0x00ff", "null"]
    assert lines[0].endswith("  trace=a b  0xff=null")
