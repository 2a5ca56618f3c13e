"""What is written back of a branch, and what its batches look like then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from struct import pack_into
from typing import Any

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from backends.log_segments.batch_header import CHECKED_FROM, parse_header
from backends.log_segments.checksum import crc32c
from console.errors import InputError
from console.rescue_files.branch_summary import summarise_branch
from console.rescue_files.branch_writer import BranchWriter
from console.rescue_files.manifest import BranchManifest, RescueHeader
from console.rescue_files.record_batches import MalformedRecord, producible, records_of
from console.rescue_files.rescued_branch import RescuedBranch
from console.rescue_files.restore_selection import (
    MARK,
    BatchToRestore,
    RecordFilter,
    RestoredTransactions,
    RestoreSelection,
    TargetLimits,
    batches_to_restore,
    count_branch,
    key_digest,
)
from recovery.model import EpochSpan, TopicPartition
from recovery.rescue_branches import BranchPart, RescueBranch
from tests.unit.rescue.batches import batch

GZIP = 1
ALL = RestoreSelection()


def rewritten(data: bytes, attributes: int) -> bytes:
    changed = bytearray(data)
    pack_into(">h", changed, CHECKED_FROM, attributes)
    pack_into(">I", changed, 17, crc32c(bytes(changed[CHECKED_FROM:])))
    return bytes(changed)


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    """A transaction marker: a control batch whose record's key is (version 0, type)."""
    builder = DefaultRecordBatchBuilder(2, 0, True, producer, 0, -1, 1 << 16)
    assert builder.append(0, 1, b"\0\0\0\1" if commit else b"\0\0\0\0", b"\0\0\0\0\0\0", [])
    data = bytearray(builder.build())
    pack_into(">q", data, 0, offset)
    pack_into(">i", data, 12, 0)
    return rewritten(bytes(data), 0x30)


def rescued(directory: Path, *batches: bytes) -> RescuedBranch:
    data = b"".join(batches)
    first = parse_header(batches[0])
    start, end = first.base_offset, parse_header(batches[-1]).next_offset
    branch = RescueBranch(
        TopicPartition("t", 0), "id", 2, 1, BranchPart.TAIL, (EpochSpan(first.leader_epoch, start, end),)
    )
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


def thinned(codec: str = "none") -> bytes:
    """What compaction left of ten records: 500, 501 and 502, and then the end of the batch."""
    before = bytearray(batch(500, 3, 7))
    body = bytes(before[61:])
    if codec != "none":
        before[61:] = pa.compress(body, codec=codec, asbytes=True)
    pack_into(">i", before, 8, len(before) - 12)
    pack_into(">i", before, 23, 9)
    return rewritten(bytes(before), ("none", "gzip", "snappy", "lz4", "zstd").index(codec))


def sent(branch: RescuedBranch, selection: RestoreSelection = ALL, **more: Any) -> list[BatchToRestore]:
    start, limits = more.get("start", 0), TargetLimits(more.get("most", 1 << 20), more.get("newer", ()))
    found = list(batches_to_restore(branch, selection, start, limits))
    counts = count_branch(branch, selection, limits)
    if not start:
        assert counts.selected == sum(one.records for one in found)
        assert counts.reencoded == sum(one.records for one in found if one.reencoded)
    for one in found:
        as_sent = DefaultRecordBatch(producible(one.data, 4000, 0, 0))
        assert as_sent.validate_crc() and as_sent.base_offset == 0
        header = parse_header(one.data)
        assert header.record_count == one.records == header.last_offset_delta + 1
    return found


def contents(found: list[BatchToRestore]) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(r.timestamp, r.key, r.value) for one in found for r in records_of(one.data)]


def records(*offsets: int) -> list[tuple[int, bytes, bytes]]:
    """As tests.unit.rescue.batches makes them, of epoch 7."""
    return [(1_700_000_000_000 + n, b"k%d" % n, f"{n} of 7 ".encode().ljust(10, b".")) for n in offsets]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_compaction_has_thinned_gets_offsets_without_holes(tmp_path: Path, codec: str) -> None:
    (one,) = found = sent(rescued(tmp_path, thinned(codec)))
    assert one.reencoded and one.next_offset == 510
    assert contents(found) == records(500, 501, 502)
    assert parse_header(one.data).compression == ("none" if codec == "none" else "gzip")


def test_headers_empty_keys_and_null_values_are_encoded_as_they_were(tmp_path: Path) -> None:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 16)
    headers = [("trace", b"\xff"), ("none", None), ("trace", b"")]
    for delta, (key, value) in enumerate(((b"", None), (None, b""), (b"k", b"v"))):
        assert builder.append(delta, 50 - delta, key, value, headers)
    plain = bytearray(builder.build())
    pack_into(">i", plain, 23, 5)
    before = rewritten(bytes(plain), 0)
    (one,) = sent(rescued(tmp_path, before))
    found = [
        (r.timestamp, r.key, r.value, r.headers) for r in DefaultRecordBatch(producible(one.data, 1, 0, 0))
    ]
    assert found == [(r.timestamp, r.key, r.value, headers) for r in DefaultRecordBatch(before)]


def test_a_batch_that_nobody_can_unpack_is_said(tmp_path: Path) -> None:
    unknown = rewritten(thinned(), 6)
    with pytest.raises(
        InputError, match="batch at offset 500 cannot be written back: compressed with unknown-6"
    ):
        sent(rescued(tmp_path, unknown))


