"""The metadata log of a quiet cluster: its controller writes twice a second that nothing changed."""

from __future__ import annotations

from backends.metadata_log.batch_writer import data_batch
from backends.metadata_log.batches import BatchReader
from recovery.metadata_log.record_codec import NO_OP, encode
from recovery.metadata_log.records import TopicRecord

ORDERS = encode(TopicRecord("orders", "AAAAAAAAAAAAAAAAAAAAAQ"))
INVOICES = encode(TopicRecord("invoices", "AAAAAAAAAAAAAAAAAAAAAg"))


def idle(first: int, count: int, epoch: int = 1) -> list[bytes]:
    return [
        data_batch(offset, epoch, 1_000 + 500 * offset, [NO_OP]) for offset in range(first, first + count)
    ]


def changes(reader: BatchReader) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value) for record in reader.data_records()]


def test_the_changes_between_them_are_read_and_the_end_is_known() -> None:
    log = [
        *idle(0, 3),
        data_batch(3, 1, 9, [ORDERS]),
        *idle(4, 5),
        data_batch(9, 1, 9, [NO_OP, INVOICES]),
        *idle(11, 2),
        *idle(13, 4, epoch=2),
    ]
    reader = BatchReader(b"".join(log), 0)
    assert changes(reader) == [(0, NO_OP), (3, ORDERS), (9, NO_OP), (10, INVOICES), (13, NO_OP)]
    assert (reader.problem, reader.next_offset, reader.epoch) == (None, 17, 2)


def test_one_that_is_damaged_ends_the_reading_and_is_told() -> None:
    log = bytearray(b"".join([*idle(0, 6), data_batch(6, 1, 9, [ORDERS])]))
    log[4 * 72 + 40] ^= 1  # a byte of a time
    reader = BatchReader(bytes(log), 0)
    assert changes(reader) == [(0, NO_OP)]
    assert reader.problem == "the batch at offset 4 is damaged: its checksum is wrong"
    assert reader.next_offset == 4


def test_one_that_is_missing_ends_the_reading_and_is_told() -> None:
    reader = BatchReader(b"".join([*idle(0, 3), *idle(5, 3), data_batch(8, 1, 9, [ORDERS])]), 0)
    assert changes(reader) == [(0, NO_OP)]
    assert reader.problem == "offsets 3 to 4 are missing before the batch at offset 5"


def test_one_that_is_cut_short_is_read_again_later() -> None:
    log = b"".join(idle(0, 6))
    reader = BatchReader(log[:-9], 0)
    assert changes(reader) == [(0, NO_OP)]
    assert reader.problem is not None
    assert "the batch at offset 5 is cut short" in reader.problem
    assert reader.next_offset == 5


def test_a_long_stretch_is_read_in_several_pieces_so_that_other_answers_are_taken_meanwhile() -> None:
    reader = BatchReader(b"".join([*idle(0, 25_001), data_batch(25_001, 1, 9, [ORDERS])]), 0)
    pieces = list(reader.pieces(1_000))
    assert len(pieces) >= 3
    assert [record.value for piece in pieces for record in piece] == [NO_OP, ORDERS]
