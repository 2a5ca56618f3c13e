"""The disks of a simulated broker, as a scan of their log dirs would find them."""

from __future__ import annotations

from collections.abc import Iterator

from backends.disk_scan.scan_values import LIVE, DiskScan, ScannedDir, ScannedLog
from backends.simulator.broker.disk import BrokerDisk
from backends.simulator.broker.replica_log import Log
from backends.simulator.loop import MILLISECOND
from backends.simulator.operate.survey import BYTES_A_RECORD
from backends.simulator.partition_table import id_of
from backends.simulator.world import World
from recovery.model import NO_LEADER, TopicPartition


def simulated_disk_scan(world: World, cluster_id: str, broker: int) -> DiskScan:
    """All log dirs of ``broker``, whether it runs or not; the time is virtual. Raises KeyError for no broker.

    Without its metadata log, which is not simulated on brokers' disks: whether the broker came back since is
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
        size=(log.end - log.start) * BYTES_A_RECORD,
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
