"""A damaged file of a rescue: what is sound before and behind the damage is found, and nothing is invented."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from struct import pack, pack_into

import pytest

from backends.log_segments.batch_header import HEADER
from backends.log_segments.checksum import crc32c
from console.errors import InputError
from console.rescue_files.branch_summary import summarise_branch
from console.rescue_files.record_batches import records_of
from console.rescue_files.rescued_branch import Ending, RescuedBranch, TransactionEndings
from console.rescue_files.restore_selection import (
    EVERY_RECORD,
    RecordFilter,
    RestoreSelection,
    TargetLimits,
    batches_to_restore,
    chosen_spans,
    count_branch,
)
from recovery.model import EpochSpan
from tests.unit.rescue.batches import batch
from tests.unit.rescue.test_restore import marker, rescued

BATCHES = [batch(base, 10, 7, size=40) for base in range(500, 600, 10)]
ENDS = [sum(map(len, BATCHES[: number + 1])) for number in range(len(BATCHES))]


def file_of(branch: RescuedBranch) -> Path:
    return branch.directory / branch.segments[0].name


def sound(branch: RescuedBranch) -> RescuedBranch:
    return replace(branch, sound_only=True)


def bases(branch: RescuedBranch) -> list[int]:
    return [one.header.base_offset for one in branch.batches()]


def gaps(branch: RescuedBranch) -> list[tuple[int, int]]:
    return [(part.first_offset, part.next_offset) for part in branch.damaged()]


def changed(branch: RescuedBranch, at: int, data: bytes) -> RescuedBranch:
    path = file_of(branch)
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)
    return sound(branch)


@pytest.mark.parametrize(
    ("what", "at", "data"),
    [
        ("a record", 100, b"\xff"),
        ("the length", 8, pack(">i", 99)),
        ("a length beyond the file", 8, pack(">i", 1 << 20)),
        ("the magic", 16, b"\1"),
        ("the base offset", 0, pack(">q", 3)),
        ("the base offset, beyond the branch", 0, pack(">q", 1 << 40)),
        ("the whole header", 0, bytes(61)),
    ],
)
def test_the_batches_before_and_behind_a_damaged_one_are_sound(
    tmp_path: Path, what: str, at: int, data: bytes
) -> None:
    branch = changed(rescued(tmp_path / "b", *BATCHES), ENDS[3] + at, data)
    assert bases(branch) == [500, 510, 520, 530, 550, 560, 570, 580, 590]
    (part,) = branch.damaged()
    assert (part.start, part.end) == (ENDS[3], ENDS[4])
    assert (part.first_offset, part.next_offset) == (540, 550)
    assert part.offsets_text == "offsets 540 to 549 cannot be used"
    assert str(file_of(branch)) in part.text
    with pytest.raises(InputError, match=str(file_of(branch))):
        bases(replace(branch, sound_only=False))


def test_several_damaged_parts_are_told_apart(tmp_path: Path) -> None:
    branch = changed(rescued(tmp_path / "b", *BATCHES), 70, b"\xff")
    branch = changed(branch, ENDS[4] + 70, b"\xff")
    branch = changed(branch, ENDS[5] + 70, b"\xff")
    branch = changed(branch, ENDS[9] - 1, b"\xff")
    assert gaps(branch) == [(500, 510), (550, 570), (590, 600)]
    assert summarise_branch(branch).records == 60


@pytest.mark.parametrize(
    ("left", "lost"), [(ENDS[6], (570, 600)), (ENDS[6] + 30, (570, 600)), (0, (500, 600))]
)
def test_of_a_file_that_was_cut_the_batches_before_are_sound(
    tmp_path: Path, left: int, lost: tuple[int, int]
) -> None:
    branch = sound(rescued(tmp_path / "b", *BATCHES))
    path = file_of(branch)
    path.write_bytes(path.read_bytes()[:left])
    assert gaps(branch) == [lost]
    assert len(bases(branch)) == (7 if left else 0)
    (part,) = branch.damaged()
    assert f"has {left:,} bytes, and {ENDS[-1]:,} were written" in part.text


def test_a_missing_file_is_a_damaged_part(tmp_path: Path) -> None:
    branch = sound(rescued(tmp_path / "b", *BATCHES))
    file_of(branch).unlink()
    assert (bases(branch), gaps(branch)) == ([], [(500, 600)])


def test_batches_that_somebody_appended_are_not_of_the_branch(tmp_path: Path) -> None:
    branch = sound(rescued(tmp_path / "b", *BATCHES))
    with file_of(branch).open("ab") as file:
        file.write(batch(600, 10, 7))
    assert bases(branch)[-1] == 590
    assert gaps(branch) == [(600, 600)]
    assert branch.damaged()[0].offsets_text == "no offset is lost"


def test_a_batch_within_the_records_of_a_damaged_one_is_not_taken_for_one_of_the_branch(
    tmp_path: Path,
) -> None:
    """Somebody writes segments into a topic: its records hold whole batches, with offsets that would fit."""
    inner = batch(541, 3, 7)
    head = HEADER.pack(540, 49 + len(inner) + 9, 7, 2, 0, 0, 9, 1, 1, -1, -1, -1, 10)
    written = b"".join([*BATCHES[:4], head, bytes(9), inner, *BATCHES[5:]])
    branch = rescued(tmp_path / "b", *BATCHES)
    file_of(branch).write_bytes(written)
    assert bases(sound(branch)) == [500, 510, 520, 530, 550, 560, 570, 580, 590]


def test_a_batch_of_another_epoch_behind_damage_is_not_of_the_branch(tmp_path: Path) -> None:
    branch = changed(rescued(tmp_path / "b", *BATCHES), ENDS[3] + 70, b"\xff")
    changed(branch, ENDS[4] + 12, pack(">i", 8))
    assert gaps(branch) == [(540, 560)]


# Transactions.


def transactional(base: int, producer: int = 9) -> bytes:
    return batch(base, 10, 0, producer=producer, transactional=True)


def endings(branch: RescuedBranch) -> list[Ending]:
    found = TransactionEndings.of(branch)
    return [found.ending(one.header) for one in branch.batches() if not one.header.is_control]


def test_where_the_marker_of_a_transaction_may_be_damaged_its_end_is_not_known(tmp_path: Path) -> None:
    """The first transaction was aborted, the second one committed."""
    log = [
        transactional(0),
        marker(10, 9, commit=False),
        transactional(11),
        marker(21, 9, commit=True),
        transactional(22, producer=5),
        marker(32, 5, commit=True),
    ]
    branch = rescued(tmp_path / "b", *log)
    assert endings(branch) == [Ending.ABORTED, Ending.COMMITTED, Ending.COMMITTED]
    branch = changed(branch, len(log[0]) + 65, b"\xff")
    assert endings(branch) == [Ending.OPEN, Ending.COMMITTED, Ending.COMMITTED]
    counts = count_branch(branch, RestoreSelection(incomplete=True), TargetLimits())
    assert (counts.selected, counts.open) == (20, 10)


# What is written back.


def restored(branch: RescuedBranch, only: RecordFilter = EVERY_RECORD) -> list[int]:
    selection = RestoreSelection(incomplete=True, only=only)
    found = batches_to_restore(branch, selection, 0, TargetLimits())
    return [record.offset for one in found for record in records_of(one.data)]


def test_only_sound_records_are_written_back_and_the_damaged_offsets_are_left_out(tmp_path: Path) -> None:
    branch = changed(rescued(tmp_path / "b", *BATCHES), ENDS[3] + 70, b"\xff")
    assert restored(branch) == [*range(500, 540), *range(550, 600)]
    assert chosen_spans(branch, EVERY_RECORD) == (EpochSpan(7, 500, 540), EpochSpan(7, 550, 600))


def test_the_damaged_offsets_alone_can_be_written_back_from_another_rescue(tmp_path: Path) -> None:
    again = rescued(tmp_path / "again", *BATCHES)
    only = RecordFilter(after_offset=539, before_offset=550)
    selection = RestoreSelection(only=only)
    found = batches_to_restore(again, selection, 0, TargetLimits())
    assert [record.offset for one in found for record in records_of(one.data)] == [*range(10)]
    assert count_branch(again, selection, TargetLimits()).selected == 10
    assert chosen_spans(again, only) == (EpochSpan(7, 540, 550),)


def test_whatever_is_damaged_no_record_is_invented(tmp_path: Path) -> None:
    source = random.Random(9)
    written: dict[bytes, int] = {one[21:]: number for number, one in enumerate(BATCHES)}
    branch = sound(rescued(tmp_path / "b", *BATCHES))
    whole = file_of(branch).read_bytes()
    found_behind = 0
    for _ in range(400):
        data = mutated(bytearray(whole), source)
        file_of(branch).write_bytes(data)
        found = [one.data for one in branch.batches()]
        numbers = [written[one[21:]] for one in found]
        parts = branch.damaged()
        assert numbers == sorted(set(numbers))
        found_behind += bool(parts) and parts[0].next_offset < 600
        for part in parts:
            assert 500 <= part.first_offset <= part.next_offset <= 600
            assert 0 <= part.start <= part.end
    assert found_behind > 100


def mutated(data: bytearray, source: random.Random) -> bytes:
    for _ in range(source.randrange(1, 4)):
        at = source.randrange(len(data))
        match source.randrange(5):
            case 0:
                data[at] ^= 1 << source.randrange(8)
            case 1:
                data[at : at + 100] = bytes(100)
            case 2:
                del data[at : at + source.randrange(300)]
            case 3:
                data[at:at] = data[: source.randrange(1500)]
            case _:
                data[at : at + 4] = source.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4)))
    return bytes(data)


def test_hostile_headers_behind_damage_are_not_all_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of headers that each claim the rest of the file."""
    branch = sound(rescued(tmp_path / "b", *BATCHES))
    head = bytearray(HEADER.pack(545, 0, 7, 2, 0, 0, 0, 1, 1, -1, -1, -1, 1))
    headers = bytearray()
    total = len(head) * 20_000
    for number in range(20_000):
        pack_into(">i", head, 8, total - number * len(head) - 12)
        headers += head
    path = file_of(branch)
    path.write_bytes(path.read_bytes()[: ENDS[3]] + bytes(7) + headers)
    checked = counting_checksums(monkeypatch)
    assert bases(branch) == [500, 510, 520, 530]
    assert sum(checked) < 10 * total


def counting_checksums(monkeypatch: pytest.MonkeyPatch) -> Sequence[int]:
    sizes: list[int] = []

    def counted(data: bytes | memoryview, crc: int = 0) -> int:
        sizes.append(len(data))
        return crc32c(data, crc)

    monkeypatch.setattr("backends.log_segments.segment_reader.crc32c", counted)
    return sizes
