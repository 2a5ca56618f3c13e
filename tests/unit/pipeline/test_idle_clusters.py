"""What ``watch`` does for clusters in which nothing happens: it reads on, and no state is written."""

from __future__ import annotations

import pickle
from pathlib import Path

from backends.metadata_log.batch_writer import data_batch
from pipeline.storage import storage_path
from pipeline.watch.fold_records import _fold_part
from pipeline.watch.log_part import PARTS
from pipeline.watch.metadata_source import MOST_TASKS, ShippedLogReader
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


def test_the_state_of_a_cluster_that_only_says_that_it_is_there_is_not_written(tmp_path: Path) -> None:
    states = tmp_path / "states"
    log = LogWriter(tmp_path / "shipped" / "c")
    log.append(*topics())
    log.write()
    reader = ShippedLogReader(tmp_path / "shipped", MOST, PARTS.names)
    place = [reader.initialOffset()]

    def micro_batch() -> list[str]:
        """Which states there are after it."""
        start, end = place[-1], reader.latestOffset()
        assert end != start
        for partition in reader.partitions(start, end):
            for batch in reader.read(partition):
                for part in batch["part"].to_pylist():
                    _fold_part(storage_path(str(states)), len(place), pickle.loads(part))  # noqa: S301
        place.append(end)
        return sorted(path.name for path in (states / "c").iterdir())

    assert micro_batch() == ["1.state"]
    for _ in range(3):
        idle(log)
        assert micro_batch() == ["1.state"]
    log.append(PartitionChangeRecord(TOPIC_IDS[0], 0, ISR_GROWS))
    log.write()
    assert micro_batch() == ["1.state", "5.state"]


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
