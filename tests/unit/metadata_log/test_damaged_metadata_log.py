"""Files of a metadata log that are damaged, or not there: what is read of them, and what is told."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from backends.metadata_log.directory import DirectoryReading, MetadataDirError, read_directory
from backends.metadata_log.topic_scan import TopicScan
from recovery.metadata_log.history import fold
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import events
from tests.unit.metadata_log.incident_log import INCIDENT, find, read

SEGMENT = "00000000000000000000.log"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the log that a test may damage."""
    shutil.copy(INCIDENT / SEGMENT, tmp_path / SEGMENT)
    return tmp_path


def test_a_torn_tail_ends_the_reading_and_is_told(copy: Path) -> None:
    whole = (copy / SEGMENT).read_bytes()
    (copy / SEGMENT).write_bytes(whole[:-7])
    records, reading = read(copy)
    assert reading.problem is not None
    assert "cut short" in reading.problem
    last_batch = read(INCIDENT)[0][-1].batch
    assert records == [record for record in read(INCIDENT)[0] if record.batch < last_batch]


def test_a_damaged_batch_ends_the_reading_and_is_told(copy: Path) -> None:
    data = bytearray((copy / SEGMENT).read_bytes())
    data[len(data) // 2] ^= 0xFF
    (copy / SEGMENT).write_bytes(data)
    records, reading = read(copy)
    assert reading.problem is not None
    assert 0 < len(records) < len(read(INCIDENT)[0])


def test_zeros_behind_the_last_batch_are_no_records(copy: Path) -> None:
    with (copy / SEGMENT).open("ab") as file:
        file.write(bytes(4096))
    records, reading = read(copy)
    assert len(records) == len(read(INCIDENT)[0])
    assert reading.problem is not None


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MetadataDirError, match="holds no metadata log"):
        read(tmp_path)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MetadataDirError, match="cannot be read"):
        read(tmp_path / "nothing")


def test_a_log_that_begins_late_needs_a_snapshot(copy: Path) -> None:
    (copy / SEGMENT).rename(copy / "00000000000000000500.log")
    with pytest.raises(MetadataDirError, match="no snapshot leads up to it"):
        read(copy)


def test_a_missing_segment_ends_the_reading_and_is_told(copy: Path) -> None:
    shutil.copy(copy / SEGMENT, copy / "00000000000000000500.log")
    records, reading = read(copy)
    assert len(records) == len(read(INCIDENT)[0])
    assert reading.problem is not None
    assert "are missing before 00000000000000000500.log" in reading.problem


@pytest.mark.parametrize("topics", [None, ["orders"]])
@pytest.mark.parametrize("cut", [0, 1, 9])
def test_batches_missing_within_a_segment_end_the_reading_and_are_told(
    copy: Path, cut: int, topics: list[str] | None
) -> None:
    data = (copy / SEGMENT).read_bytes()
    starts = batch_starts(data)
    (at, base), (following, next_base) = starts[cut], starts[cut + 1]
    (copy / SEGMENT).write_bytes(data[:at] + data[following:])
    reading = DirectoryReading(copy)
    records = list(read_directory(reading, TopicScan(topics) if topics else None))
    assert all(record.offset < base for record in records)
    assert reading.end_offset == base
    assert reading.problem == (
        f"{SEGMENT}: offsets {base} to {next_base - 1} are missing before the batch at offset {next_base}"
    )


def test_batches_missing_within_a_snapshot_make_it_unusable(copy: Path) -> None:
    values = {r.offset: r.value for r in read(INCIDENT)[0]}
    snapshot = build_batch(0, [values[28]]) + build_batch(2, [values[31]])
    (copy / "00000000000000000032-0000000001.checkpoint").write_bytes(snapshot)
    (copy / SEGMENT).unlink()
    with pytest.raises(MetadataDirError, match="offsets 1 to 1 are missing"):
        read(copy)


def test_a_log_that_ends_before_a_snapshot_is_told_to_be_incomplete(copy: Path) -> None:
    end = read(INCIDENT)[1].end_offset
    values = {r.offset: r.value for r in read(INCIDENT)[0]}
    name = f"{end + 10:020}-0000000001.checkpoint"
    (copy / name).write_bytes(build_batch(0, [values[28], values[31]]))
    records, reading = read(copy)
    assert len(records) == len(read(INCIDENT)[0])
    assert reading.problem == f"offsets {end} to {end + 9}, which a snapshot holds, are missing"


def test_a_snapshot_stands_for_the_part_of_the_log_that_was_deleted(copy: Path) -> None:
    """The log from offset 60 on, behind a snapshot of what stood there: the same end is read."""
    values = {r.offset: r.value for r in read(INCIDENT)[0]}
    topic, partition = values[28], values[31]
    snapshot = build_batch(0, [topic, partition])
    (copy / "00000000000000000032-0000000001.checkpoint").write_bytes(snapshot)
    data = (copy / SEGMENT).read_bytes()
    at = next(at for at, base in batch_starts(data) if base >= 32)
    (copy / SEGMENT).unlink()
    (copy / "00000000000000000032.log").write_bytes(data[at:])
    records, reading = read(copy)
    assert reading.snapshot is not None
    found = fold(records)
    (orders,) = found.partitions()
    (whole,) = fold(read(INCIDENT)[0]).partitions()
    ends = [h.intervals(s)[-1].registration for h, s in ((found, orders), (fold(read(INCIDENT)[0]), whole))]
    assert ends[0] == ends[1]
    # What stood in the snapshot did not happen when it was written.
    assert all(event.offset >= 32 for event in events(found))
    assert len(find(found, EventKind.OFFLINE)) == 2


def batch_starts(data: bytes) -> list[tuple[int, int]]:
    """(position, first offset) of every batch."""
    found, at = [], 0
    while at < len(data):
        base, length = struct.unpack_from(">qi", data, at)
        found.append((at, base))
        at += 12 + length
    return found


def build_batch(base: int, values: list[bytes], time_ms: int = 1_795_381_700_000) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, 0, 1 << 20)
    for at, value in enumerate(values):
        builder.append(at, time_ms, None, value, [])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base)
    return bytes(data)
