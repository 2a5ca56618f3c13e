"""A simulated broker's log dirs, written as Kafka lays them out, for what reads disks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from backends.simulator.broker.disk import LogDirState
from backends.simulator.broker.replica_log import Log
from backends.simulator.committed_records import OffsetCounter
from backends.simulator.disk_scan import noted_epoch
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.partition_table import id_of
from backends.simulator.world import World
from recovery.metadata_log.records import RegisterBrokerRecord
from recovery.model import TopicPartition


def write_log_dirs(world: World, cluster_id: str, broker: int, directory: Path) -> tuple[Path, ...]:
    """Writes every log dir of ``broker`` that works into ``directory``, which is made; returns the new dirs.

    The first has the metadata log up to the broker's last registration: how much more of it a broker's disk holds
    is not simulated. Writes nothing where all log dirs have failed. Raises KeyError for no broker, OSError also
    where ``directory`` is there already.
    """
    disk = world.disks[broker]
    working = [(index, one) for index, one in enumerate(disk.directories) if not one.broken]
    if working:
        directory.mkdir(parents=True)
    written: list[Path] = []
    for index, log_dir in working:
        path = directory / f"log-dir-{index}"
        path.mkdir()
        logs = {
            tp: log
            for tp, log in sorted(disk.logs.items())
            if log.directory == index and tp not in disk.bad and tp in world.image.partitions
        }
        _write_properties(path, cluster_id, broker, log_dir)
        if disk.clean_shutdown_epoch is not None:
            _write_clean_shutdown(path, disk.clean_shutdown_epoch)
        _write_checkpoints(path, logs)
        for tp, log in logs.items():
            _write_partition(world, path / str(tp), broker, tp, log)
        if not written:
            _write_metadata_log(world, broker, path)
        written.append(path)
    return tuple(written)


def _write_properties(path: Path, cluster_id: str, broker: int, log_dir: LogDirState) -> None:
    ids = f"cluster.id={cluster_id}\ndirectory.id={log_dir.id}\nnode.id={broker}\n"
    (path / "meta.properties").write_text(f"{ids}version=1\n", encoding="utf-8")


def _write_clean_shutdown(path: Path, broker_epoch: int) -> None:
    """KIP-966, "Detection of an unclean shutdown"."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    (path / ".kafka_cleanshutdown").write_text(content, encoding="utf-8")


def _write_checkpoints(path: Path, logs: dict[TopicPartition, Log]) -> None:
    for name, offsets in (
        ("log-start-offset-checkpoint", {tp: log.start for tp, log in logs.items() if log.start}),
        ("recovery-point-offset-checkpoint", {tp: log.flushed for tp, log in logs.items()}),
        ("replication-offset-checkpoint", {tp: log.checkpoint for tp, log in logs.items()}),
    ):
        _write_lines(path / name, (f"{tp.topic} {tp.partition} {at}" for tp, at in offsets.items()))


def _write_partition(world: World, folder: Path, broker: int, tp: TopicPartition, log: Log) -> None:
    folder.mkdir()
    topic_id = id_of(world.image, tp.topic)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}", encoding="utf-8")
    epochs = [(span.epoch, span.start) for span in log.spans]
    newest = noted_epoch(world, broker, tp, log)
    if newest > log.last_epoch:
        epochs.append((newest, log.end))
    _write_lines(folder / "leader-epoch-checkpoint", (f"{epoch} {start}" for epoch, start in epochs))
    with (folder / f"{log.start:020}.log").open("xb") as file:
        file.writelines(_batches(world, tp, log))


def _batches(world: World, tp: TopicPartition, log: Log) -> Iterator[bytes]:
    times, contents = world.context.times, world.context.contents
    for span in log.spans:

        def time_of(at: int, epoch: int = span.epoch) -> int:
            return times.of(tp, epoch, at)[0]

        yield from contents.read(tp, span, time_of)


def _write_metadata_log(world: World, broker: int, path: Path) -> None:
    counter, end = OffsetCounter(), 0
    for batch in world.committed_records.batches():
        counter.place(batch)
        if any(isinstance(one, RegisterBrokerRecord) and one.broker == broker for one in batch.records):
            end = counter.next_offset
    log = EncodedMetadataLog(world.committed_records)
    log.catch_up()
    log.write(path, end)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    """A checkpoint: its version, the number of lines, the lines."""
    found = list(lines)
    path.write_text("\n".join(("0", str(len(found)), *found)) + "\n", encoding="utf-8")
