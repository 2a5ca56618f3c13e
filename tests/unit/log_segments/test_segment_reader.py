"""Segments that are whole, cut, damaged and hostile: what is read of them is what was written, or less."""

from __future__ import annotations

import os
import random
import tracemalloc
from pathlib import Path
from struct import pack

import pytest
from crc32c import crc32c as reference

from backends.log_segments.checksum import crc32c_portable
from backends.log_segments.segment_reader import Batch, DefectKind, SegmentReader
from backends.log_segments.segment_source import SegmentBytes, SegmentError, SegmentFile
from tests.repetitions import repetitions
from tests.unit.log_segments.segments import HEADER, batch

MUTATIONS = repetitions(500, 20_000)


def read(data: bytes, check_from: int | None = 0) -> tuple[list[Batch], SegmentReader]:
    reader = SegmentReader(SegmentBytes(data), check_from=check_from)
    return list(reader), reader


def old_message(magic: int, length: int) -> bytes:
    """A message of the formats before 0.11: offset, length, checksum, magic, and the rest."""
    return pack(">qiIB", 120, length, 0xABCDEF01, magic) + b"m" * (length - 5)


LOG = batch(100, 5, payload=b"a" * 40) + batch(105, 1, epoch=3) + batch(110, 2, epoch=3, delta=9)


def test_headers_say_what_was_written() -> None:
    data = batch(
        7,
        3,
        epoch=4,
        payload=b"xyz",
        attributes=0x10 | 0x20 | 0x08 | 4,
        times=(11, 22),
        producer=(9, 1, 30),
    )
    ((found,), reader) = read(data)
    header = found.header
    assert (header.base_offset, header.last_offset, header.next_offset) == (7, 9, 10)
    assert (header.leader_epoch, header.size, header.record_count) == (4, len(data), 3)
    assert (header.base_timestamp, header.max_timestamp) == (11, 22)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 30)
    assert (header.is_transactional, header.is_control, header.is_log_append_time) == (True, True, True)
    assert (header.compression, reader.raw(found)) == ("zstd", data)


def test_batches_follow_each_other_with_the_holes_of_compaction() -> None:
    batches, reader = read(LOG)
    assert [(b.header.base_offset, b.header.next_offset) for b in batches] == [
        (100, 105),
        (105, 106),
        (110, 120),
    ]
    assert (reader.next_offset, reader.end_position, reader.defect) == (120, len(LOG), None)


def test_an_empty_segment_has_no_offset_and_no_defect() -> None:
    batches, reader = read(b"")
    assert (batches, reader.next_offset, reader.defect) == ([], None, None)


@pytest.mark.parametrize(
    ("name", "tail", "kind"),
    [
        ("a batch that was not written to its end", batch(120, payload=b"x" * 90)[:-1], DefectKind.CUT_SHORT),
        ("less than a header", batch(120)[:30], DefectKind.CUT_SHORT),
        ("zeros after a power loss", bytes(5000), DefectKind.ZEROS),
        ("a few zeros", bytes(3), DefectKind.ZEROS),
        ("a flipped bit", batch(120, payload=b"x" * 90)[:-1] + b"y", DefectKind.WRONG_CHECKSUM),
        ("offsets that go back", batch(119), DefectKind.OUT_OF_ORDER),
        ("text", b"this is no batch at all. " * 9, DefectKind.NOT_A_BATCH),
        ("a short message of magic 0", old_message(0, 20), DefectKind.OLD_FORMAT),
        ("a message of magic 1", old_message(1, 90), DefectKind.OLD_FORMAT),
        ("a negative offset", batch(-1), DefectKind.NOT_A_BATCH),
        ("a negative delta", batch(120, delta=-1), DefectKind.NOT_A_BATCH),
        ("offsets beyond 63 bits", batch((1 << 63) - 1, 1), DefectKind.NOT_A_BATCH),
        ("more records than offsets", batch(120, 3, delta=1), DefectKind.NOT_A_BATCH),
    ],
)
def test_what_stands_behind_the_last_whole_batch_is_named(name: str, tail: bytes, kind: DefectKind) -> None:
    batches, reader = read(LOG + tail)
    assert len(batches) == 3
    assert reader.defect is not None
    assert (reader.defect.kind, reader.defect.position) == (kind, len(LOG))
    assert (reader.next_offset, reader.end_position) == (120, len(LOG))
    assert "\n" not in reader.defect.text


def test_checksums_are_checked_from_the_given_offset_on() -> None:
    damaged = bytearray(LOG)
    damaged[70] ^= 1  # in the first batch, offsets 100 to 104
    assert len(read(bytes(damaged), check_from=105)[0]) == 3
    assert read(bytes(damaged), check_from=104)[0] == []
    assert len(read(bytes(damaged), check_from=None)[0]) == 3


