"""Batches from a dead broker's log dir: byte for byte, across segments, up to where the log is damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from backends.base.answers import LogPosition, RawBatches
from backends.log_segments.batch_header import MAGIC_AT
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from console.rescue_files.branch_writer import BranchError, BranchWriter
from console.rescue_files.disk_batches import DiskBatches
from recovery.model import EpochSpan, TopicPartition, Unknown
from recovery.rescue_branches import BranchPart, RescueBranch
from tests.repetitions import repetitions
from tests.unit.rescue.batches import batch

TP = TopicPartition("orders", 0)
FIRST = b"".join(batch(base, 10, 0) for base in (0, 10, 20))
SECOND = b"".join(batch(base, 10, 2) for base in (30, 45))
"""Compaction left nothing of 40 to 44."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / f"{0:020}.log").write_bytes(FIRST)
    (tmp_path / f"{30:020}.log").write_bytes(SECOND)
    (tmp_path / f"{30:020}.index").write_bytes(b"x")
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return tmp_path


async def read(disk: DiskBatches, offset: int, room: int = 1 << 20) -> bytes | Unknown:
    found = (await disk.read([LogPosition(TP, offset)], room))[TP]
    return found.data if isinstance(found, RawBatches) else found


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, FIRST + SECOND),
        (15, FIRST[len(batch(0, 10, 0)) :] + SECOND),
        (30, SECOND),
        (42, batch(45, 10, 2)),
        (55, b""),
    ],
)
async def test_the_log_is_read_from_an_offset_on(folder: Path, offset: int, expected: bytes) -> None:
    assert await read(DiskBatches({TP: folder}), offset) == expected


async def test_an_answer_has_whole_batches_and_the_next_one_goes_on(folder: Path) -> None:
    disk = DiskBatches({TP: folder})
    assert await read(disk, 0, room=1) == batch(0, 10, 0)
    assert await read(disk, 10, room=1) == batch(10, 10, 0)
    assert await read(disk, 10, room=1) == batch(10, 10, 0), "asked again"
    assert await read(disk, 20, room=0) == b""


async def test_what_is_whole_before_the_damage_is_read_and_the_damage_is_told(folder: Path) -> None:
    path = folder / f"{30:020}.log"
    path.write_bytes(SECOND[:-1])
    disk = DiskBatches({TP: folder})
    assert await read(disk, 30) == batch(30, 10, 2)
    problem = await read(disk, 40)
    assert isinstance(problem, Unknown) and "is cut short" in problem.detail and path.name in problem.detail


async def test_a_folder_that_is_gone_is_told(folder: Path) -> None:
    problem = await read(DiskBatches({TP: folder / "gone"}), 0)
    assert isinstance(problem, Unknown) and "cannot be listed" in problem.detail


MUTATIONS = repetitions(500, 10_000)


async def test_whatever_is_damaged_only_whole_batches_are_saved(tmp_path: Path) -> None:
    """Cut, flipped, overwritten and repeated bytes. A batch's base offset and epoch stand before what its checksum
    covers, so only the rest of it can be compared.
    """
    whole = [batch(base, 2, 0, size=20) for base in range(0, 12, 2)]
    known = {one[MAGIC_AT:] for one in whole}
    chance = random.Random(15)
    segment = tmp_path / "log" / f"{0:020}.log"
    segment.parent.mkdir()
    branch = RescueBranch(TP, "id", 2, 3, BranchPart.TAIL, (EpochSpan(0, 0, 12),), log_dir="d")
    stopped = 0
    for _ in range(MUTATIONS):
        segment.write_bytes(_mutated(b"".join(whole), chance))
        writer = BranchWriter(tmp_path / "saved", branch)
        await _fill(writer, DiskBatches({TP: segment.parent}))
        writer.close()
        stopped += not writer.done
        for path in (tmp_path / "saved").iterdir():
            saved = SegmentReader(SegmentBytes(path.read_bytes()))
            assert {saved.raw(one)[MAGIC_AT:] for one in saved} <= known
            assert saved.defect is None
            path.unlink()
    assert stopped > MUTATIONS // 2


async def _fill(writer: BranchWriter, disk: DiskBatches) -> None:
    while not writer.done:
        before = writer.next_offset
        found = await read(disk, before, 200)
        if isinstance(found, Unknown):
            return
        try:
            writer.take(found)
        except BranchError:
            return
        if writer.next_offset == before:
            return


def _mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(changed))
        kind = chance.randrange(4)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            length = chance.randint(1, 16)
            changed[at : at + length] = chance.choice((b"\0", b"\xff", b"\x7f")) * length
        else:
            changed[at:at] = changed[at : at + chance.randint(1, 80)]
        if not changed:
            break
    return bytes(changed)
