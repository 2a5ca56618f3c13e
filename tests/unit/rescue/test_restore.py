"""What is written back of a branch, and what its batches look like then."""

from __future__ import annotations

from pathlib import Path
from struct import pack_into

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from backends.log_segments.batch_header import CHECKED_FROM, parse_header
from backends.log_segments.checksum import crc32c
from console.rescue.branch_writer import BranchWriter
from console.rescue.manifest import BranchManifest, RescueHeader
from console.rescue.record_fields import CannotUnpack, MalformedRecord, producible, records_of
from console.rescue.rescued_branch import RescuedBranch
from console.rescue.restore_selection import RestoreSelection, count_branch, selected_batches
from recovery.model import EpochSpan, TopicPartition
from recovery.rescue_branches import BranchPart, RescueBranch
from tests.unit.rescue.batches import batch

GZIP = 1


def rewritten(data: bytes, attributes: int) -> bytes:
    changed = bytearray(data)
    pack_into(">h", changed, CHECKED_FROM, attributes)
    pack_into(">I", changed, 17, crc32c(bytes(changed[CHECKED_FROM:])))
    return bytes(changed)


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    """A transaction marker: a control batch whose record's key is (version 0, type)."""
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(2, 0, True, producer, 0, -1, 1 << 16)
    assert builder.append(0, 1, b"\0\0\0\1" if commit else b"\0\0\0\0", b"\0\0\0\0\0\0", [])
    data = bytearray(builder.build())
    pack_into(">q", data, 0, offset)
    pack_into(">i", data, 12, 0)
    return rewritten(bytes(data), 0x30)


def rescued(directory: Path, *batches: bytes) -> RescuedBranch:
    data = b"".join(batches)
    start, end = parse_header(batches[0]).base_offset, parse_header(batches[-1]).next_offset
    branch = RescueBranch(TopicPartition("t", 0), "id", 2, 1, BranchPart.TAIL, (EpochSpan(0, start, end),))
    writer = BranchWriter(directory, branch)
    writer.take(data)
    header = RescueHeader("c", "p", "d", "now", "me", "1")
    return RescuedBranch(directory, branch, BranchManifest(header, branch, True, "now", writer.finish()))


@pytest.mark.parametrize("compression", [0, GZIP])
def test_a_batch_is_sent_with_its_records_untouched(compression: int) -> None:
    before = batch(500, 10, 7, producer=99, transactional=True, compression=compression)
    after = producible(before, 4000, 3, 123)
    header = parse_header(after)
    assert DefaultRecordBatch(after).validate_crc()
    assert (header.base_offset, header.leader_epoch) == (0, -1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 3, 123)
    assert not header.is_transactional and header.compression == parse_header(before).compression
    assert after[61:] == before[61:]
    assert [one[1:] for one in records_of(after)] == [one[1:] for one in records_of(before)]
    assert [one.offset for one in records_of(after)] == list(range(10))


def test_a_batch_that_compaction_has_thinned_gets_offsets_without_holes() -> None:
    before = bytearray(batch(500, 3, 7))
    pack_into(">i", before, 23, 9)  # it once had ten records
    assert not DefaultRecordBatch(bytes(before)).validate_crc()
    after = producible(rewritten(bytes(before), 0), 4000, 0, 0)
    assert DefaultRecordBatch(after).validate_crc()
    assert parse_header(after).last_offset_delta == 2
    read = [(r.offset, r.key, r.value) for r in DefaultRecordBatch(after)]
    assert read == [(n, b"k%d" % (500 + n), f"{500 + n} of 7 .".encode()) for n in range(3)]


def test_holes_in_a_compression_that_nobody_knows_are_said() -> None:
    before = bytearray(batch(500, 3, 7))
    pack_into(">i", before, 23, 9)
    with pytest.raises(CannotUnpack, match="unknown-6"):
        producible(rewritten(bytes(before), 6), 4000, 0, 0)


def test_records_that_lie_about_their_length_are_no_records() -> None:
    data = bytearray(batch(0, 3, 0))
    for at in range(61, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        try:
            found = list(records_of(bytes(damaged)))
        except MalformedRecord:
            continue
        assert len(found) == 3


def test_of_transactions_only_what_was_committed_goes_back(tmp_path: Path) -> None:
    branch = rescued(
        tmp_path,
        batch(0, 5, 0),
        batch(5, 5, 0, producer=1, transactional=True),
        batch(10, 5, 0, producer=2, transactional=True),
        marker(15, 1, commit=True),
        batch(16, 4, 0, producer=1, transactional=True),
        marker(20, 2, commit=False),
    )
    chosen = [one.header.base_offset for one in selected_batches(branch, RestoreSelection(), 0)]
    assert chosen == [0, 5]
    counts = count_branch(branch, RestoreSelection())
    assert (counts.selected, counts.aborted, counts.open, counts.control) == (10, 5, 4, 2)
    uncommitted = selected_batches(branch, RestoreSelection(uncommitted=True), 0)
    assert [one.header.base_offset for one in uncommitted] == [0, 5, 10, 16]