@pytest.mark.long
def test_a_hostile_length_allocates_nothing(tmp_path: Path) -> None:
    """A sparse file of 1 GiB that begins with a batch as long as the file."""
    path = tmp_path / "00000000000000000000.log"
    size = 1 << 30
    with path.open("wb") as file:
        file.write(HEADER.pack(0, size - 12, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1))
        file.truncate(size)
    tracemalloc.start()
    with SegmentFile(path) as source:
        reader = SegmentReader(source)
        assert list(reader) == []
        assert reader.defect is not None
        assert reader.defect.kind is DefectKind.WRONG_CHECKSUM
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_large_batches_are_read_from_a_file_by_their_headers(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    data = b"".join(batch(base, payload=bytes(base * 7919 % 300_000)) for base in range(40))
    path.write_bytes(data)
    for check_from in (0, None):
        with SegmentFile(path) as source:
            reader = SegmentReader(source, check_from=check_from)
            batches = list(reader)
            assert b"".join(reader.raw(found) for found in batches) == data
            assert reader.defect is None


def test_a_file_that_becomes_shorter_while_it_is_read_ends_there(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(batch(0, payload=bytes(1 << 20)) + batch(1, payload=bytes(1 << 20)))
    with SegmentFile(path) as source:
        reader = iter_with_cut(SegmentReader(source), path)
        assert reader.next_offset == 1
        assert reader.defect is not None


def iter_with_cut(reader: SegmentReader, path: Path) -> SegmentReader:
    batches = iter(reader)
    first = next(batches)
    os.truncate(path, first.header.size + 100)
    assert list(batches) == []
    return reader


def test_a_file_that_cannot_be_opened_is_refused_in_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path, tmp_path / "fifo"):
        if path.name == "fifo":
            os.mkfifo(path)
        with pytest.raises(SegmentError) as error:
            SegmentFile(path)
        assert "\n" not in str(error.value)


def test_the_portable_checksum_is_the_same() -> None:
    source = random.Random(7)
    for size in [*range(70), 1023, 1024, 1025, 4097, 16_384, 70_001, 1 << 20]:
        data = source.randbytes(size)
        assert crc32c_portable(data, size) == reference(data, size)
        at = size // 3
        assert crc32c_portable(data[at:], crc32c_portable(data[:at])) == reference(data)


def test_mutated_segments_never_invent_a_batch() -> None:
    """Cut, flipped, repeated and overwritten segments: every batch that is read was written, in its order."""
    source = random.Random(20)
    damaged = 0
    for _ in range(MUTATIONS):
        written = random_batches(source)
        data = mutated(b"".join(written), source)
        batches, reader = read(data)
        assert 0 <= reader.end_position <= len(data)
        # The checksum does not cover base offset and leader epoch, so a mutation may have changed them.
        bodies = {one[16:] for one in written}
        assert all(reader.raw(found)[16:] in bodies for found in batches)
        ends = [found.header.next_offset for found in batches]
        assert ends == sorted(set(ends))
        unchecked, loose = read(data, check_from=None)
        assert len(unchecked) >= len(batches)
        assert loose.end_position <= len(data)
        damaged += reader.defect is not None
    assert damaged > MUTATIONS / 2


def test_batches_read_at_once_are_those_read_one_by_one() -> None:
    source = random.Random(21)
    at_once = 0
    for _ in range(MUTATIONS):
        data = b"".join(random_batches(source) + long_run(source))
        if source.randrange(3):
            data = mutated(data, source)
        check_from = source.choice((0, None, 12))
        one_by_one, reader = read(data, check_from)
        quick = SegmentReader(SegmentBytes(data), check_from=check_from)
        records, newest = 0, -1
        for found in quick:
            alike = quick.read_alike(found.header.leader_epoch, source.choice((1 << 62, len(data) // 2)))
            records += alike.records + (0 if found.header.is_control else found.header.record_count)
            newest = max(newest, alike.newest, found.header.max_timestamp)
            at_once += alike.records
        headers = [found.header for found in one_by_one]
        assert records == sum(header.record_count for header in headers if not header.is_control)
        assert newest == max((-1, *(header.max_timestamp for header in headers)))
        ended = (quick.end_position, quick.next_offset, quick.defect)
        assert ended == (reader.end_position, reader.next_offset, reader.defect)
    assert at_once > MUTATIONS


def long_run(source: random.Random) -> list[bytes]:
    """Batches of one epoch, some of them control batches."""
    base = 1 << 41
    return [
        batch(base + 10 * number, 3, epoch=4, attributes=source.choice((0, 0, 0x20)), times=(1, number))
        for number in range(source.randrange(20))
    ]


def random_batches(source: random.Random) -> list[bytes]:
    written, base = [], source.choice((0, 5, 1 << 40))
    for _ in range(source.randrange(1, 6)):
        records = source.randrange(1, 9)
        payload = source.randbytes(source.choice((0, 1, 30, 200)))
        written.append(batch(base, records, epoch=source.randrange(4), payload=payload))
        base += records + source.choice((0, 0, 3))
    return written


def mutated(data: bytes, source: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(source.randrange(1, 4)):
        at = source.randrange(len(changed) + 1)
        match source.randrange(6):
            case 0:
                del changed[at:]
            case 1 if at < len(changed):
                changed[at] ^= 1 << source.randrange(8)
            case 2:
                changed[at : at + 4] = source.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4)))
            case 3:
                changed[at:at] = changed[: source.randrange(200)]
            case 4:
                changed += bytes(source.randrange(100))
            case _:
                del changed[at : at + source.randrange(80)]
    return bytes(changed)


def test_a_file_is_read_where_its_access_time_cannot_be_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems refuse the flag as invalid, not as forbidden."""
    opened = os.open

    def without_noatime(path: str, flags: int) -> int:
        if flags & os.O_NOATIME:
            raise OSError(22, "Invalid argument")
        return opened(path, flags)

    (tmp_path / "a.log").write_bytes(b"abc")
    monkeypatch.setattr(os, "open", without_noatime)
    with SegmentFile(tmp_path / "a.log") as file:
        assert file.read(0, 3) == b"abc"
