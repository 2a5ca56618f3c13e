"""What a broker does with its log dirs when it starts: Kafka's own checks, in one list.

Sources (read in 3.9; in trunk of October 2024, before 4.0 was cut, LogLoader is Java and these classes check the
same; compared with the classes of 4.3 and 4.4, and what differs is said): MetaProperties,
MetaPropertiesEnsemble.verify and KafkaRaftServer.initializeLogDirs for meta.properties; LogManager.loadLogs for
folders and checkpoints; UnifiedLog.parseTopicPartitionName for names of folders; LogLoader, TransactionIndex,
PartitionMetadataReadBuffer, CheckpointFile.CheckpointReadBuffer and LeaderEpochCheckpointFile for the files of a
partition; FileQuorumStateStore for the metadata log. An IOException takes the log dir offline, any other
exception ends the broker.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from backends.disk_scan.checkpoint_files import CheckpointError, NotReadByKafka, read_text
from backends.disk_scan.scan_values import (
    BEGINS_EMPTY,
    CUT_OFF,
    DELETES,
    DIR_OFFLINE,
    ENDS,
    FUTURE,
    LIVE,
    RENAMED_TO_STRAY,
    STRAY,
    LogDefect,
    ScannedDir,
    ScannedLog,
    StartEffect,
)
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentError, SegmentFile, reason_of

METADATA_TOPIC = "__cluster_metadata"
REMOTE_INDEX_CACHE = "remote-log-index-cache"
METADATA_LOG = f"{METADATA_TOPIC}-0"
_RESERVED = 100
"""Of the ids of directories these are Kafka's own (DirectoryId.reserved)."""

_FIELD = re.compile(r":\s+")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_METADATA_LINES = 2
_ABORTED_TRANSACTION, _SIGN = 34, 0x80
"""Bytes of an entry of a ``.txnindex``; the first two are its version, 0."""

_TO_MAGIC, _SMALLEST_BATCH = 17, 14
"""Bytes of a batch up to its format (Records.HEADER_SIZE_UP_TO_MAGIC), and the least size of what follows the size
(LegacyRecord.RECORD_OVERHEAD_V0).
"""
_MOVE_CHECKPOINT = "move the file away: Kafka makes a new one"
BAD_CHECKPOINTS = {
    "replication-offset-checkpoint": _MOVE_CHECKPOINT,
    "recovery-point-offset-checkpoint": f"{_MOVE_CHECKPOINT}, and checks each log from its first record on",
    "log-start-offset-checkpoint": (
        f"{_MOVE_CHECKPOINT}, and each log begins at its first segment: what DeleteRecords removed is there again"
    ),
}
"""The repair of a checkpoint of a log dir that Kafka cannot read, by the file's name: it takes the log dir offline
(OffsetCheckpointFile reports it to the LogDirFailureChannel, though LogManager logs a warning and goes on).
"""


def partition_metadata(folder: Path, *, future: bool = False) -> tuple[str, StartEffect | None]:
    """The topic id in partition.metadata ("": none) and what the broker does with a folder whose file is not right.
    ``future``: it is a copy for a move between log dirs, which becomes a stray as a replica does
    (LogManager.loadLog, isStrayKraftReplica), with no new log in its place.

    Kafka reads ``version: 0`` and ``topic_id: ID``, each two words on a line of its own.
    """
    path = folder / "partition.metadata"
    repair = (
        f"write {path} with two lines, 'version: 0' and 'topic_id: ID'; ID is the topicId of the topic in"
        " ktriage replicas --output json"
    )
    try:
        text = read_text(path)
    except CheckpointError as error:
        return "", StartEffect(DIR_OFFLINE, str(path), str(error), "make the file readable for the broker")
    if text is None:
        why = "it has no partition.metadata: the broker begins an empty log in its place"
        if future:
            why = (
                "it has no partition.metadata: the broker does not go on with this move between log dirs, and"
                " keeps what was copied as a stray"
            )
            repair = (
                f"{repair}; or let it become a stray, if the log in the other log dir is whole, and ask for the"
                " move again"
            )
        return "", StartEffect(RENAMED_TO_STRAY, str(folder), why, repair)
    lines = text.splitlines()[:2]
    effect, why = _bad_metadata([_field(line) for line in lines])
    if effect:
        return "", StartEffect(effect, str(path), why, repair)
    return _field(lines[1]) or "", None


