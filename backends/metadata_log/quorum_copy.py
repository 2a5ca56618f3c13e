"""Reads what a directory ``__cluster_metadata-0`` tells of the quorum: voters, kraft.version, the log's end,
the last election, and whether its node runs. Nothing is written.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from backends.disk_scan.checkpoint_files import CheckpointError, read_properties, read_text
from backends.log_segments.segment_reader import SegmentReader, is_torn
from backends.log_segments.segment_source import SegmentError, SegmentFile
from backends.metadata_log.batches import control_records, missing_offsets
from backends.metadata_log.directory import DIRECTORY, MetadataDirError, log_files, snapshot_before
from recovery.membership.lost_quorum import (
    NO_NODE,
    CopyDefect,
    QuorumCopy,
    RunningNode,
    StoredElection,
)
from recovery.membership.voters import VoterSet
from recovery.metadata_log.control_records import ControlRecord, KraftVersion
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.rebuilt_log import RebuiltLogFinder

QUORUM_STATE = "quorum-state"
LOCK = ".lock"
PROPERTIES = "meta.properties"


def metadata_directory(path: Path) -> Path:
    """The directory of the metadata log: ``path`` itself, or the one in that log dir."""
    inside = path / DIRECTORY
    return inside if inside.is_dir() else path


def read_quorum_copy(path: Path) -> QuorumCopy:
    """Reads the directory, or the one in that log dir, with every batch's checksum. Raises MetadataDirError:
    there is no metadata log, or it cannot be read.
    """
    directory = metadata_directory(path)
    if directory.name != DIRECTORY and directory.is_dir():
        raise MetadataDirError(f"{directory}: is no directory {DIRECTORY}, and has none in it")
    segments, snapshots = log_files(directory)
    if not segments and not snapshots:
        raise MetadataDirError(f"{directory}: holds no metadata log")
    log_dir = directory.parent
    try:
        properties = read_properties(log_dir / PROPERTIES) or {}
    except CheckpointError as error:
        raise MetadataDirError(str(error)) from None
    walk = _Walk(_rebuilds_from(directory, segments, snapshots))
    snapshot: tuple[int, int] | None = None
    if snapshots:
        end, newest = snapshots[-1]
        epoch = int(newest.stem.partition("-")[2])
        snapshot = (end, epoch) if end else None
        walk.snapshot(newest, end, epoch)
    for number, (base, segment) in enumerate(segments):
        walk.segment(segment, base, is_last=number == len(segments) - 1)
    node, rebuilt = properties.get("node.id", ""), walk.rebuilds.found
    return QuorumCopy(
        path=str(directory),
        cluster_id=properties.get("cluster.id", ""),
        node=int(node) if node.isascii() and node.isdigit() and len(node) < 11 else NO_NODE,
        directory_id=properties.get("directory.id", ""),
        kraft_version=walk.kraft_version,
        voters=walk.voters,
        voters_offset=walk.voters_offset,
        snapshot=snapshot,
        start=segments[0][0] if segments else walk.end,
        end=walk.end,
        epoch=walk.epoch,
        last_ms=walk.last_ms,
        segment=segments[-1][1].name if segments else "",
        whole_bytes=walk.whole_bytes,
        election=stored_election(directory),
        defect=walk.defect,
        running=running_node(log_dir),
        replaced=() if rebuilt is None else tuple(v for v in rebuilt.gone if walk.voters.find(v.key) is None),
        rebuilt_epoch=None if rebuilt is None else rebuilt.epoch,
    )


def _rebuilds_from(
    directory: Path, segments: list[tuple[int, Path]], snapshots: list[tuple[int, Path]]
) -> RebuiltLogFinder:
    """Finds the rebuilds of a log that begins after a snapshot, which may be an older one than the newest."""
    first = segments[0][0] if segments else None
    before = _Walk(RebuiltLogFinder())
    try:
        path, end = snapshot_before(directory, snapshots, first)
        before.snapshot(path, end, int(path.stem.partition("-")[2]))
    except (MetadataDirError, MalformedRecordError):
        return RebuiltLogFinder()
    return RebuiltLogFinder(before.voters, before.epoch if end == first else None)


def running_node(log_dir: Path) -> RunningNode:
    """Whether a process holds the lock that a Kafka node takes in each of its log dirs while it runs. A copy of
    a directory has a lock file that nobody holds.
    """
    try:
        descriptor = os.open(log_dir / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return RunningNode.STOPPED
    except OSError:
        return RunningNode.NOT_KNOWN
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return RunningNode.RUNS
    except OSError:
        # Kafka takes a POSIX lock; a file system without them tells nothing.
        return RunningNode.NOT_KNOWN
    finally:
        os.close(descriptor)
    return RunningNode.STOPPED


def stored_election(directory: Path) -> StoredElection | None:
    """The file quorum-state of version 0 or 1; None where there is none. Raises MetadataDirError."""
    path = directory / QUORUM_STATE
    try:
        text = read_text(path)
    except CheckpointError as error:
        raise MetadataDirError(str(error)) from None
    if text is None:
        return None
    try:
        members = json.loads(text)
        return StoredElection(
            int(members["leaderEpoch"]), int(members["leaderId"]), int(members.get("votedId", NO_NODE))
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MetadataDirError(f"{path}: is no state of a quorum that Kafka can read") from None


class _Walk:
    """Follows the log: where it ends, and which control record counts."""

    def __init__(self, rebuilds: RebuiltLogFinder) -> None:
        self.rebuilds = rebuilds
        self.kraft_version = 0
        self.voters = VoterSet(())
        self.voters_offset: int | None = None
        self.end = 0
        self.epoch = 0
        self.last_ms: int | None = None
        self.whole_bytes = 0
        self.defect: CopyDefect | None = None

    def snapshot(self, path: Path, end: int, epoch: int) -> None:
        """Raises MetadataDirError where it is damaged: nothing can be said about the copy without it."""
        try:
            with SegmentFile(path) as source:
                reader = SegmentReader(source)
                for batch in reader:
                    if batch.header.is_control:
                        self._take(_controls(reader.raw(batch)), fixed=end - 1)
                    self._later(batch.header.max_timestamp)
                if reader.defect is not None:
                    raise MetadataDirError(f"{path}: {reader.defect.text}")
        except SegmentError as error:
            raise MetadataDirError(str(error)) from None
        self.end, self.epoch = end, epoch

    def segment(self, path: Path, base: int, *, is_last: bool) -> None:
        """Follows the batches up to the first that is no whole one, or stands where another one should."""
        if self.defect is not None:
            return
        expected = base
        if base > self.end:
            self._broken(path, 0, missing_offsets(self.end, base))
            return
        try:
            with SegmentFile(path) as source:
                reader = SegmentReader(source)
                whole = 0
                for batch in reader:
                    header = batch.header
                    if header.base_offset != expected:
                        self._broken(path, source.size - whole, missing_offsets(expected, header.base_offset))
                        return
                    controls = _controls(reader.raw(batch)) if header.is_control else []
                    self._take(controls)
                    self.rebuilds.batch(
                        header.base_offset, header.next_offset, header.leader_epoch, [c for _, c in controls]
                    )
                    expected, whole = header.next_offset, reader.end_position
                    if expected > self.end:
                        self.end, self.epoch = expected, header.leader_epoch
                    self._later(header.max_timestamp)
                self.whole_bytes = whole
                if reader.defect is not None:
                    torn = is_last and is_torn(source, reader.defect)
                    self.defect = CopyDefect(torn, path.name, source.size - whole, reader.defect.text)
        except (SegmentError, MalformedRecordError) as error:
            self._broken(path, 0, str(error))

    def _broken(self, path: Path, size: int, text: str) -> None:
        self.defect = CopyDefect(False, path.name, size, text)

    def _later(self, time_ms: int) -> None:
        self.last_ms = time_ms if self.last_ms is None else max(self.last_ms, time_ms)

    def _take(self, controls: list[tuple[int, ControlRecord]], fixed: int | None = None) -> None:
        for offset, record in controls:
            at = offset if fixed is None else fixed
            if isinstance(record, KraftVersion):
                self.kraft_version = record.level
            elif isinstance(record, VoterSet) and (self.voters_offset is None or at >= self.voters_offset):
                self.voters, self.voters_offset = record, at


def _controls(batch: bytes) -> list[tuple[int, ControlRecord]]:
    """The control records of a whole batch. Raises MalformedRecordError."""
    from aiokafka.errors import KafkaError  # noqa: PLC0415  # slow to import, and not for the first screen
    from aiokafka.record.default_records import DefaultRecordBatch  # noqa: PLC0415

    try:
        return list(control_records(DefaultRecordBatch(batch)))
    except MalformedRecordError:
        raise
    except (KafkaError, ValueError, OverflowError) as error:
        raise MalformedRecordError(f"a control batch cannot be read: {type(error).__name__}") from None
