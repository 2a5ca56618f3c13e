"""Log dirs of brokers that are down, as sources of a rescue."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.base.protocol import Progress
from backends.disk_scan.log_dir_scan import scan_log_dirs
from console.disk_evidence_files import readings_of_scan
from console.operations.rescue.rescue_run import RescueSource
from console.operations.survey.disk_evidence import refuse_other_clusters
from console.rescue.disk_batches import DiskBatches
from recovery.disk_evidence import DiskLog, DiskReading
from recovery.model import PartitionState, TopicPartition
from recovery.rescue_branches import DiskCopy, RescueBranch, UnreadReplica


@dataclass(frozen=True, slots=True)
class RescueDisks:
    """What was read from them, one reading for each broker."""

    readings: tuple[DiskReading, ...]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted({tp for reading in self.readings for tp in reading.logs}))

    def copies(self, state: PartitionState) -> tuple[DiskCopy, ...]:
        """The partition's logs on the disks. A log that lost its tail counts as far as it goes."""
        return tuple(
            DiskCopy(broker, disk.log) for broker, disk in self._of(state) if _refusal(state, disk) is None
        )

    def unread(self, state: PartitionState) -> tuple[UnreadReplica, ...]:
        """What of the partition cannot be had from the disks, and why."""
        found = []
        for broker, disk in self._of(state):
            why = _refusal(state, disk) or disk.lost_tail
            if why is not None:
                found.append(UnreadReplica(state.tp, broker, f"its disk: {why}"))
        return tuple(found)

    def sources(self, branches: Iterable[RescueBranch]) -> list[RescueSource]:
        """One for each broker whose disk has some of the branches."""
        by_broker: dict[int, list[RescueBranch]] = {}
        for branch in branches:
            if branch.log_dir:
                by_broker.setdefault(branch.broker, []).append(branch)
        found = []
        for mine in by_broker.values():
            folders = {one.tp: Path(one.log_dir) / f"{one.tp.topic}-{one.tp.partition}" for one in mine}
            found.append(RescueSource(DiskBatches(folders).read, tuple(mine)))
        return found

    def _of(self, state: PartitionState) -> list[tuple[int, DiskLog]]:
        return [(one.broker, one.logs[state.tp]) for one in self.readings if state.tp in one.logs]


async def read_rescue_disks(
    log_dirs: Sequence[Path], cluster_id: str, progress: Progress | None
) -> RescueDisks:
    """Scans the dirs. Raises InputError where one cannot be read, or is of another cluster."""

    def scanned(done: int, of: int) -> None:
        if progress is not None:
            progress("reading partitions of the disk", done, of)

    if not log_dirs:
        return RescueDisks(())
    now_ms = int(time.time() * 1000)
    dirs = [str(path) for path in log_dirs]
    scan = await asyncio.to_thread(scan_log_dirs, dirs, socket.gethostname(), now_ms, progress=scanned)
    readings = readings_of_scan(scan)
    refuse_other_clusters(readings, cluster_id)
    return RescueDisks(readings)


def _refusal(state: PartitionState, disk: DiskLog) -> str | None:
    """Why the log on the disk is not one of this partition's."""
    if not disk.topic_id:
        return "it does not tell the topic's id (no partition.metadata)"
    if disk.topic_id != state.topic_id:
        return f"another topic id: the disk has {disk.topic_id}, the cluster {state.topic_id}"
    return None
