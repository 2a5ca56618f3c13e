"""``python -m benchmarks.metadata_log``: writes ``benchmarks/results/metadata-log.md``.

Each measurement is a process of its own, so that each has its own peak memory. The logs are written by the same
encoder as the simulator's: 2,000 topics of 10 partitions, changes of every partition in turn.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from backends.metadata_log.batch_writer import data_batch, leader_change_batch
from backends.metadata_log.directory import DirectoryReading, read_directory
from backends.metadata_log.topic_scan import TopicScan
from backends.simulator.partition_table import topic_id
from benchmarks.machine_info import described
from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.history import fold
from recovery.metadata_log.log_changes import MetadataLogRecord, PartitionSubject
from recovery.metadata_log.record_codec import NO_OP, encode
from recovery.metadata_log.records import PartitionChangeRecord, PartitionRecord, TopicRecord

RESULTS = Path(__file__).parent.parent / "results" / "metadata-log.md"
TOPICS, PARTITIONS = 2_000, 10
RECORDS = 1_000_000
SIZE = 100 * 1024 * 1024
BATCH = 4
"""Records of a batch: a busy controller writes many small ones."""
WANTED = "topic-1234", 7
IDLE_RECORDS = 7 * 24 * 3600 * 2
"""What an idle controller writes in a week, which is as long as Kafka keeps it (``metadata.max.retention.ms``)."""
_CHANGES = (
    PartitionChange(isr=(1, 2)),
    PartitionChange(leader=1, isr=(1,), elr=(2,)),
    PartitionChange(leader=-1, isr=(), elr=(1, 2), last_known_elr=(1,)),
    PartitionChange(leader=2, isr=(2,), elr=(), last_known_elr=()),
    PartitionChange(isr=(2, 3, 1)),
)


def values() -> Iterator[bytes]:
    """The records of a log without an end."""
    ids = [topic_id(f"topic-{number}") for number in range(TOPICS)]
    for number, identity in enumerate(ids):
        yield encode(TopicRecord(f"topic-{number}", identity))
        for partition in range(PARTITIONS):
            first = Registration((1, 2, 3), (1, 2, 3), 1)
            yield encode(PartitionRecord(identity, partition, first))
    while True:
        for change in _CHANGES:
            for partition in range(PARTITIONS):
                for identity in ids:
                    yield encode(PartitionChangeRecord(identity, partition, change))


def write_log(folder: Path, size: int) -> int:
    """One segment of at least ``size`` bytes; returns its number of records."""
    folder.mkdir(parents=True)
    offset, written, more = 1, 0, values()
    with (folder / f"{0:020}.log").open("wb") as file:
        written += file.write(leader_change_batch(0, 1, 0, 100, (100,)))
        while written < size:
            batch = [next(more) for _ in range(BATCH)]
            written += file.write(data_batch(offset, 1, offset, batch))
            offset += len(batch)
    return offset


def write_idle_log(folder: Path) -> int:
    """One segment of a week in which nothing happened but for the first records; returns its number of records."""
    folder.mkdir(parents=True)
    more = values()
    first = [next(more) for _ in range(TOPICS)]
    offset = 1 + len(first)
    with (folder / f"{0:020}.log").open("wb") as file:
        file.write(leader_change_batch(0, 1, 0, 100, (100,)))
        file.write(data_batch(1, 1, 0, first))
        for _ in range(IDLE_RECORDS):
            file.write(data_batch(offset, 1, offset * 500, [NO_OP]))
            offset += 1
    return offset


def measure_whole(folder: Path) -> dict[str, float]:
    """Every record of the log, from its files, folded."""
    reading = DirectoryReading(folder)
    began, cpu = time.perf_counter(), time.process_time()
    history = fold(read_directory(reading))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert (
        reading.problem is None and reading.end_offset == IDLE_RECORDS + TOPICS + 1 and len(history) == TOPICS
    )
    return {"seconds": seconds, "cpu": cpu, "mib": _peak_mib(), "bytes": reading.bytes_read}


def measure_fold() -> dict[str, float]:
    """A million records that lie in memory, folded; memory is what the fold added."""
    more = values()
    records = [MetadataLogRecord(at, at, at // BATCH, next(more)) for at in range(RECORDS)]
    before = _peak_mib()
    began, cpu = time.perf_counter(), time.process_time()
    history = fold(records)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert len(history) == RECORDS
    return {"seconds": seconds, "cpu": cpu, "mib": _peak_mib() - before, "records": RECORDS}


def measure_scan(folder: Path) -> dict[str, float]:
    """The states of one partition in the log, from its files."""
    topic, partition = WANTED
    began, cpu = time.perf_counter(), time.process_time()
    reading = DirectoryReading(folder)
    history = fold(read_directory(reading, TopicScan([topic], partition)))
    states = history.intervals(PartitionSubject(topic_id(topic), partition))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert reading.problem is None and len(states) > 50
    return {
        "seconds": seconds,
        "cpu": cpu,
        "mib": _peak_mib(),
        "states": len(states),
        "bytes": reading.bytes_read,
    }


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _in_process(*words: str) -> dict[str, float]:
    argv = [sys.executable, "-m", "benchmarks.metadata_log", *words]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def report(
    folded: dict[str, float], scanned: dict[str, float], records: int, idle: dict[str, float]
) -> Iterator[str]:
    yield "# The metadata log"
    yield ""
    yield from described("4.3.1")
    yield f"- {datetime.now(UTC):%Y-%m-%d}, one run each"
    yield ""
    yield "Targets are of CPU time: one thread computes, and other work may share the machine."
    yield ""
    yield "| | time | CPU time | memory | target |"
    yield "|---|---:|---:|---:|---|"
    yield _row(f"{RECORDS:,} records folded", folded, 3, "added", most_mib=300)
    found = f"{scanned['states']:,} states of one partition in {scanned['bytes'] / 2**20:,.0f} MiB"
    yield _row(f"the {found} ({records:,} records), from the files", scanned, 2, "in all")
    week = f"a week of an idle controller ({IDLE_RECORDS:,} records, {idle['bytes'] / 2**20:,.0f} MiB)"
    yield _row(f"{week}, from the file", idle, 5, "in all")


def _row(what: str, found: dict[str, float], most: float, how: str, most_mib: float | None = None) -> str:
    met = found["cpu"] <= most and (most_mib is None or found["mib"] <= most_mib)
    target = f"{most:g} s" + ("" if most_mib is None else f", {most_mib:g} MiB")
    times = f"{found['seconds']:.2f} s | {found['cpu']:.2f} s"
    return f"| {what} | {times} | {found['mib']:,.0f} MiB {how} | {target}: {_met_text(met)} |"


def _met_text(met: bool) -> str:
    return "met" if met else "**missed**"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metadata_log", description=__doc__)
    # Each part is measured in a process of its own, which this program starts.
    parser.add_argument("part", nargs="?", choices=("fold", "scan", "whole"), help=argparse.SUPPRESS)
    parser.add_argument("folder", nargs="?", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part == "fold":
        print(json.dumps(measure_fold()))
        return 0
    if asked.part == "scan":
        print(json.dumps(measure_scan(asked.folder)))
        return 0
    if asked.part == "whole":
        print(json.dumps(measure_whole(asked.folder)))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "__cluster_metadata-0"
        records = write_log(folder, SIZE)
        scanned = _in_process("scan", str(folder))
        quiet = Path(directory) / "idle" / "__cluster_metadata-0"
        write_idle_log(quiet)
        idle = _in_process("whole", str(quiet))
    folded = _in_process("fold")
    RESULTS.write_text("\n".join(report(folded, scanned, records, idle)) + "\n", encoding="utf-8")
    print(f"written to {RESULTS}", file=sys.stderr)
    return 0 if folded["cpu"] <= 3 and scanned["cpu"] <= 2 and idle["cpu"] <= 5 else 1


if __name__ == "__main__":
    sys.exit(main())
