"""``python -m benchmarks.disk_scan [--partitions N] [--megabytes N] [--directory DIR]``: writes
``benchmarks/results/disk-scan.md``.

Two log dirs are made below DIR: one of many small logs, one of large segments, with batches of several sizes. The
segments are read by ``ktriage disk scan`` without checksums (headers only) and, as the measure, from end to end in
pieces of 1 MiB. Each side twice: cold, after the kernel was told to drop the pages of the files, and warm. The
scan's time is that of the whole process.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from struct import pack_into
from typing import NamedTuple

from benchmarks import measure
from benchmarks.machine_info import described
from tests.unit.cli.command_process import command_line
from tests.unit.disk_scan.log_dirs import add_partition, log_dir, segment_name
from tests.unit.log_segments.segments import batch

RESULTS = Path(__file__).parent.parent / "results" / "disk-scan.md"
PARTITIONS, MEGABYTES = 10_000, 4096
AIM_SECONDS, AIM_RATIO = 10.0, 0.5
SEGMENT = 256 << 20
"""Bytes of a segment file, at the most."""
BATCHES = {"1 KiB": 1 << 10, "16 KiB": 1 << 14, "1 MiB": 1 << 20}
"""Bytes of a batch, about: a slow producer's, a full one of the default batch.size, and the largest by default."""
MEBIBYTE = 1 << 20


class ScanSpeed(NamedTuple):
    """``batches``: their size in words; ``size``: bytes of the segments; seconds of the reading and of the scan."""

    batches: str
    pages: str
    size: int
    read_seconds: float
    scan_seconds: float
    memory: int

    @property
    def ratio(self) -> float:
        return self.read_seconds / self.scan_seconds


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
        small_seconds = _scan(Path(place), small, "unflushed").seconds
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
    return 0 if small_seconds <= AIM_SECONDS and all(one.ratio >= AIM_RATIO for one in found) else 1


def _small_logs(path: Path, partitions: int) -> Path:
    """A quarter are empty, the others have up to 20 batches."""
    log_dir(path)
    chance = random.Random(1)  # noqa: S311
    for number in range(partitions):
        many = chance.choice((0, 1, 5, 20))
        data = b"".join(batch(base * 10, 10, payload=bytes(400)) for base in range(many))
        add_partition(path, f"topic-{number % 100}-{number}", {0: data})
    return path


def _segments(place: Path, name: str, size: int, total: int) -> Iterator[ScanSpeed]:
    """Cold, then warm."""
    path = log_dir(place / "large")
    folder = add_partition(path, "large-0", {})
    data, one = bytearray(), bytearray(batch(0, 10, payload=bytes(size - 61)))
    base, files = 0, 0
    for number in range(total // size):
        pack_into(">q", one, 0, base)  # no checksum covers it
        data += one
        base += 10
        if len(data) >= SEGMENT or number + 1 == total // size:
            file = folder / segment_name(files)
            file.write_bytes(data)
            files, data = base, bytearray()
    segments = sorted(folder.glob("*.log"))
    written = sum(file.stat().st_size for file in segments)
    for pages in ("cold", "warm"):
        _prepare(segments, pages)
        read = _read(segments)
        _prepare(segments, pages)
        done = _scan(place, path, "none")
        yield ScanSpeed(name, pages, written, read, done.seconds, done.peak)
    shutil.rmtree(path)


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


def _scan(home: Path, path: Path, checksums: str) -> measure.Measured:
    words = ("disk", "scan", "--checksums", checksums, "--output", "json", str(path))
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
    yield "| batches of | pages | segments | end to end | headers | of its speed, aim 0.5 | peak memory |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for one in found:
        yield (
            f"| {one.batches} | {one.pages} | {one.size / 2**20:,.0f} MiB | {one.read_seconds:.2f} s |"
            f" {one.scan_seconds:.2f} s | {one.ratio:.2f} | {one.memory / 2**20:.0f} MiB |"
        )


if __name__ == "__main__":
    raise SystemExit(main())
