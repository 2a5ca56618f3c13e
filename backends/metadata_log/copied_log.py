"""A copy of a cluster's metadata log, for when the active controller cannot be reached."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.checkpoint_files import CheckpointError, read_properties
from backends.metadata_log.directory import DIRECTORY, DirectoryReading, MetadataDirError, read_directory
from recovery.metadata_log.history import MetadataHistory, fold


class CopiedMetadataLog(NamedTuple):
    """``cluster_id`` of the meta.properties beside the directory, "" where there is none. ``end_ms``: the time of
    its newest change, ``read_ms`` when it was read (ms since the epoch). ``problem``: why the reading ended before
    the end of the files, or None. ``start_offset``: where the log continues after a snapshot; 0: it is complete.
    """

    path: Path
    cluster_id: str
    history: MetadataHistory
    end_ms: int
    read_ms: int
    problem: str | None
    start_offset: int = 0


def read_copy(path: Path, now_ms: int) -> CopiedMetadataLog:
    """Reads a directory ``__cluster_metadata-0``, or a log dir that holds one. Raises MetadataDirError."""
    inside = path / DIRECTORY
    reading = DirectoryReading(inside if inside.is_dir() else path)
    folded = fold(read_directory(reading))
    folded.rebuilt, folded.quorum_epoch = reading.rebuilt.found, reading.rebuilt.epoch
    history = folded.evidence
    end_ms = history.end_ms
    if end_ms is None:
        raise MetadataDirError(f"{reading.path}: holds no change of any cluster")
    try:
        properties = read_properties(reading.path.parent / "meta.properties") or {}
    except CheckpointError:
        properties = {}
    found = properties.get("cluster.id", "")
    start = reading.start_offset
    problem = reading.problem if history.ends is None else str(history.ends)
    return CopiedMetadataLog(reading.path, found, history, end_ms, now_ms, problem, start)


def other_cluster(copy: CopiedMetadataLog, cluster_id: str, topics: Iterable[tuple[str, str]]) -> str | None:
    """Why the copy is of another cluster, by its cluster id, or because it knows ``topics`` (name, id) by other ids
    only; None: it is not known to be. One topic may have been made again since.
    """
    if copy.cluster_id and copy.cluster_id != cluster_id:
        return f"{copy.path}: is the metadata log of cluster {copy.cluster_id}; this one is {cluster_id}"
    named = [(name, topic_id, known) for name, topic_id in topics if (known := copy.history.topic_ids(name))]
    if not named or any(topic_id in known for _, topic_id, known in named):
        return None
    name, topic_id, known = named[0]
    return (
        f"{copy.path}: is the metadata log of another cluster than {cluster_id}: there topic {name} has the id"
        f" {known[-1]}, here {topic_id}"
    )