def _bad_metadata(lines: Sequence[str | None]) -> tuple[str, str]:
    """What the broker does with a partition.metadata of these values, and why; "" where it is right. Kafka reads
    the second line after it has taken the first.
    """
    if not lines:
        return ENDS, "it has 0 bytes, which Kafka does not expect"
    version = int(lines[0]) if lines[0] is not None and _NUMBER.fullmatch(lines[0]) else None
    if version:
        return DIR_OFFLINE, f"version {version} is not known to Kafka"
    if version == 0 and len(lines) < _METADATA_LINES:
        return ENDS, "it has one line only, which Kafka does not expect"
    if version is None or lines[1] is None:
        return DIR_OFFLINE, "it has a line that Kafka cannot read"
    topic_id = _uuid(lines[1])
    if topic_id is None:
        return ENDS, f"{lines[1]!r} is no topic id"
    return ("", "") if any(topic_id) else (DIR_OFFLINE, "its topic id is all zeros")


def _field(line: str) -> str | None:
    """The value of ``name: value``; None: it is no such line."""
    words = _FIELD.split(line)
    return words[1] if len(words) == 2 and words[1] else None


def _uuid(text: str) -> bytes | None:
    """The 16 bytes of an id as Kafka writes it (org.apache.kafka.common.Uuid); None: it is no id."""
    try:
        found = base64.b64decode(f"{text}==", altchars=b"-_", validate=True)
    except ValueError:
        return None
    return found if len(found) == 16 else None


def file_effects(folder: Path, names: Iterable[str]) -> Iterator[StartEffect]:
    """Of the files in a partition's folder: the broker takes the name of each segment, index and producer snapshot,
    up to its first point, for an offset (LogLoader, ProducerStateManager.loadSnapshots).
    """
    for name in names:
        if name.rpartition(".")[2] in _NAMED_BY_OFFSET and not _NUMBER.fullmatch(name.partition(".")[0]):
            repair = f"move it out of {folder}"
            yield StartEffect(ENDS, str(folder / name), "its name is no offset", repair)


_NAMED_BY_OFFSET = ("log", "index", "timeindex", "txnindex", "snapshot", "cleaned", "swap")


def transaction_index_effect(path: Path) -> StartEffect | None:
    """Of the ``.txnindex`` of a segment: Kafka stops at an entry of a version that it does not know. Before 4.4 it
    took the first of the two bytes, signed, for the version.
    """
    try:
        with SegmentFile(path) as file:
            starts = range(0, file.size - _ABORTED_TRANSACTION + 1, _ABORTED_TRANSACTION)
            versions = [version for at in starts if any(version := file.read(at, 2))]
    except SegmentError:
        return None
    if not versions:
        return None
    since = "" if any(0 < version[0] < _SIGN for version in versions) else " 4.4 and later"
    why = f"it has an aborted transaction of a version that Kafka{since} does not know"
    repair = "move it and the .index of its segment away: Kafka makes both again from the segment"
    return StartEffect(ENDS, str(path), why, repair)


def quorum_state_effect(folder: Path) -> StartEffect | None:
    """Of the metadata log's ``quorum-state``; where it is missing, Kafka begins one."""
    path = folder / "quorum-state"
    try:
        text = read_text(path)
    except CheckpointError:
        return None
    if text is None:
        return None
    repair = (
        "move the file away: Kafka makes a new one. That of a controller also has its vote: see first that no"
        " election of controllers is under way"
    )
    try:
        state = json.loads(text.split("\n", 1)[0])
    except ValueError:
        why = "it has 0 bytes" if not text else "it is no JSON"
        return StartEffect(ENDS, str(path), f"{why}, which Kafka does not expect", repair)
    if not isinstance(state, dict) or state.get("data_version") not in (0, 1):
        why = "it has no data_version that Kafka knows"
        return StartEffect(ENDS, str(path), why, repair)
    return None


