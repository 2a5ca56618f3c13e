"""A branch on disk: whole batches, byte for byte, and never past what the survey saw."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from console.rescue_files.branch_writer import BranchError, BranchWriter, RescueDiskError
from recovery.model import EpochSpan, TopicPartition
from recovery.rescue_branches import BranchPart, RescueBranch
from tests.unit.rescue.batches import batch


def branch(*spans: tuple[int, int, int]) -> RescueBranch:
    return RescueBranch(
        TopicPartition("t", 0), "id", 2, 1, BranchPart.TAIL, tuple(EpochSpan(*span) for span in spans)
    )


TAIL = branch((0, 100, 130))
DATA = b"".join(batch(base, 10, 0) for base in (100, 110, 120))


def test_the_file_is_what_the_broker_sent(tmp_path: Path) -> None:
    writer = BranchWriter(tmp_path / "b", TAIL)
    cut = len(batch(100, 10, 0)) + 7
    assert writer.take(DATA[:cut]) == len(batch(100, 10, 0))  # the broker cut its answer
    assert writer.next_offset == 110 and not writer.done
    writer.take(DATA[len(batch(100, 10, 0)) :] + batch(130, 10, 3))
    assert writer.done
    (segment,) = writer.finish()
    path = tmp_path / "b" / "00000000000000000100.log"
    assert path.read_bytes() == DATA
    assert (segment.first_offset, segment.next_offset, segment.batches) == (100, 130, 3)
    assert segment.size == len(DATA)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_answer_that_begins_before_the_branch_is_taken_whole(tmp_path: Path) -> None:
    """The log start of the chosen replica may lie within a batch of another one."""
    writer = BranchWriter(tmp_path, branch((0, 105, 130)))
    writer.take(DATA)
    (segment,) = writer.finish()
    assert (segment.first_offset, segment.size) == (100, len(DATA))


@pytest.mark.parametrize("kept", [0, 1, len(DATA) // 2, len(DATA) - 1])
def test_a_killed_run_goes_on_behind_the_last_whole_batch(tmp_path: Path, kept: int) -> None:
    first = BranchWriter(tmp_path, TAIL)
    first.take(DATA)
    first.close()
    (partial,) = tmp_path.iterdir()
    os.truncate(partial, kept)
    again = BranchWriter(tmp_path, TAIL)
    assert again.next_offset == 100 + kept // len(batch(100, 10, 0)) * 10
    again.take(DATA)
    (segment,) = again.finish()
    assert (tmp_path / segment.name).read_bytes() == DATA
    assert [path.name for path in tmp_path.iterdir()] == [segment.name]


def test_a_log_of_another_epoch_is_not_taken_for_the_one_that_was_surveyed(tmp_path: Path) -> None:
    writer = BranchWriter(tmp_path, branch((0, 100, 120), (2, 120, 130)))
    with pytest.raises(BranchError, match="offset 120 has epoch 0 now; it had epoch 2"):
        writer.take(DATA)
    assert writer.next_offset == 120
    (segment,) = writer.finish()
    assert segment.batches == 2


def test_a_damaged_batch_ends_the_branch_and_what_is_before_it_stays(tmp_path: Path) -> None:
    damaged = bytearray(DATA)
    damaged[-1] ^= 1
    writer = BranchWriter(tmp_path, TAIL)
    with pytest.raises(BranchError, match="checksum"):
        writer.take(bytes(damaged))
    assert writer.next_offset == 120 and not writer.done


def test_what_compaction_removed_is_not_waited_for(tmp_path: Path) -> None:
    writer = BranchWriter(tmp_path, branch((0, 100, 150)))
    writer.take(batch(100, 10, 0) + batch(125, 5, 0) + batch(160, 5, 0))
    assert writer.done
    (segment,) = writer.finish()
    assert segment.batches == 2


def test_a_full_disk_leaves_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = BranchWriter(tmp_path, TAIL)
    one = len(batch(100, 10, 0))
    writer.take(DATA[:one])
    write, room = os.write, 5

    def full(descriptor: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, bytes(data)[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RescueDiskError, match="No space left"):
        writer.take(DATA[one:])
    assert next(tmp_path.iterdir()).stat().st_size == one
    assert writer.next_offset == 110


def test_segments_end_before_they_become_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.rescue_files.branch_writer.SEGMENT_BYTES", len(DATA) - 1)
    writer = BranchWriter(tmp_path, TAIL)
    one = len(batch(100, 10, 0))
    for at in range(0, len(DATA), one):
        writer.take(DATA[at : at + one])
    segments = writer.finish()
    assert [(s.name, s.first_offset, s.next_offset) for s in segments] == [
        ("00000000000000000100.log", 100, 120),
        ("00000000000000000120.log", 120, 130),
    ]
