"""Log dirs: whose they are, and every partition in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from backends.disk_scan.broker_start import (
    BAD_CHECKPOINTS,
    METADATA_LOG,
    METADATA_TOPIC,
    dir_effects,
    effects_together,
    missing_folders,
    not_formatted,
    not_listed,
    same_batches_to,
    unread_properties,
    without_moved,
)
from backends.disk_scan.checkpoint_files import (
    CheckpointError,
    NotReadByKafka,
    read_offsets,
    read_properties,
)
from backends.disk_scan.partition_scan import (
    LogCheckpoints,
    PartitionFolder,
    has_segment,
    partition_folder,
    scan_partition,
)
from backends.disk_scan.scan_values import (
    DIR_OFFLINE,
    FUTURE,
    LIVE,
    DiskScan,
    ScanDepth,
    ScannedDir,
    ScannedLog,
    StartEffect,
)
from backends.log_segments.segment_source import SegmentError, reason_of

META = "meta.properties"
_DEFAULT_DEPTH = ScanDepth()
_SEVERAL = 2


def scan_log_dirs(
    paths: Sequence[str],
    host: str,
    now_ms: int,
    depth: ScanDepth = _DEFAULT_DEPTH,
    progress: Callable[[int, int], None] | None = None,
) -> DiskScan:
    """Every dir, in the order given; what cannot be read is in the values. Opens files for reading only."""
    dirs = without_moved(tuple(_scan_dir(Path(path).absolute(), depth, progress) for path in paths))
    return DiskScan(host, now_ms, depth.checksums, dirs, effects_together(dirs), _metadata_batches(dirs))


def _metadata_batches(dirs: Sequence[ScannedDir]) -> Mapping[str, tuple[int | None, int] | str]:
    """The metadata logs of several nodes, each compared with the one that the report calls the longest."""
    logs = [
        (log.last_epoch, log.log_end, -found.node_id, found.path, log.folder)
        for found in dirs
        for log in found.logs
        if (log.topic, log.partition, log.kind) == (METADATA_TOPIC, 0, LIVE)
    ]
    if len({node for _, _, node, _, _ in logs}) < _SEVERAL:
        return {}
    _, _, _, longest, folder = max(logs)
    compared: dict[str, tuple[int | None, int] | str] = {}
    for _, _, _, path, other in logs:
        if path == longest:
            continue
        try:
            compared[path] = same_batches_to(Path(longest, folder), Path(path, other))
        except SegmentError as error:
            compared[path] = str(error)
    return compared


def _scan_dir(path: Path, depth: ScanDepth, progress: Callable[[int, int], None] | None) -> ScannedDir:
    try:
        entries = sorted(path.iterdir())
        names = [entry.name for entry in entries]
        subdirectories = [entry.name for entry in entries if entry.is_dir()]
        folders = [found for found in map(partition_folder, names) if found is not None]
        folders = [found for found in folders if (path / found.name).is_dir()]
        # Many a folder that is no log dir holds names such as "dbus-1".
        is_log_dir = META in names or any(has_segment(path / found.name) for found in folders)
        inside = [] if is_log_dir else [name for name in names if (path / name / META).exists()]
    except (OSError, ValueError) as error:
        why = f"cannot be listed: {reason_of(error)}"
        absent = isinstance(error, FileNotFoundError)
        return _bad_dir(path, why, not_formatted(path) if absent else not_listed(path, why))
    if not is_log_dir:
        below = ", ".join(str(path / name) for name in inside)
        hint = (
            f"; {'a log dir lies' if len(inside) == 1 else 'log dirs lie'} below it: {below}"
            if inside
            else ""
        )
        why = f"is no log dir: it has no {META} and no partition with a segment{hint}"
        return _bad_dir(path, why, not_formatted(path))
    remarks: list[str] = []
    names_of_folders = [folder.name for folder in folders]
    problems: list[StartEffect] = []
    properties = _properties(path, remarks, problems, holds_metadata=METADATA_LOG in names_of_folders)
    at_start = [
        *problems,
        *dir_effects(path, subdirectories, properties, names_of_folders, read=not problems),
    ]
    checkpoints = _Checkpoints(path, remarks, at_start)
    # A -delete folder tells that the replica was deleted, and a stray is named itself.
    there = {(folder.topic, folder.partition) for folder in folders if folder.kind != FUTURE}
    at_start += missing_folders(path, checkpoints.high_watermarks, there)
    properties = properties or {}
    clean = ".kafka_cleanshutdown" in names
    logs: list[ScannedLog] = []
    for folder in folders:
        logs.append(scan_partition(path, folder, checkpoints.of(folder), depth, clean=clean))
        if progress is not None:
            progress(len(logs), len(folders))
    if "remote-log-index-cache" in names:
        remarks.append("the broker has tiered storage: the oldest records may not be on this disk")
    node = properties.get("node.id", properties.get("broker.id", ""))
    return ScannedDir(
        path=str(path),
        problem=None,
        cluster_id=properties.get("cluster.id", ""),
        node_id=int(node) if node.isascii() and node.isdigit() and len(node) < 11 else -1,
        directory_id=properties.get("directory.id", ""),
        clean_shutdown=clean,
        remarks=tuple(remarks),
        logs=tuple(logs),
        at_start=tuple(at_start),
        never_started=_never_started(path, names, folders),
    )


def _never_started(path: Path, names: Sequence[str], folders: Sequence[PartitionFolder]) -> bool:
    """Whether it is as ``kafka-storage format`` leaves it: a broker makes its checkpoints when it starts, and a
    controller a segment.
    """
    if META not in names or any(folder.topic != METADATA_TOPIC for folder in folders):
        return False
    return not any(name in names for name in BAD_CHECKPOINTS) and not any(
        has_segment(path / folder.name) for folder in folders
    )


def _properties(
    path: Path, remarks: list[str], problems: list[StartEffect], *, holds_metadata: bool
) -> dict[str, str] | None:
    """None: there is no file. ``problems`` gets what the broker does with one that cannot be read."""
    try:
        found = read_properties(path / META)
    except CheckpointError as error:
        remarks.append(str(error))
        problems.append(unread_properties(str(path / META), str(error), holds_metadata=holds_metadata))
        return {}
    if found is None:
        remarks.append(f"it has no {META}: which broker it belongs to is not known")
    elif not found.get("directory.id"):
        remarks.append(
            "meta.properties has no directory.id: the broker writes a new one at its start, and tells the"
            " controllers that each replica is on it"
        )
    return found


class _Checkpoints:
    def __init__(self, path: Path, remarks: list[str], at_start: list[StartEffect]) -> None:
        self._log_start = _offsets(path, "log-start-offset-checkpoint", remarks, at_start)
        self._recovery_point = _offsets(path, "recovery-point-offset-checkpoint", remarks, at_start)
        self.high_watermarks = _offsets(path, "replication-offset-checkpoint", remarks, at_start)

    def of(self, folder: PartitionFolder) -> LogCheckpoints:
        """Those of the replica itself; folders that are being moved or deleted have none."""
        if folder.kind != LIVE:
            return LogCheckpoints(-1, -1, -1)
        key = (folder.topic, folder.partition)
        return LogCheckpoints(
            self._log_start.get(key, -1),
            self._recovery_point.get(key, -1),
            self.high_watermarks.get(key, -1),
        )


def _offsets(
    path: Path, name: str, remarks: list[str], at_start: list[StartEffect]
) -> dict[tuple[str, int], int]:
    try:
        return read_offsets(path / name)
    except NotReadByKafka as error:
        why, repair = "Kafka cannot read it", BAD_CHECKPOINTS[name]
        at_start.append(StartEffect(DIR_OFFLINE, str(path / name), why, repair))
        remarks.append(str(error))
    except CheckpointError as error:
        remarks.append(str(error))
    return {}


def _bad_dir(path: Path, problem: str, effect: StartEffect) -> ScannedDir:
    return ScannedDir(str(path), problem, "", -1, "", False, (), (), at_start=(effect,))