def deleted_folder(folder: Path, log: ScannedLog) -> StartEffect | None:
    """Of a folder that ends in ``-delete`` and holds records, or may."""
    if log.defect is None and log.log_start == log.log_end and log.size == 0:
        return None
    what = (
        f"offsets {log.log_start} to {log.log_end - 1}" if log.log_end > log.log_start else "no whole batch"
    )
    beside = ""
    if log.defect is not None:
        beside = f", and {log.defect.bytes_after} bytes behind a damaged place ({log.defect.text})"
    why = (
        f"the broker deletes this folder a minute after its start (log.segment.delete.delay.ms). It holds {what} of"
        f" {log.topic}-{log.partition}{beside}, {log.size} bytes: what no replica has of it is lost then"
    )
    repair = (
        f"to keep it, move the folder out of {folder.parent} before the start, or rename it so that it ends in"
        " -stray: Kafka leaves such a folder alone, and ktriage rescue read reads it; else nothing is to be done"
    )
    return StartEffect(DELETES, str(folder), why, repair)


def deleted_segments(folder: Path, names: Sequence[str], size: int) -> Iterator[StartEffect]:
    """Of the segments in a folder whose names end in ``.deleted``, ``size`` bytes together: LogLoader removes
    them.
    """
    if names and size:
        first = sorted(names)[0]
        more = f" (and {len(names) - 1} more .log.deleted files)" if len(names) > 1 else ""
        why = (
            f"the broker deletes it when it loads the log{more}, {size} bytes: segments that retention, compaction"
            " or a truncation to a new leader's log had taken out of the log"
        )
        repair = f"to keep them, move them out of {folder} before the start; else nothing is to be done"
        yield StartEffect(DELETES, str(folder / first), why, repair)


def cut_off(
    folder: Path, defect: LogDefect | None, next_base: int | None, recovery_point: int, *, clean: bool
) -> StartEffect | None:
    """Of a damaged log: after an unclean stop the broker checks every segment that reaches beyond the recovery
    point, cuts at the first damaged place and deletes what follows (LogLoader.recoverLog). ``next_base`` is the
    first offset of the segment behind the damaged one, None: there is none. After a clean stop it only reads the
    newest segment to its end, and stops at a size that no batch has (FileLogInputStream.nextBatch).
    """
    if defect is not None and clean and next_base is None:
        return _no_batch(folder, defect)
    if defect is None or clean or (next_base is not None and next_base <= max(recovery_point, 0)):
        return None
    damaged = defect.kind in ("wrong checksum", "not a batch")
    if not damaged and not (defect.segments_after and defect.kind in ("cut short", "zeros")):
        return None
    segments = f" and {defect.segments_after} later segments" if defect.segments_after else ""
    why = (
        f"the broker cuts this log at offset {defect.offset} and deletes what lies behind:"
        f" {defect.bytes_after} bytes of {defect.file}{segments} ({defect.text})"
    )
    repair = "copy the folder before the start: what lies behind the damaged place is gone after it"
    return StartEffect(CUT_OFF, str(folder), why, repair)


def _no_batch(folder: Path, defect: LogDefect) -> StartEffect | None:
    """Of what stands behind the last batch of a log that was stopped cleanly: a batch that is cut short is passed
    over, and a size below that of the smallest batch ends the broker (tried on 4.3.1 with zeros).
    """
    path = folder / defect.file
    try:
        with SegmentFile(path) as file:
            header = file.read(defect.position, _TO_MAGIC)
    except SegmentError:
        return None
    if len(header) < _TO_MAGIC or int.from_bytes(header[8:12], "big", signed=True) >= _SMALLEST_BATCH:
        return None
    why = (
        f"behind its last batch, at byte {defect.position}, stands the size of no batch ({defect.text}), and"
        " after a clean stop the broker does not cut that off: it ends with CorruptRecordException"
    )
    repair = f"copy the folder, then cut the file at its last batch: truncate -s {defect.position} {path}"
    return StartEffect(ENDS, str(path), why, repair)


def begins_behind(folder: Path, log_start: int, log_end: int, size: int) -> StartEffect | None:
    """Of a log that ends below its log start: LogLoader deletes all of its segments."""
    if log_end >= log_start or not size:
        return None
    why = (
        f"the broker deletes all its segments, {size} bytes: they end at offset {log_end}, below the log start"
        f" {log_start} that log-start-offset-checkpoint has"
    )
    repair = "copy the folder before the start, and look whether the checkpoint is of this log"
    return StartEffect(CUT_OFF, str(folder), why, repair)


