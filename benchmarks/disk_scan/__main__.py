"""``python -m benchmarks.disk_scan [--partitions N] [--megabytes N] [--directory DIR]``: writes
``benchmarks/results/disk-scan.md``.

Two log dirs are made below DIR: one of many small logs, one of large segments, with batches of several sizes and
the indexes that a broker writes; all but the newest segment is flushed. The segments are read by
``ktriage disk scan`` without checksums, once as by default (flushed batches by the index) and once every batch,
and, as the measure, from end to end in pieces of 1 MiB. Each twice: cold, after the kernel was told to drop the
pages of the files, and warm. The scan's time is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from struct import pack, pack_into
from typing import NamedTuple

from backends.log_segments.batch_header import LENGTH_BEFORE
from benchmarks import measure
from benchmarks.machine_info import described
from tests.unit.cli.command_process import command_line
from tests.unit.disk_scan.log_dirs import (
    add_partition,
    log_dir,
    segment_name,
    write_offsets,
)
from tests.unit.log_segments.segments import batch

RESULTS = Path(__file__).parent.parent / "results" / "disk-scan.md"
PARTITIONS, MEGABYTES = 10_000, 4096
AIM_SECONDS, AIM_RATIO = 10.0, 0.5
SEGMENT = 256 << 20
"""Bytes of a segment file, at the most."""
INDEX_INTERVAL = 4096
"""Bytes of batches from one entry of an index to the next, at the least (index.interval.bytes)."""
BATCHES = {"128 B": 1 << 7, "1 KiB": 1 << 10, "16 KiB": 1 << 14, "1 MiB": 1 << 20}
"""Bytes of a batch, about: one small record each, a slow producer's, a full one of the default batch.size, and the
largest by default."""
EPOCHS = 10
"""Leader epochs of the large log, each of as many batches."""
MEBIBYTE = 1 << 20


class ScanSpeed(NamedTuple):
    """``batches``: their size in words; ``size``: bytes of the segments; seconds of the reading, of the scan, and
    of one of every batch; ``memory``: of the two scans, the larger peak in bytes.
    """

    batches: str
    pages: str
    size: int
    read_seconds: float
    scan_seconds: float
    every_seconds: float
    memory: int

    @property
    def ratio(self) -> float:
        return self.read_seconds / self.scan_seconds

    @property
    def every_ratio(self) -> float:
        return self.read_seconds / self.every_seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.disk_scan", description=__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument(
        "--megabytes", type=int, default=MEGABYTES, help="of segments, for each size of batches"
    )
    parser.add_argument(
        "--directory", type=Path, help="on the disk to measure; default: the system's for files"
    )
    options = parser.parse_args()
    machine = [f"- Python {platform.python_version()}", *list(described("none"))[2:]]
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        small = _small_logs(Path(place) / "small", options.partitions)
        small_seconds = _scan(Path(place), small).seconds
        shutil.rmtree(small)
        found = [
            speed
            for name, size in BATCHES.items()
            for speed in _segments(Path(place), name, size, options.megabytes << 20)
        ]
    asked = f"--partitions {options.partitions} --megabytes {options.megabytes}"
    text = "\n".join(_report(asked, machine, small_seconds, found)) + "\n"
    RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return (
        0
        if small_seconds <= AIM_SECONDS
        and all(one.ratio >= AIM_RATIO for one in found if one.pages == "cold")
        else 1
    )


def _small_logs(path: Path, partitions: int) -> Path:
    """A quarter are empty, the others have up to 20 batches."""
    log_dir(path)
    chance = random.Random(1)  # noqa: S311  # seeded: the same numbers again
    for number in range(partitions):
        many = chance.choice((0, 1, 5, 20))
        data = b"".join(batch(base * 10, 10, payload=bytes(400)) for base in range(many))
        add_partition(path, f"topic-{number % 100}-{number}", {0: data})
    return path


def _segments(place: Path, name: str, size: int, total: int) -> Iterator[ScanSpeed]:
    """Cold, then warm."""
    path = log_dir(place / "large")
    _large_log(path, size, total)
    folder = path / "large-0"
    segments = sorted(folder.glob("*.log"))
    written = sum(file.stat().st_size for file in segments)
    for pages in ("cold", "warm"):
        _prepare(segments, pages)
        read = _read(segments)
        _prepare(segments, pages)
        done = _scan(place, path, "--checksums", "none")
        _prepare(segments, pages)
        every = _scan(place, path, "--checksums", "none", "--every-batch")
        if '"defect":null' not in every.stdout or _spans(done) != _spans(every):
            raise measure.BenchmarkError(f"the two scans of batches of {name} do not agree")
        yield ScanSpeed(name, pages, written, read, done.seconds, every.seconds, max(done.peak, every.peak))
    shutil.rmtree(path)


def _large_log(path: Path, size: int, total: int) -> None:
    """Batches of ``size`` bytes, ``total`` in all, in segments with their indexes."""
    count = total // size
    epochs = [(epoch, 10 * -(-epoch * count // EPOCHS)) for epoch in range(EPOCHS)]
    folder = add_partition(path, "large-0", {}, epochs=epochs)
    data, index, one = bytearray(), bytearray(), bytearray(batch(0, 10, payload=bytes(size - 61)))
    base, begun, indexed = 0, 0, 0
    for number in range(count):
        pack_into(">q", one, 0, base)  # no checksum covers the offset and the epoch
        pack_into(">i", one, LENGTH_BEFORE, number * EPOCHS // count)
        if len(data) - indexed > INDEX_INTERVAL:
            index += pack(">ii", base + 9 - begun, len(data))
            indexed = len(data)
        data += one
        base += 10
        if len(data) >= SEGMENT or number + 1 == count:
            (folder / segment_name(begun)).write_bytes(data)
            (folder / segment_name(begun)).with_suffix(".index").write_bytes(index)
            write_offsets(path, "recovery-point-offset-checkpoint", {"large 0": begun})
            begun, indexed, data, index = base, 0, bytearray(), bytearray()


def _spans(scan: measure.Measured) -> object:
    (log,) = json.loads(scan.stdout)["partitions"]
    return log["spans"], log["logEndOffset"], log["remarks"]


def _prepare(segments: Iterable[Path], pages: str) -> None:
    """Out of the page cache, or into it."""
    for file in segments:
        with file.open("rb") as opened:
            if pages == "cold":
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if pages == "warm":
        _read(segments)


def _read(segments: Iterable[Path]) -> float:
    """Seconds for all bytes, in order."""
    began = time.monotonic()
    for file in segments:
        with file.open("rb", buffering=0) as opened:
            while opened.read(MEBIBYTE):
                pass
    return time.monotonic() - began


def _scan(home: Path, path: Path, *options: str) -> measure.Measured:
    words = ("disk", "scan", *options, "--output", "json", str(path))
    return measure.run(command_line("ktriage", *words), home)


def _report(
    asked: str, machine: Iterable[str], small_seconds: float, found: Iterable[ScanSpeed]
) -> Iterator[str]:
    yield "# Reading a broker's disk"
    yield ""
    yield f"`python -m benchmarks.disk_scan {asked}`, {datetime.now(UTC):%Y-%m-%d}."
    yield from machine
    yield ""
    yield (
        f"All partitions, of empty to small logs, with their checksums: {small_seconds:.1f} s (aim"
        f" {AIM_SECONDS:.0f} s)."
    )
    yield ""
    yield (
        f"One log of {EPOCHS} leader epochs in segments of {SEGMENT >> 20} MiB, flushed but for the newest segment."
        " `end to end` reads all bytes; `scan` is the default, which skips flushed batches by the index; `every"
        " batch` reads the header of each (`--every-batch`). Neither checks checksums. The aim is 0.5 of the speed"
        " of the disk, with cold pages."
    )
    yield ""
    yield "| batches of | pages | segments | end to end | scan | of it | every batch | of it | peak memory |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for one in found:
        yield (
            f"| {one.batches} | {one.pages} | {one.size / 2**20:,.0f} MiB | {one.read_seconds:.2f} s |"
            f" {one.scan_seconds:.2f} s | {one.ratio:.2f} | {one.every_seconds:.2f} s | {one.every_ratio:.2f} |"
            f" {one.memory / 2**20:.0f} MiB |"
        )


if __name__ == "__main__":
    raise SystemExit(main())
