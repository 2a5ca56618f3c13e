"""Flushed batches that a scan skips: the epochs and ends are those of a scan that reads every batch."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_script import scan_script
from backends.disk_scan.scan_values import ScanDepth, ScannedLog, scan_lines
from tests.unit.disk_scan.log_dirs import add_partition, log_dir, offset_index, segment_name, write_offsets
from tests.unit.log_segments.segments import batch

SEGMENT = 300_000
"""Bytes of a segment, about: just large enough to be skipped."""


def epoch_of(base: int) -> int:
    """Epoch 0 for long, then 5, some that hold a single batch, and 20 within the second segment."""
    return 0 if base < 2000 else 5 if base < 2990 else 6 + (base - 2990) // 10 if base < 3030 else 20


def three_segments(path: Path, recovery_point: int = -1) -> Path:
    """``t-0`` with batches of 10 records and their indexes; flushed up to the third segment."""
    log_dir(path)
    segments: dict[int, bytes] = {}
    firsts: dict[int, int] = {}
    source = random.Random(3)
    base = 0
    for _ in range(3):
        written, begun = bytearray(), base
        while len(written) < SEGMENT:
            epoch = epoch_of(base)
            firsts.setdefault(epoch, base)
            payload = source.randbytes(base % 1900)
            written += batch(base, 10, epoch=epoch, payload=payload, times=(base, base + 9))
            base += 10
        segments[begun] = bytes(written)
    folder = add_partition(path, "t-0", segments, epochs=list(firsts.items()))
    for begun, data in segments.items():
        index_of(folder, begun).write_bytes(offset_index(data, begun))
    flushed = recovery_point if recovery_point >= 0 else max(segments)
    write_offsets(path, "recovery-point-offset-checkpoint", {"t 0": flushed})
    return path


def index_of(folder: Path, base: int) -> Path:
    return folder / segment_name(base).replace(".log", ".index")


def scanned(path: Path, *, every_batch: bool = False, checksums: str = "unflushed") -> ScannedLog:
    (found,) = scan_log_dirs([str(path)], "host-3", 0, ScanDepth(checksums, every_batch)).dirs
    (log,) = found.logs
    return log


def alike(log: ScannedLog) -> ScannedLog:
    """Without what only a scan of every batch knows."""
    return log._replace(records=None, skipped=0, last_timestamp=-1, remarks=())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return three_segments(tmp_path / "data")


def bases(path: Path) -> list[int]:
    return sorted(int(one.stem) for one in (path / "t-0").glob("*.log"))


def test_flushed_batches_are_skipped_and_the_epochs_and_ends_are_those_of_every_batch(data: Path) -> None:
    skipping, every = scanned(data), scanned(data, every_batch=True)
    assert alike(skipping) == alike(every)
    assert [span[0] for span in every.spans] == [0, 5, 6, 7, 8, 9, 20]
    assert (every.skipped, every.records, every.last_timestamp) == (0, every.log_end, every.log_end - 1)
    assert skipping.records is None
    assert skipping.skipped > SEGMENT
    assert skipping.remarks == ()


def test_the_epochs_of_flushed_batches_are_found_without_the_checkpoint_of_epochs(data: Path) -> None:
    (data / "t-0" / "leader-epoch-checkpoint").unlink()
    skipping, every = scanned(data), scanned(data, every_batch=True)
    assert skipping.spans == every.spans
    assert [span[0] for span in every.spans] == [0, 5, 6, 7, 8, 9, 20]
    assert skipping.skipped > SEGMENT


def test_without_a_recovery_point_every_batch_is_read(data: Path) -> None:
    (data / "recovery-point-offset-checkpoint").unlink()
    assert (scanned(data).skipped, scanned(data).records) == (0, scanned(data).log_end)


def test_a_cleanly_stopped_brokers_newest_segment_is_skipped_too(tmp_path: Path) -> None:
    whole = scanned(three_segments(tmp_path / "one"), every_batch=True)
    log = scanned(three_segments(tmp_path / "two", recovery_point=whole.log_end))
    assert alike(log)._replace(recovery_point=0) == alike(whole)._replace(recovery_point=0)
    assert log.skipped > 2.8 * SEGMENT


def test_of_a_segment_the_flushed_part_is_skipped(data: Path) -> None:
    write_offsets(data, "recovery-point-offset-checkpoint", {"t 0": bases(data)[1] // 2})
    log = scanned(data)
    assert alike(log) == alike(scanned(data, every_batch=True))
    assert 0.4 * SEGMENT < log.skipped < 0.6 * SEGMENT


def test_all_checksums_means_every_batch(data: Path) -> None:
    assert scanned(data, checksums="all").skipped == 0
    assert scanned(data, checksums="none").skipped > SEGMENT


def test_what_was_not_flushed_is_read_and_checked(data: Path) -> None:
    newest = data / "t-0" / segment_name(bases(data)[-1])
    content = bytearray(newest.read_bytes())
    content[SEGMENT // 2] ^= 1
    newest.write_bytes(content)
    log = scanned(data)
    assert log.defect is not None
    assert (log.defect.kind, log.defect.file) == ("wrong checksum", newest.name)
    assert log.lost_tail is not None


def test_damage_in_the_middle_of_flushed_batches_is_found_when_every_batch_is_read(data: Path) -> None:
    segment = data / "t-0" / segment_name(0)
    content = bytearray(segment.read_bytes())
    content[100_000:102_000] = bytes(2_000)
    segment.write_bytes(content)
    assert scanned(data).defect is None
    for log in (scanned(data, every_batch=True), scanned(data, checksums="all")):
        assert log.defect is not None
        assert log.defect.segments_after == 2


@pytest.mark.parametrize("number", [0, 1])
def test_a_flushed_segment_that_lost_its_end_is_read_to_where_it_ends(data: Path, number: int) -> None:
    segment = data / "t-0" / segment_name(bases(data)[number])
    (data / "t-0" / "leader-epoch-checkpoint").unlink()
    content = segment.read_bytes()
    for size in range(290_000, 295_000, 100):
        segment.write_bytes(content[:size])
        assert alike(scanned(data)) == alike(scanned(data, every_batch=True))
        assert scanned(data).defect is not None


def test_the_zeros_that_a_killed_broker_leaves_behind_its_index_are_no_entries(data: Path) -> None:
    for base in bases(data):
        with index_of(data / "t-0", base).open("ab") as file:
            file.truncate(10 << 20)
    assert alike(scanned(data)) == alike(scanned(data, every_batch=True))
    assert scanned(data).skipped > SEGMENT
    assert scanned(data).remarks == ()


@pytest.mark.parametrize("change", ["no index", "an empty one", "a torn entry", "a folder", "one entry"])
def test_where_the_index_says_too_little_every_batch_is_read(data: Path, change: str) -> None:
    every = scanned(data, every_batch=True)
    for base in bases(data):
        index = index_of(data / "t-0", base)
        content = index.read_bytes()
        index.unlink()
        match change:
            case "an empty one":
                index.write_bytes(b"")
            case "a torn entry":
                index.write_bytes(content[:7])
            case "one entry":
                index.write_bytes(content[:8])
            case "a folder":
                index.mkdir()
    log = scanned(data)
    assert alike(log) == alike(every)
    assert log.skipped < 20_000
    assert log.remarks == ()


def lying(entries: bytes, how: str) -> bytes:
    number = len(entries) // 8
    pairs = [(entries[at * 8 : at * 8 + 4], entries[at * 8 + 4 : at * 8 + 8]) for at in range(number)]
    match how:
        case "beyond the file":
            pairs = [(offset, pack(">i", SEGMENT * 5 + at)) for at, (offset, _) in enumerate(pairs)]
        case "before the file":
            pairs = [(offset, pack(">i", -9)) for offset, _ in pairs]
        case "backwards":
            pairs.reverse()
        case "into the middle of a batch":
            pairs = [(offset, pack(">i", int.from_bytes(at, "big") + 70)) for offset, at in pairs]
        case "lower offsets":
            pairs = [(pack(">i", int.from_bytes(offset, "big") - 10), at) for offset, at in pairs]
        case "all the same":
            pairs = [pairs[-1]] * number
        case "another segment's":
            pairs = [(offset, pack(">i", int.from_bytes(at, "big") + 1900)) for offset, at in pairs]
    return b"".join(offset + at for offset, at in pairs)


@pytest.mark.parametrize(
    "how",
    [
        "beyond the file",
        "before the file",
        "backwards",
        "into the middle of a batch",
        "lower offsets",
        "all the same",
        "another segment's",
    ],
)
def test_an_index_that_lies_changes_nothing(data: Path, how: str) -> None:
    every = scanned(data, every_batch=True)
    for base in bases(data):
        index = index_of(data / "t-0", base)
        index.write_bytes(lying(index.read_bytes(), how))
    assert alike(scanned(data)) == alike(every)


@pytest.mark.parametrize("how", ["true", "lower offsets", "lower in the middle"])
def test_no_index_skips_what_was_not_flushed(tmp_path: Path, how: str) -> None:
    """Half of the newest segment is flushed; a batch behind that is damaged."""
    data = three_segments(tmp_path / "data")
    newest = bases(data)[-1]
    end = scanned(data).log_end
    write_offsets(data, "recovery-point-offset-checkpoint", {"t 0": (newest + end) // 2})
    segment = data / "t-0" / segment_name(newest)
    content = bytearray(segment.read_bytes())
    content[-20_000] ^= 1
    segment.write_bytes(content)
    index = index_of(data / "t-0", newest)
    entries = index.read_bytes()
    if how == "lower offsets":
        index.write_bytes(
            b"".join(pack(">i", 0) + entries[at + 4 : at + 8] for at in range(0, len(entries), 8))
        )
    if how == "lower in the middle":
        half = len(entries) // 16 * 8
        index.write_bytes(entries[: half - 16] + pack(">i", 0) + entries[-4:] + entries[half - 8 : half])
    log = scanned(data)
    assert alike(log) == alike(scanned(data, every_batch=True))
    assert log.defect is not None
    assert log.defect.kind == "wrong checksum"
    assert log.skipped > SEGMENT


def test_batches_within_the_records_of_a_batch_are_not_taken_for_batches_of_the_log(tmp_path: Path) -> None:
    """Somebody writes segments into a topic, and the index leads into one of these."""
    log_dir(tmp_path / "data")
    inner = b"".join(batch(base, 10, epoch=1, payload=bytes(900)) for base in range(50_000, 50_200, 10))
    data = b"".join(batch(base, 10, epoch=1, payload=inner) for base in range(0, 200, 10))
    folder = add_partition(tmp_path / "data", "t-0", {0: data, 200: batch(200, epoch=1)}, epochs=[(1, 0)])
    write_offsets(tmp_path / "data", "recovery-point-offset-checkpoint", {"t 0": 60_000})
    index_of(folder, 0).write_bytes(pack(">ii", 150, 61 + 3 * 961))
    log = scanned(tmp_path / "data")
    assert alike(log) == alike(scanned(tmp_path / "data", every_batch=True))
    assert (log.log_end, log.skipped, len(log.remarks)) == (201, 0, 1)


def test_a_skip_never_begins_within_a_batch(tmp_path: Path) -> None:
    log_dir(tmp_path / "data")
    inner = b"".join(batch(base, 10, epoch=1, payload=bytes(900)) for base in range(0, 200, 10))
    outer = [batch(base, 10, epoch=base // 100, payload=inner) for base in range(0, 200, 10)]
    epochs = [(0, 0), (1, 100)]
    folder = add_partition(tmp_path / "data", "t-0", {0: b"".join(outer)}, epochs=epochs)
    write_offsets(tmp_path / "data", "recovery-point-offset-checkpoint", {"t 0": 200})
    index_of(folder, 0).write_bytes(pack(">iiii", 5, 61 + 961, 159, 15 * len(outer[0])))
    log = scanned(tmp_path / "data")
    assert log.spans == ((0, 0, 100), (1, 100, 200))
    assert (log.skipped, len(log.remarks)) == (0, 1)


@pytest.mark.parametrize("true", [0, 1])
def test_an_index_that_contradicts_its_segment_is_told(data: Path, true: int) -> None:
    """The last entries may be true."""
    index = index_of(data / "t-0", 0)
    entries = index.read_bytes()
    kept = len(entries) - 8 * true
    index.write_bytes(lying(entries[:kept], "into the middle of a batch") + entries[kept:])
    assert scanned(data).remarks == (
        "indexes that contradict their segments: 1; every batch of these was read",
    )


def test_mutated_indexes_never_change_what_is_found_of_a_whole_log(data: Path) -> None:
    source = random.Random(5)
    every = alike(scanned(data, every_batch=True))
    files = {base: index_of(data / "t-0", base).read_bytes() for base in bases(data)}
    for _ in range(150):
        for base, content in files.items():
            changed = bytearray(content)
            for _ in range(source.randrange(1, 9)):
                at = source.randrange(len(changed))
                match source.randrange(4):
                    case 0:
                        del changed[at:]
                        changed += bytes(8 * source.randrange(3))
                    case 1:
                        changed[at] ^= 1 << source.randrange(8)
                    case 2:
                        changed[at : at + 8] = source.randbytes(8)
                    case _:
                        changed[at:at] = changed[: 4 * source.randrange(20)]
                changed = changed or bytearray(8)
            index_of(data / "t-0", base).write_bytes(changed)
        assert alike(scanned(data)) == every


def test_mutated_segments_with_their_indexes_gain_nothing(data: Path) -> None:
    source = random.Random(6)
    whole = scanned(data, every_batch=True)
    for _ in range(60):
        segment = data / "t-0" / segment_name(source.choice(bases(data)))
        content = segment.read_bytes()
        changed = bytearray(content)
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(changed))
            match source.randrange(4):
                case 0:
                    del changed[at:]
                case 1:
                    changed[at : at + 4096] = bytes(4096)
                case 2:
                    changed[at] ^= 1 << source.randrange(8)
                case _:
                    del changed[at : at + source.randrange(3000)]
        segment.write_bytes(changed)
        for log in (scanned(data), scanned(data, every_batch=True)):
            assert log.log_end <= whole.log_end
            borders = [log.log_start, *(end for _, _, end in log.spans)]
            assert [start for _, start, _ in log.spans] == borders[:-1]
        segment.write_bytes(content)


def test_the_script_skips_the_same_and_takes_the_same_option(data: Path) -> None:
    for options, depth in (((), ScanDepth()), (("--every-batch",), ScanDepth(every_batch=True))):
        argv = [sys.executable, "-I", "-S", "-", *options, str(data)]
        result = subprocess.run(
            argv, input=scan_script(), capture_output=True, text=True, timeout=60, check=True
        )
        told = json.loads(result.stdout)
        expected = json.loads(
            "\n".join(scan_lines(scan_log_dirs([str(data)], told["host"], told["readAtMs"], depth)))
        )
        assert told == expected
        assert (told["partitions"][0]["skippedBytes"] > 0) == (not options)