def bad_epochs(path: Path, error: NotReadByKafka) -> StartEffect:
    """What a leader-epoch-checkpoint does that Kafka cannot read."""
    effect = ENDS if error.not_numbers else DIR_OFFLINE
    return StartEffect(effect, str(path), "Kafka cannot read it", _MOVE_CHECKPOINT)


def dir_effects(
    path: Path,
    subdirectories: Iterable[str],
    properties: Mapping[str, str] | None,
    folders: Sequence[str],
    *,
    read: bool = True,
) -> Iterator[StartEffect]:
    """Of one log dir. ``properties``: its meta.properties, None: it has none; ``read``: the file could be read.
    ``folders`` are those of its ``subdirectories`` that are named like a partition's.
    """
    meta = str(path / "meta.properties")
    if properties is None:
        why = "it is not there: to Kafka the log dir was never formatted"
        yield StartEffect(ENDS, meta, why, "write it with the ids that the other log dirs have")
    elif read:
        yield from _properties_effects(meta, properties, holds_metadata=METADATA_LOG in {*folders})
    known = {*folders, REMOTE_INDEX_CACHE}
    for name in subdirectories:
        if name not in known:
            why = "it is no partition's folder, and Kafka stops at any other folder in a log dir"
            yield StartEffect(ENDS, str(path / name), why, f"move it out of {path}")


def not_formatted(path: Path) -> StartEffect:
    """Of a dir without meta.properties and without a log, such as the place of a disk that is not mounted: a broker
    that has it in log.dirs ends (KafkaRaftServer.initializeLogDirs).
    """
    why = "it was never formatted: a broker that has this path in log.dirs ends"
    repair = "mount the disk there, or take the path out of log.dirs; format it only if it is to begin empty"
    return StartEffect(ENDS, str(path), why, repair)


def not_listed(path: Path, why: str) -> StartEffect:
    """Of a dir that cannot be listed: to the broker, if it cannot list the dir either, the log dir is offline."""
    repair = "look whether the broker's user can list it, and whether the disk is mounted there"
    return StartEffect(DIR_OFFLINE, str(path), f"it {why}", repair)


def unread_properties(meta: str, why: str, *, holds_metadata: bool) -> StartEffect:
    """A meta.properties that Kafka cannot read takes the log dir offline, and ends the broker where the metadata
    log lies (MetaPropertiesEnsemble).
    """
    return StartEffect(
        ENDS if holds_metadata else DIR_OFFLINE,
        meta,
        why,
        "write it with the ids that the other log dirs have",
    )


def _properties_effects(
    meta: str, properties: Mapping[str, str], *, holds_metadata: bool
) -> Iterator[StartEffect]:
    """Of what meta.properties holds. One of version 0, which a file without ``version`` is, may be read without
    ids, and then ends the broker; one of version 1 cannot be read without them (MetaProperties.Builder).
    """
    unread = ENDS if holds_metadata else DIR_OFFLINE
    version, directory = properties.get("version", "0"), properties.get("directory.id", "")
    if version not in ("0", "1"):
        yield StartEffect(unread, meta, f"version {version} is not known to Kafka", "write version=1")
        return
    key = "node.id" if version == "1" else "broker.id"
    node = properties.get(key, "")
    missing = [name for name in ("cluster.id", key) if not properties.get(name)]
    if missing:
        mark = any(name.startswith("\ufeff") for name in properties)
        repair = "remove the byte order mark at its beginning" if mark else "add what the other log dirs have"
        why = f"it has no {' and no '.join(missing)}"
        yield StartEffect(ENDS if version == "0" else unread, meta, why, repair)
    if node and not _NUMBER.fullmatch(node):
        yield StartEffect(unread, meta, f"{key} {node!r} is no number", "write the broker's node id")
    own = _uuid(directory) if directory else None
    repair = "write the directory.id that the controllers have for this log dir"
    if directory and own is None:
        yield StartEffect(unread, meta, f"directory.id {directory!r} is no id", repair)
    elif own is not None and not any(own[:15]) and own[15] < _RESERVED:
        yield StartEffect(ENDS, meta, f"directory.id {directory} is reserved", repair)