def test_a_batch_too_large_for_the_topic_is_sent_in_parts_and_goes_on_between_them(tmp_path: Path) -> None:
    branch = rescued(tmp_path, batch(500, 10, 7, size=100), batch(510, 2, 7, size=100))
    found = sent(branch, most=500)
    assert [one.records for one in found] == [3, 3, 3, 1, 2]
    assert [one.next_offset for one in found] == [503, 506, 509, 510, 512]
    assert [key for _, key, _ in contents(found)] == [b"k%d" % n for n in range(500, 512)]
    for number, one in enumerate(found[:-1], 1):
        again = sent(branch, start=one.next_offset, most=500)
        assert [b.data for b in again] == [b.data for b in found[number:]], "the same batches after a kill"


@pytest.mark.parametrize(
    ("packed", "parts", "too_large"),
    [("producer", 1, 0), ("gzip", 1, 0), ("zstd", 4, 0), ("uncompressed", 4, 1)],
)
def test_a_batch_that_the_broker_packs_anew_is_as_large_as_it_makes_it(
    tmp_path: Path, packed: str, parts: int, too_large: int
) -> None:
    """Packed, ten records fit into one batch, and one that is too large by itself into another."""
    several = rescued(tmp_path / "several", batch(500, 10, 7, size=100, compression=GZIP))
    alone = rescued(tmp_path / "alone", batch(510, 1, 7, size=1000, compression=GZIP))
    limits = TargetLimits(500, packed=packed)
    assert len(list(batches_to_restore(several, ALL, 0, limits))) == parts
    assert count_branch(several, ALL, limits).refused == 0
    assert count_branch(alone, ALL, limits).too_large == too_large


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (RecordFilter(after_offset=507), range(508, 520)),
        (RecordFilter(from_ms=1_700_000_000_505, to_ms=1_700_000_000_512), range(505, 512)),
        (RecordFilter(key="k50[37]"), (503, 507)),
        (RecordFilter(key="50"), ()),
        (RecordFilter(missing_keys=True), range(510, 520)),
    ],
)
def test_records_are_chosen_one_by_one(tmp_path: Path, only: RecordFilter, expected: Iterable[int]) -> None:
    branch = rescued(tmp_path, batch(500, 10, 7), batch(510, 10, 7))
    newer = {key_digest(b"k%d" % n) for n in range(510)} if only.missing_keys else ()
    selection = RestoreSelection(only=only)
    assert contents(sent(branch, selection, newer=newer)) == records(*expected)
    counts = count_branch(branch, selection, TargetLimits(newer=newer))
    assert counts.selected + counts.filtered == 20


def test_marked_records_say_where_they_come_from(tmp_path: Path) -> None:
    (one,) = sent(rescued(tmp_path, batch(500, 2, 7)), RestoreSelection(mark=True))
    marks = [record.headers for record in records_of(one.data)]
    assert marks == [((MARK, b"t-0 offset %d epoch 7 broker 1" % n),) for n in (500, 501)]


def test_what_the_leader_has_too_is_cut_out_of_the_first_and_the_last_batch(tmp_path: Path) -> None:
    branch = rescued(tmp_path, batch(500, 10, 7), batch(510, 10, 7))
    part = branch.branch._replace(spans=(EpochSpan(7, 504, 516),))
    cut = replace(branch, branch=part)
    assert contents(sent(cut)) == records(*range(504, 516))
    assert count_branch(cut, ALL, TargetLimits()).outside == 8


def test_each_choice_of_records_has_a_journal_of_its_own() -> None:
    names = [
        RestoreSelection(transactions, only=only, mark=mark).name
        for transactions in RestoredTransactions
        for only in (RecordFilter(), RecordFilter(key="a"), RecordFilter(after_offset=3))
        for mark in (False, True)
    ]
    assert len(set(names)) == len(names) and names[0] == ""


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
    assert [one.next_offset for one in sent(branch)] == [5, 10]
    counts = count_branch(branch, ALL, TargetLimits())
    assert (counts.selected, counts.aborted, counts.open, counts.control) == (10, 5, 4, 2)
    for transactions, expected in ((RestoredTransactions.ABORTED, [15]), (RestoredTransactions.OPEN, [20])):
        apart = RestoreSelection(transactions)
        assert [one.next_offset for one in sent(branch, apart)] == expected


@pytest.mark.parametrize("compression", [0, GZIP])
def test_keys_and_headers_of_a_branch_are_counted(tmp_path: Path, compression: int) -> None:
    """Ten records with a key, and three without one that have two headers each."""
    builder = DefaultRecordBatchBuilder(2, compression, False, -1, -1, -1, 1 << 16)
    for number in range(3):
        assert builder.append(number, 1_700_000_000_000, None, b"v", [("a", b"1"), ("b", None)])
    without_keys = bytearray(builder.build())
    pack_into(">q", without_keys, 0, 510)
    pack_into(">i", without_keys, 12, 7)
    branch = rescued(tmp_path, batch(500, 10, 7, compression=compression), bytes(without_keys))
    counted = summarise_branch(branch, fields=True)
    assert (counted.records, counted.keys, counted.headers) == (13, 10, 6)
    assert summarise_branch(branch).keys is None, "nothing is unpacked where nobody asks for it"


def test_a_batch_whose_tombstones_wait_for_their_deletion_was_not_written_in_the_future(
    tmp_path: Path,
) -> None:
    """Its base timestamp is then the time from which on the cleaner may delete them (KIP-534)."""
    data = bytearray(batch(500, 10, 7))
    newest = parse_header(bytes(data)).max_timestamp
    pack_into(">q", data, 27, newest + 86_400_000)
    branch = rescued(tmp_path, rewritten(bytes(data), 0x40))
    summary = summarise_branch(branch)
    assert (summary.first_ms, summary.last_ms) == (newest, newest)
