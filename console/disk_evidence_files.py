"""What ``ktriage disk scan`` reads, as evidence: its files, or disks that are scanned here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.broker_start import METADATA_TOPIC
from backends.disk_scan.scan_values import (
    BEGINS_EMPTY,
    LIVE,
    SCHEMA,
    STRAY,
    TO_REPAIR,
    DiskScan,
    ScannedDir,
    scan_lines,
)
from console.errors import InputError
from recovery.disk_evidence import DiskLog, DiskReading, DiskStartEffect, StrayLog
from recovery.model import NO_EPOCH, EpochSpan, Lineage, ReplicaLog, TopicPartition
from recovery.plan.json_fields import MAX_INT32, MAX_INT64, FieldError, Object, integer, integers, spans, text
from recovery.plan.json_rows import read_document
from recovery.plan.values import PlanError
from recovery.wording.quantity_text import counted, human_bytes, printable

_LARGEST = 1 << 30


class _DirRow(NamedTuple):
    path: str
    read: bool
    cluster_id: str
    node_id: int
    directory_id: str
    stopped_cleanly: bool = False


class _LogRow(NamedTuple):
    log_dir: str
    folder: str
    kind: str
    tp: TopicPartition
    disk: DiskLog


def read_disk_evidence(paths: Sequence[Path]) -> tuple[DiskReading, ...]:
    """The readings of those files, one broker each. Raises InputError with the file and what is wrong."""
    readings = [_read(path) for path in paths]
    for reading in readings:
        others = [one.source for one in readings if one.broker == reading.broker]
        if len(others) > 1:
            files = " and ".join(others)
            raise InputError(f"{files} are both of broker {reading.broker}: scan all its log dirs at once")
    return tuple(readings)


def readings_of_scan(scan: DiskScan) -> tuple[DiskReading, ...]:
    """The readings of log dirs, one for each broker. Raises InputError where a dir could not be read, or where it
    is not known whose it is.
    """
    by_broker: dict[tuple[str, int], list[ScannedDir]] = {}
    for one in scan.dirs:
        if one.problem is not None:
            raise InputError(f"{one.path}: {one.problem}")
        by_broker.setdefault((one.cluster_id, one.node_id), []).append(one)
    readings = []
    for dirs in by_broker.values():
        content = "\n".join(scan_lines(scan._replace(dirs=tuple(dirs))))
        readings.append(_parsed(Path(dirs[0].path), content))
    return tuple(readings)


def _read(path: Path) -> DiskReading:
    try:
        with path.open(encoding="utf-8") as file:
            content = file.read(_LARGEST)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise InputError(f"{path}: cannot be read: {reason}") from None
    return _parsed(path, content)


def _parsed(path: Path, content: str) -> DiskReading:
    try:
        members = read_document(
            content, {"logDirs": _dir_row, "partitions": _log_row, "atStart": _start_effect}
        )
    except PlanError as error:
        raise InputError(f"{path}: {error}") from None
    if members.get("schema") != SCHEMA:
        raise InputError(f"{path}: is no result of ktriage disk scan ({SCHEMA})")
    dirs, logs = members.get("logDirs"), members.get("partitions")
    if not isinstance(dirs, list) or not isinstance(logs, list):
        raise InputError(f"{path}: logDirs and partitions must be lists")
    try:
        return _reading(path, members, [one for one in dirs if one.read], logs)
    except FieldError as error:
        raise InputError(f"{path}: {error}") from None


def _reading(path: Path, members: Object, dirs: list[_DirRow], logs: list[_LogRow]) -> DiskReading:
    owners = {(one.cluster_id, one.node_id) for one in dirs}
    if len(owners) != 1:
        raise InputError(f"{path}: its log dirs are of {len(owners)} brokers; scan the dirs of one broker")
    ((cluster_id, node_id),) = owners
    if node_id < 0 or not cluster_id:
        raise InputError(
            f"{path}: which broker the disk belongs to is not known: meta.properties has no cluster and node id"
        )
    directories = {one.path: one.directory_id for one in dirs}
    clean = {one.path for one in dirs if one.stopped_cleanly}
    found: dict[TopicPartition, DiskLog] = {}
    strays: list[StrayLog] = []
    left_out: list[tuple[str, str]] = []
    for row in logs:
        disk = row.disk._replace(
            directory_id=directories.get(row.log_dir, ""), stopped_cleanly=row.log_dir in clean
        )
        folder = str(Path(row.log_dir, row.folder))
        if row.kind == STRAY:
            strays.append(StrayLog(row.tp, folder, disk))
        elif row.kind != LIVE:
            left_out.append((row.kind, folder))
        if row.kind != LIVE:
            continue
        if row.tp in found:
            disk = disk._replace(lost_tail="it stands in two log dirs")
        found[row.tp] = disk
    metadata = found.pop(TopicPartition(METADATA_TOPIC, 0), None)
    return DiskReading(
        str(path),
        node_id,
        cluster_id,
        text(members, "host"),
        integer(members, "readAtMs"),
        None if metadata is None else metadata.log.log_end_offset,
        found,
        tuple(strays),
        _start_effects(members),
        tuple(left_out),
        NO_EPOCH if metadata is None else last_epoch_of(metadata),
        tuple(one.directory_id for one in dirs if one.directory_id),
    )


def last_epoch_of(disk: DiskLog) -> int:
    """The epoch of the last record, which a scan always tells."""
    lineage = disk.log.lineage
    return lineage.last_epoch if isinstance(lineage, Lineage) else NO_EPOCH


def _start_effects(members: Object) -> tuple[DiskStartEffect, ...]:
    """None in a file of a scan that did not look for them."""
    effects = members.get("atStart", [])
    if not isinstance(effects, list):
        raise FieldError("atStart", "must be a list")
    return tuple(effects)


def _start_effect(fields: Object) -> DiskStartEffect:
    effect = text(fields, "effect")
    return DiskStartEffect(
        effect,
        text(fields, "where"),
        text(fields, "why"),
        text(fields, "repair"),
        to_repair=effect in TO_REPAIR,
        if_assigned=effect == BEGINS_EMPTY,
    )


def _dir_row(fields: Object) -> _DirRow:
    if fields.get("problem") is not None:
        return _DirRow(text(fields, "path"), False, "", -1, "")
    cluster_id, directory_id = text(fields, "clusterId"), text(fields, "directoryId")
    node_id = integer(fields, "nodeId", -1, MAX_INT32)
    clean = fields.get("cleanShutdown") is True
    return _DirRow(text(fields, "path"), True, cluster_id, node_id, directory_id, clean)


_OFFSETS = (
    ("partition", 0, MAX_INT32),
    ("logStartOffset", -1, MAX_INT64),
    ("logEndOffset", -1, MAX_INT64),
    ("highWatermark", -1, MAX_INT64),
    ("lastEpoch", NO_EPOCH, MAX_INT32),
    ("leaderEpoch", NO_EPOCH, MAX_INT32),
    ("size", -1, MAX_INT64),
)


def _log_row(fields: Object) -> _LogRow:
    partition, start, end, high_watermark, last_epoch, leader_epoch, size = integers(fields, _OFFSETS)
    log_spans = spans(fields, "spans") if fields.get("spans") else ()
    old_messages, old_end = (
        integer(fields, key, 0, MAX_INT64) if key in fields else 0 for key in ("oldMessages", "oldEndOffset")
    )
    known_from = max(start, old_end)
    if (
        start > end
        or not _whole(log_spans, known_from, end)
        or (log_spans and log_spans[-1].epoch != last_epoch)
    ):
        raise FieldError(".spans", "the epochs do not go from the log start to the log end")
    lineage = Lineage(last_epoch, log_spans, max(known_from, 0))
    log = ReplicaLog(leader_epoch, max(end, 0), start, high_watermark, lineage, text(fields, "logDir"), size)
    disk = DiskLog(
        text(fields, "topicId"), "", log, _lost_tail(fields), old_messages=old_messages, old_end=old_end
    )
    return _LogRow(
        text(fields, "logDir"),
        text(fields, "folder"),
        text(fields, "kind"),
        TopicPartition(text(fields, "topic"), partition),
        disk,
    )


def _lost_tail(fields: Object) -> str | None:
    """A scan of before did not count the bytes behind a damaged place."""
    if fields.get("lostTail") is None:
        return None
    lost, defect = text(fields, "lostTail"), fields.get("defect")
    if not isinstance(defect, dict) or not defect.get("bytesAfter"):
        return lost
    size, segments = (
        integer(defect, "bytesAfter", 0, MAX_INT64),
        integer(defect, "segmentsAfter", 0, MAX_INT64),
    )
    later = f" and {counted(segments, 'later segment')}" if segments else ""
    where = (
        f"{printable(text(defect, 'file'))} from byte {integer(defect, 'position', 0, MAX_INT64):,} on{later}"
    )
    return f"{lost}; {human_bytes(size)} behind that are not read ({where})"


def _whole(log_spans: tuple[EpochSpan, ...], start: int, end: int) -> bool:
    """Whether the spans ascend without gaps from ``start`` to ``end``; a log without records has none."""
    if not log_spans:
        return start == end
    borders = [start, *(span.end for span in log_spans)]
    epochs = [span.epoch for span in log_spans]
    return (
        [span.start for span in log_spans] == borders[:-1]
        and borders[-1] == end
        and all(one < other for one, other in pairwise(epochs))
    )