def missing_folders(
    path: Path, checkpointed: Mapping[tuple[str, int], int], there: Collection[tuple[str, int]]
) -> Iterator[StartEffect]:
    """Of partitions that have a high watermark in the log dir's checkpoint, and no folder in it."""
    for (topic, partition), mark in sorted(checkpointed.items()):
        if mark > 0 and (topic, partition) not in there:
            why = (
                f"its folder is not there, and the checkpoint has its high watermark {mark}: the broker begins an"
                " empty log, unless the partition was deleted or moved to another log dir"
            )
            repair = "bring the folder back, or look whether the partition is still assigned to this broker"
            yield StartEffect(BEGINS_EMPTY, str(path / f"{topic}-{partition}"), why, repair)


def without_moved(dirs: Sequence[ScannedDir]) -> tuple[ScannedDir, ...]:
    """The dirs without the partitions that were missed in one of them and lie in another one of the same node."""
    live: dict[int, set[str]] = {}
    for found in dirs:
        live.setdefault(found.node_id, set()).update(log.folder for log in found.logs if log.kind == LIVE)
    return tuple(
        found._replace(
            at_start=tuple(
                effect
                for effect in found.at_start
                if effect.effect != BEGINS_EMPTY or Path(effect.where).name not in live[found.node_id]
            )
        )
        for found in dirs
    )


def effects_together(dirs: Sequence[ScannedDir]) -> tuple[StartEffect, ...]:
    """Of the log dirs that one broker is given together: those of one node id."""
    by_node: dict[int, list[ScannedDir]] = {}
    for found in dirs:
        if found.problem is None and found.node_id >= 0:
            by_node.setdefault(found.node_id, []).append(found)
    return tuple(effect for mine in by_node.values() for effect in _of_one_node(mine))


def _of_one_node(dirs: Sequence[ScannedDir]) -> Iterator[StartEffect]:
    clusters = sorted({found.cluster_id for found in dirs if found.cluster_id})
    if len(clusters) > 1:
        why = f"they are of {len(clusters)} clusters ({', '.join(clusters)}), and a broker takes log dirs of one"
        repair = "give each cluster's broker its own log dirs, and scan them apart"
        yield StartEffect(ENDS, ", ".join(found.path for found in dirs), why, repair)
        return
    by_id: dict[str, list[str]] = {}
    for found in dirs:
        if found.directory_id:
            by_id.setdefault(found.directory_id, []).append(found.path)
    for directory, paths in by_id.items():
        if len(paths) > 1:
            why = f"they have the same directory id {directory}, as the copy of a disk does"
            yield StartEffect(ENDS, ", ".join(paths), why, "give the broker only one of them")
    for places in _several(dirs, LIVE):
        yield _two_metadata_logs(places) if places[0][1].topic == METADATA_TOPIC else _twice(places)
    yield from _lone_strays(dirs)
    for places in _several(dirs, FUTURE):
        copies = ", ".join(f"{path}/{log.folder}" for path, log in places)
        of = f"{places[0][1].topic}-{places[0][1].partition}"
        why = f"{len(places)} folders are copies of {of} for a move between log dirs"
        yield StartEffect(ENDS, copies, why, "move all but one out of the log dirs")


def _lone_strays(dirs: Sequence[ScannedDir]) -> Iterator[StartEffect]:
    """Of strays without a log of the same partition beside them (LogManager.getOrCreateLog makes one)."""
    beside = {(log.topic, log.partition) for one in dirs for log in one.logs if log.kind in (LIVE, FUTURE)}
    for one in dirs:
        for log in one.logs:
            if log.kind != STRAY or not log.size or (log.topic, log.partition) in beside:
                continue
            name = f"{log.topic}-{log.partition}"
            why = (
                f"it was set aside, and the broker has no other log of {name}: if the partition is still assigned"
                " to it, it begins an empty one, and may lead it"
            )
            repair = (
                f"if it is still assigned, rename the folder to {name}; it needs a partition.metadata with the"
                " topic's id. If it is not, nothing is to be done: Kafka leaves the folder alone"
            )
            yield StartEffect(BEGINS_EMPTY, str(Path(one.path, log.folder)), why, repair)


