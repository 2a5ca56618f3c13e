"""What a broker does with its log dirs when it starts: Kafka's own checks, in one list.

Sources (read in 3.9): MetaPropertiesEnsemble.verify and KafkaRaftServer.initializeLogDirs for meta.properties;
LogManager.loadLogs for folders and checkpoints; PartitionMetadataReadBuffer, CheckpointFile.CheckpointReadBuffer
and LeaderEpochCheckpointFile for the files of a partition. An IOException takes the log dir offline, any other
exception ends the broker.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from backends.disk_scan.checkpoint_files import CheckpointError, NotReadByKafka, read_text
from backends.disk_scan.scan_values import (
    BEGINS_EMPTY,
    DIR_OFFLINE,
    ENDS,
    FUTURE,
    LIVE,
    RENAMED_TO_STRAY,
    ScannedDir,
    ScannedLog,
    StartEffect,
)
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentError, SegmentFile, reason_of

METADATA_TOPIC = "__cluster_metadata"
REMOTE_INDEX_CACHE = "remote-log-index-cache"
_METADATA_LOG = f"{METADATA_TOPIC}-0"
_RESERVED = 100
"""Of the ids of directories these are Kafka's own (DirectoryId.reserved)."""

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


def partition_metadata(folder: Path) -> tuple[str, StartEffect | None]:
    """The topic id in partition.metadata ("": none) and what the broker does with a folder whose file is not right.

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
        return "", StartEffect(RENAMED_TO_STRAY, str(folder), why, repair)
    lines = [line.split() for line in text.splitlines()[:2]]
    if len(lines) < 2:
        why = "it has 0 bytes" if not text else "it has one line only"
        return "", StartEffect(ENDS, str(path), f"{why}, which Kafka does not expect", repair)
    if any(len(words) != 2 for words in lines) or not lines[0][1].isdigit():
        return "", StartEffect(DIR_OFFLINE, str(path), "it has a line that Kafka cannot read", repair)
    effect = _bad_topic_id(lines[1][1], path, repair)
    return "" if effect is not None else lines[1][1], effect


def _bad_topic_id(text: str, path: Path, repair: str) -> StartEffect | None:
    topic_id = _uuid(text)
    if topic_id is None:
        return StartEffect(ENDS, str(path), f"{text!r} is no topic id", repair)
    return None if any(topic_id) else StartEffect(DIR_OFFLINE, str(path), "its topic id is all zeros", repair)


def _uuid(text: str) -> bytes | None:
    """The 16 bytes of an id as Kafka writes it (org.apache.kafka.common.Uuid); None: it is no id."""
    try:
        found = base64.b64decode(f"{text}==", altchars=b"-_", validate=True)
    except ValueError:
        return None
    return found if len(found) == 16 else None


def file_effects(folder: Path, names: Iterable[str]) -> Iterator[StartEffect]:
    """Of the files in a partition's folder: the broker takes the name of each segment and of each producer snapshot
    for an offset (LogLoader, ProducerStateManager.loadSnapshots).
    """
    for name in names:
        stem, _, kind = name.rpartition(".")
        if kind in ("log", "snapshot") and not (stem.isascii() and stem.isdigit()):
            repair = f"move it out of {folder}"
            yield StartEffect(ENDS, str(folder / name), "its name is no offset", repair)


def bad_epochs(path: Path, error: NotReadByKafka) -> StartEffect:
    """What a leader-epoch-checkpoint does that Kafka cannot read."""
    effect = ENDS if error.not_numbers else DIR_OFFLINE
    return StartEffect(effect, str(path), "Kafka cannot read it", _MOVE_CHECKPOINT)


def dir_effects(
    path: Path, subdirectories: Iterable[str], properties: Mapping[str, str] | None, folders: Sequence[str]
) -> Iterator[StartEffect]:
    """Of one log dir. ``properties``: its meta.properties, None: it has none. ``folders`` are those of its
    ``subdirectories`` that are named like a partition's.
    """
    meta = str(path / "meta.properties")
    if properties is None:
        why = "it is not there: to Kafka the log dir was never formatted"
        yield StartEffect(ENDS, meta, why, "write it with the ids that the other log dirs have")
    else:
        node = properties.get("node.id") or properties.get("broker.id")
        missing = [
            name
            for name, value in (("cluster.id", properties.get("cluster.id")), ("node.id", node))
            if not value
        ]
        if missing:
            why = f"it has no {' and no '.join(missing)}"
            mark = any(name.startswith("\ufeff") for name in properties)
            repair = (
                "remove the byte order mark at its beginning" if mark else "add what the other log dirs have"
            )
            yield StartEffect(ENDS, meta, why, repair)
        yield from _values_effects(meta, properties, node or "", holds_metadata=_METADATA_LOG in {*folders})
    known = {*folders, REMOTE_INDEX_CACHE}
    for name in subdirectories:
        if name not in known:
            why = "it is no partition's folder, and Kafka stops at any other folder in a log dir"
            yield StartEffect(ENDS, str(path / name), why, f"move it out of {path}")


def _values_effects(
    meta: str, properties: Mapping[str, str], node: str, *, holds_metadata: bool
) -> Iterator[StartEffect]:
    """Of the values in meta.properties. One that cannot be read takes the log dir offline, and ends the broker
    where the metadata log lies (MetaPropertiesEnsemble).
    """
    unread = ENDS if holds_metadata else DIR_OFFLINE
    version, directory = properties.get("version", ""), properties.get("directory.id", "")
    if version not in ("", "0", "1"):
        yield StartEffect(unread, meta, f"version {version} is not known to Kafka", "write version=1")
    if node and not (node.isascii() and node.isdigit()):
        yield StartEffect(unread, meta, f"node.id {node!r} is no number", "write the broker's node id")
    own = _uuid(directory) if directory else None
    repair = "write the directory.id that the controllers have for this log dir"
    if directory and own is None:
        yield StartEffect(unread, meta, f"directory.id {directory!r} is no id", repair)
    elif own is not None and not any(own[:15]) and own[15] < _RESERVED:
        yield StartEffect(ENDS, meta, f"directory.id {directory} is reserved", repair)


def missing_folders(
    path: Path, checkpointed: Mapping[tuple[str, int], int], live: Collection[tuple[str, int]]
) -> Iterator[StartEffect]:
    """Of partitions that have a high watermark in the log dir's checkpoint, and no folder in it."""
    for (topic, partition), mark in sorted(checkpointed.items()):
        if mark > 0 and (topic, partition) not in live:
            why = (
                f"its folder is not there, and the checkpoint has its high watermark {mark}: the broker begins an"
                " empty log, unless the partition was deleted or moved to another log dir"
            )
            repair = "bring the folder back, or look whether the partition is still assigned to this broker"
            yield StartEffect(BEGINS_EMPTY, str(path / f"{topic}-{partition}"), why, repair)


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
        yield _twice(places)
    for places in _several(dirs, FUTURE):
        copies = ", ".join(f"{path}/{log.folder}" for path, log in places)
        of = f"{places[0][1].topic}-{places[0][1].partition}"
        why = f"{len(places)} folders are copies of {of} for a move between log dirs"
        yield StartEffect(ENDS, copies, why, "move all but one out of the log dirs")


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


def _batches(folder: Path) -> Iterator[tuple[int, int]]:
    """First offset and checksum of each batch. Raises SegmentError."""
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix == ".log" and path.stem.isdigit())
    except OSError as error:
        raise SegmentError(f"{folder}: cannot be listed: {reason_of(error)}") from None
    for path in names:
        with SegmentFile(path) as source:
            reader = SegmentReader(source, check_from=None)
            yield from ((batch.header.base_offset, batch.header.crc) for batch in reader)
            if reader.defect is not None:
                raise SegmentError(f"{path}: {reader.defect.text}")


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
