"""A simulated broker's log dirs for what reads disks: as a scan finds them, and written as Kafka lays them out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from backends.disk_scan.scan_values import LIVE, DiskScan, ScannedDir, ScannedLog
from backends.metadata_log.directory import DIRECTORY
from backends.metadata_log.quorum_copy import QUORUM_STATE
from backends.simulator.broker.log_storage import BrokerDisk
from backends.simulator.broker.replica_log import Log
from backends.simulator.committed_records import OffsetCounter
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.loop import MILLISECOND
from backends.simulator.partition_table import id_of
from backends.simulator.world import World
from recovery.model import NO_LEADER, TopicPartition

METADATA_DIR = "metadata"
"""The name of a controller's dir that is written."""
NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's id of no directory."""


def simulated_disk_scan(world: World, cluster_id: str, broker: int) -> DiskScan:
    """All log dirs of ``broker``, whether it runs or not; the time is virtual. Raises KeyError for no broker.

    Without its metadata log: whether the broker came back since is
    compared by the time.
    """
    disk = world.disks[broker]
    dirs = []
    for index, directory in enumerate(disk.directories):
        if directory.broken:
            problem = "cannot be listed: Input/output error"
            dirs.append(ScannedDir(directory.path, problem, "", -1, "", False, (), ()))
            continue
        clean = disk.clean_shutdown_epoch is not None
        logs = tuple(_logs(world, disk, broker, index))
        dirs.append(ScannedDir(directory.path, None, cluster_id, broker, directory.id, clean, (), logs))
    return DiskScan(f"broker-{broker}.simulated", world.loop.now // MILLISECOND, "unflushed", tuple(dirs))


def _logs(world: World, disk: BrokerDisk, broker: int, directory: int) -> Iterator[ScannedLog]:
    for tp, log in sorted(disk.logs.items()):
        if log.directory == directory and tp not in disk.bad and tp in world.image.partitions:
            yield _log(world, broker, tp, log)


def _log(world: World, broker: int, tp: TopicPartition, log: Log) -> ScannedLog:
    return ScannedLog(
        folder=str(tp),
        kind=LIVE,
        topic=tp.topic,
        partition=tp.partition,
        topic_id=id_of(world.image, tp.topic),
        log_start=log.start,
        log_end=log.end,
        high_watermark=log.checkpoint,
        recovery_point=log.flushed,
        last_epoch=log.last_epoch,
        leader_epoch=noted_epoch(world, broker, tp, log),
        spans=tuple((span.epoch, span.start, span.end) for span in log.spans),
        last_timestamp=-1,
        records=log.end - log.start,
        size=log.size,
        skipped=0,
        segments=1,
        may_be_tiered=False,
        defect=None,
        lost_tail=_lost_tail(log),
        remarks=(),
    )


def noted_epoch(world: World, broker: int, tp: TopicPartition, log: Log) -> int:
    """The newest leader epoch in the log's checkpoint of epochs. A leader writes its epoch there when it begins to
    lead, whether or not it then appends a record.
    """
    return max(log.last_epoch, _led_epoch(world, broker, tp))


def _led_epoch(world: World, broker: int, tp: TopicPartition) -> int:
    state = world.image.partitions[tp]
    if state.leader == broker:
        return state.leader_epoch
    led_last = state.isr == (broker,) or (not state.isr and state.last_known_elr == (broker,))
    # The controller has raised the epoch once more to take the leader away.
    return state.leader_epoch - 1 if state.leader == NO_LEADER and led_last else -1


def _lost_tail(log: Log) -> str | None:
    if log.checkpoint <= log.end:
        return None
    return f"it ends at {log.end}, below its high watermark {log.checkpoint}"


def write_log_dirs(world: World, cluster_id: str, broker: int, directory: Path) -> tuple[Path, ...]:
    """Writes every log dir of ``broker`` that works into ``directory``, which is made; returns the new dirs.

    The first has the metadata log as far as the broker has read it. Writes nothing where all log dirs have failed.
    Raises KeyError for no broker, OSError also where ``directory`` is there already.
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
        _write_properties(path, cluster_id, broker, log_dir.id)
        if disk.clean_shutdown_epoch is not None:
            _write_clean_shutdown(path, disk.clean_shutdown_epoch)
        _write_checkpoints(path, logs)
        for tp, log in logs.items():
            _write_partition(world, path / str(tp), broker, tp, log)
        if not written:
            _write_metadata_log(world, disk.metadata_read, path)
        written.append(path)
    return tuple(written)


def write_metadata_log_dir(
    world: World, cluster_id: str, controller: int, directory: Path
) -> tuple[Path, ...]:
    """Writes the metadata log dir of ``controller`` into ``directory``, which is made; returns the new dir.

    It has what was committed of the log on its disk, and no record that never was. Writes nothing where the disk
    has failed. Raises KeyError for no controller, OSError also where ``directory`` is there already.
    """
    disk = world.quorum.disks[controller]
    if disk.broken:
        return ()
    path = directory / METADATA_DIR
    path.mkdir(parents=True)
    _write_properties(path, cluster_id, controller, disk.key.directory_id)
    if disk.log.end:
        _write_metadata_log(world, disk.log.end - 1, path)
        state = {
            "leaderId": NO_LEADER if disk.leader is None else disk.leader,
            "leaderEpoch": disk.epoch,
            "votedId": NO_LEADER if disk.voted is None else disk.voted.id,
            "votedDirectoryId": NO_DIRECTORY if disk.voted is None else disk.voted.directory_id,
            "data_version": 1,
        }
        (path / DIRECTORY / QUORUM_STATE).write_text(json.dumps(state), encoding="utf-8")
    return (path,)


def _write_properties(path: Path, cluster_id: str, node: int, directory_id: str) -> None:
    ids = f"cluster.id={cluster_id}\ndirectory.id={directory_id}\nnode.id={node}\n"
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


def _write_metadata_log(world: World, position: int, path: Path) -> None:
    """The metadata log up to that offset of the quorum's own log; nothing of it for -1."""
    counter, end = OffsetCounter(), 0
    for batch in world.committed_records.batches():
        counter.place(batch)
        if batch.position <= position:
            end = counter.next_offset
    if not end:
        return
    log = EncodedMetadataLog(world.committed_records)
    log.catch_up()
    log.write(path, end)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    """A checkpoint: its version, the number of lines, the lines."""
    found = list(lines)
    path.write_text("\n".join(("0", str(len(found)), *found)) + "\n", encoding="utf-8")