def same_batches_to(first: Path, second: Path) -> tuple[int | None, int]:
    """Two logs compared by their batches (offset, leader epoch, checksum): from which offset on they differ, None:
    nowhere as far as both have the offsets; and how many batches both have. Raises SegmentError.
    """
    ones, others, compared = _batches(first, torn=True), _batches(second, torn=True), 0
    one, other = next(ones, None), next(others, None)
    while one is not None and other is not None:
        if one[0] == other[0]:
            if one[1] != other[1]:
                return one[0], compared
            compared += 1
            one, other = next(ones, None), next(others, None)
        elif one[0] < other[0]:
            one = next(ones, None)
        else:
            other = next(others, None)
    return None, compared


def _several(dirs: Sequence[ScannedDir], kind: str) -> list[list[tuple[str, ScannedLog]]]:
    """The partitions of which there are several folders of that kind, each folder with its log dir."""
    found: dict[tuple[str, int], list[tuple[str, ScannedLog]]] = {}
    for one in dirs:
        for log in one.logs:
            if log.kind == kind:
                found.setdefault((log.topic, log.partition), []).append((one.path, log))
    return [places for places in found.values() if len(places) > 1]


def _compared(first: Path, second: Path) -> str:
    """Two logs that end alike, by what their batches hold (offset and checksum)."""
    try:
        ones, others = _batches(first), _batches(second)
        for one, other in zip_longest(ones, others):
            if one != other:
                offset = min(batch[0] for batch in (one, other) if batch is not None)
                return f"both logs end alike, and differ from offset {offset} on, by the batches' checksums"
    except SegmentError as error:
        return f"both logs end alike; whether they hold the same is not known ({error})"
    return "both logs hold the same batches, by offsets and checksums"


def _batches(folder: Path, *, torn: bool = False) -> Iterator[tuple[int, tuple[int, int]]]:
    """First offset of each batch, with its leader epoch, which the checksum does not cover, and the checksum.
    ``torn``: a damaged place is the end. Raises SegmentError.
    """
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix == ".log" and path.stem.isdigit())
    except OSError as error:
        raise SegmentError(f"{folder}: cannot be listed: {reason_of(error)}") from None
    for path in names:
        with SegmentFile(path) as source:
            reader = SegmentReader(source, check_from=None)
            for batch in reader:
                header = batch.header
                yield header.base_offset, (header.leader_epoch, header.crc)
            if reader.defect is not None and torn:
                return
            if reader.defect is not None:
                raise SegmentError(f"{path}: {reader.defect.text}")


def _two_metadata_logs(places: Sequence[tuple[str, ScannedLog]]) -> StartEffect:
    where = ", ".join(f"{path}/{log.folder}" for path, log in places)
    why = f"the metadata log stands in {len(places)} log dirs, and Kafka takes that of metadata.log.dir alone"
    repair = "move it out of each log dir but metadata.log.dir (the first of log.dirs, where that is not set)"
    return StartEffect(ENDS, where, why, repair)


def _twice(places: Sequence[tuple[str, ScannedLog]]) -> StartEffect:
    def rank(place: tuple[str, ScannedLog]) -> tuple[int, int]:
        return place[1].last_epoch, place[1].log_end

    ranked = sorted(places, key=rank, reverse=True)
    best, second = ranked[0], ranked[1]
    if rank(best) == rank(second):
        better = _compared(*(Path(path) / log.folder for path, log in (best, second)))
    else:
        ends = [f"last epoch {epoch}, log end {end}" for epoch, end in map(rank, (best, second))]
        better = f"the better log is in {best[0]} ({ends[0]}; the other: {ends[1]})"
    log = best[1]
    why = f"{log.topic}-{log.partition} stands in {len(places)} log dirs; {better}"
    return StartEffect(
        ENDS,
        ", ".join(f"{path}/{other.folder}" for path, other in ranked),
        why,
        "move all but one out of the log dirs, and keep what you moved. Which log dir the cluster has for the"
        " replica: the controllers' metadata log (directories of the partition)",
    )
