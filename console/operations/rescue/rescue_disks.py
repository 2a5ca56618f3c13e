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
from recovery.wording.quantity_text import counted


@dataclass(frozen=True, slots=True)
class RescueDisks:
    """What was read from them, one reading for each broker."""

    readings: tuple[DiskReading, ...]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        found = {tp for reading in self.readings for tp in reading.logs}
        found.update(stray.tp for reading in self.readings for stray in reading.strays)
        return tuple(sorted(found))

    def copies(self, state: PartitionState) -> tuple[DiskCopy, ...]:
        """The partition's logs on the disks, strays too. A log that lost its tail counts as far as it goes."""
        return tuple(
            DiskCopy(broker, disk.log) for broker, disk in self._of(state) if _refusal(state, disk) is None
        )

    def unread(self, state: PartitionState) -> tuple[UnreadReplica, ...]:
        """What of the partition cannot be had from the disks, and why."""
        found = []
        for broker, disk in self._of(state):
            refusal = _refusal(state, disk)
            reasons = (refusal,) if refusal is not None else (disk.lost_tail, _old_messages(disk))
            found += [
                UnreadReplica(state.tp, broker, f"its disk: {why}", partly=refusal is None)
                for why in reasons
                if why is not None
            ]
        return tuple(found)

    def sources(self, branches: Iterable[RescueBranch]) -> list[RescueSource]:
        """One for each broker whose disk has some of the branches; one more for each stray of a partition."""
        strays = {stray.folder for reading in self.readings for stray in reading.strays}
        apart: dict[tuple[int, str], list[RescueBranch]] = {}
        for branch in branches:
            if branch.log_dir:
                own = branch.log_dir if branch.log_dir in strays else ""
                apart.setdefault((branch.broker, own), []).append(branch)
        found = []
        for (_, stray), mine in apart.items():
            folders = {
                one.tp: Path(stray or Path(one.log_dir, f"{one.tp.topic}-{one.tp.partition}")) for one in mine
            }
            found.append(RescueSource(DiskBatches(folders).read, tuple(mine)))
        return found

    def _of(self, state: PartitionState) -> list[tuple[int, DiskLog]]:
        """A stray's folder stands in the place of its log dir, as what is read of it is named by that."""
        found = []
        for one in self.readings:
            if state.tp in one.logs:
                found.append((one.broker, one.logs[state.tp]))
            for stray in one.strays:
                if stray.tp == state.tp:
                    log = stray.disk.log._replace(log_dir=stray.folder)
                    found.append((one.broker, stray.disk._replace(log=log)))
        return found


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


def _old_messages(disk: DiskLog) -> str | None:
    """What of the log is of a format that is not rescued: nobody can say whether the leader has the same."""
    if not disk.old_messages:
        return None
    return (
        f"{counted(disk.old_messages, 'message')} of formats 0 and 1, before offset {disk.old_end}, are neither"
        " compared nor rescued; a broker of today serves them from this disk"
    )


def _refusal(state: PartitionState, disk: DiskLog) -> str | None:
    """Why the log on the disk is not one of this partition's."""
    if not disk.topic_id:
        return "it does not tell the topic's id (no partition.metadata)"
    if disk.topic_id != state.topic_id:
        return f"another topic id: the disk has {disk.topic_id}, the cluster {state.topic_id}"
    return None
