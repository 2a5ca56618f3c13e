"""What ``watch`` does for clusters in which nothing happens: it reads on, and hands on nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backends.metadata_log.batch_writer import data_batch
from pipeline.watch.metadata_source import MOST_TASKS, ShippedLogReader
from pipeline.watch.packed_records import PACKED, unpacked
from recovery.controller.registration import PartitionChange
from recovery.metadata_log.record_codec import NO_OP
from recovery.metadata_log.records import PartitionChangeRecord
from tests.shipped_metadata_logs import BEGAN_MS, ISR_GROWS, TOPIC_IDS, LogWriter, topics

MOST = 1 << 20


def idle(log: LogWriter) -> None:
    """The controller writes that it is there."""
    log._bytes += data_batch(log.offset, 1, BEGAN_MS + log.offset * 1000, [NO_OP])
    log.offset += 1
    log.write()


def rows_of(reader: ShippedLogReader, start: dict[str, Any], end: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """What Spark gets of a micro-batch."""
    return [
        row
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def test_a_cluster_that_only_says_that_it_is_there_gives_no_row(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    log.append(*topics())
    log.write()
    reader = ShippedLogReader(tmp_path, MOST, PACKED.names)
    begun = reader.latestOffset()
    assert rows_of(reader, reader.initialOffset(), begun)
    for _ in range(3):
        idle(log)
    later = reader.latestOffset()
    assert later != begun and not rows_of(reader, begun, later)
    log.append(PartitionChangeRecord(TOPIC_IDS[0], 0, ISR_GROWS))
    log.write()
    # Only the shard of that topic: the states of the others are not written again.
    (row,) = rows_of(reader, later, reader.latestOffset())
    assert unpacked([row["records"]])["offset"].to_pylist() == [log.offset - 1]


def test_many_clusters_are_read_by_a_few_tasks_each_in_one(tmp_path: Path) -> None:
    logs = [LogWriter(tmp_path / f"c{number}") for number in range(2 * MOST_TASKS + 1)]
    for log in logs:
        log.append(*topics())
        log.append(PartitionChangeRecord(TOPIC_IDS[0], 0, PartitionChange(isr=(1,))))
        log.write()
    reader = ShippedLogReader(tmp_path, MOST, ["cluster", "offset"])
    found = reader.partitions(reader.initialOffset(), reader.latestOffset())
    assert len(found) == MOST_TASKS
    by_task = [
        {name for batch in reader.read(partition) for name in batch["cluster"].to_pylist()}
        for partition in found
    ]
    assert sum(map(len, by_task)) == len(logs) == len(set().union(*by_task))
