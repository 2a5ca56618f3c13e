"""What a scan of log dirs found: frozen values, and their JSON document.

Schema ``ktriage.disk-scan/1``, documented in docs/output.md. Offsets and epochs are -1 where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

SCHEMA = "ktriage.disk-scan/1"

LIVE, FUTURE, DELETED, STRAY = "log", "future", "deleted", "stray"
"""What a partition's folder is: the replica itself; the copy that a move between dirs fills; a replica that the
broker is deleting; one that was not assigned to the broker any more."""
ENDS = "the broker ends"
DIR_OFFLINE = "the log dir goes offline"
RENAMED_TO_STRAY = "renamed to stray"
BEGINS_EMPTY = "an empty log begins"
CUT_OFF = "the log is cut off"
DELETES = "records are deleted"
START_EFFECTS = (ENDS, DIR_OFFLINE, CUT_OFF, RENAMED_TO_STRAY, BEGINS_EMPTY, DELETES)
"""What a broker does at its start that a person must know before, the worst first. After CUT_OFF and DELETES
it serves the replicas: they are no reason to repair the disk, but to copy what is lost.
"""
TO_REPAIR = (ENDS, DIR_OFFLINE, RENAMED_TO_STRAY, BEGINS_EMPTY)
CHECKSUMS = ("unflushed", "all", "none")
"""Which batches' checksums are checked: those that the broker had not flushed for certain (what Kafka itself checks
after an unclean stop), all, or none."""


class ScanDepth(NamedTuple):
    """``checksums``: which batches' checksums are checked (:data:`CHECKSUMS`); for all, every batch is read.
    ``every_batch``: so is it without; else flushed batches are skipped where the index of their segment vouches.
    """

    checksums: str = "unflushed"
    every_batch: bool = False


class LogDefect(NamedTuple):
    """Where the whole batches of a log end before its last byte. ``kind`` as in :class:`DefectKind`; ``offset`` is
    the first that cannot be read; ``segments_after`` are not read because they stand behind the defect, and
    ``bytes_after`` are all that is not read: of this segment and of those.
    """

    kind: str
    file: str
    position: int
    offset: int
    segments_after: int
    text: str
    bytes_after: int = 0


class StartEffect(NamedTuple):
    """What the broker does at its start with the file or folder ``where``: ``effect``, one of
    :data:`START_EFFECTS`, ``why``, and the ``repair`` before the start.
    """

    effect: str
    where: str
    why: str
    repair: str


class ScannedLog(NamedTuple):
    """One partition's folder. ``spans`` are (leader epoch, first offset, offset after the last), ascending, without
    gaps, from ``log_start`` to ``log_end``.

    ``leader_epoch`` is the newest epoch that the log has heard of (leader-epoch-checkpoint): it may hold no record.
    ``lost_tail`` is why records that once were in this log are known to be missing at its end, None where nothing
    shows that. ``skipped`` is the size in bytes of flushed batches that were not read, because the index of their
    segment tells their epochs; ``records`` is None then, and ``last_timestamp`` that of the batches that were read.
    ``remarks`` are other things that a person should know, one line each. ``at_start``: what the broker does with
    the folder at its start. ``old_messages`` of formats 0 and 1, ``old_size`` bytes up to offset ``old_end``, were
    not read: a broker serves them, and they have no leader epoch, so that ``spans`` begin behind them.
    """

    folder: str
    kind: str
    topic: str
    partition: int
    topic_id: str
    log_start: int
    log_end: int
    high_watermark: int
    recovery_point: int
    last_epoch: int
    leader_epoch: int
    spans: tuple[tuple[int, int, int], ...]
    last_timestamp: int
    records: int | None
    size: int
    skipped: int
    segments: int
    may_be_tiered: bool
    defect: LogDefect | None
    lost_tail: str | None
    remarks: tuple[str, ...]
    at_start: tuple[StartEffect, ...] = ()
    old_messages: int = 0
    old_size: int = 0
    old_end: int = 0


class ScannedDir(NamedTuple):
    """One log dir. ``problem``: why nothing of it could be read, None: it could. Ids are "" and ``node_id`` is -1
    where meta.properties does not tell. ``clean_shutdown``: the broker left its file for a clean stop.
    ``at_start``: what the broker does with it at its start. ``never_started``: it is as ``kafka-storage format``
    leaves it.
    """

    path: str
    problem: str | None
    cluster_id: str
    node_id: int
    directory_id: str
    clean_shutdown: bool
    remarks: tuple[str, ...]
    logs: tuple[ScannedLog, ...]
    at_start: tuple[StartEffect, ...] = ()
    never_started: bool = False


class DiskScan(NamedTuple):
    """All dirs of one scan. ``read_at_ms``: when it began, by the host's clock; ``checksums`` as it was asked.
    ``together``: what a broker does at its start with several of the dirs. ``metadata_batches``: of the metadata
    logs of several nodes, by the log dir: from which offset on its batches differ from those of the longest (None:
    nowhere as far as both have the offsets), and how many are the same; text: why they were not compared.
    """

    host: str
    read_at_ms: int
    checksums: str
    dirs: tuple[ScannedDir, ...]
    together: tuple[StartEffect, ...] = ()
    metadata_batches: Mapping[str, tuple[int | None, int] | str] = MappingProxyType({})

    @property
    def at_start(self) -> tuple[StartEffect, ...]:
        """What the broker does at its start, the worst first."""
        found = [*self.together]
        for one in self.dirs:
            found += one.at_start
            found += (effect for log in one.logs for effect in log.at_start)
        return tuple(sorted(found, key=lambda one: START_EFFECTS.index(one.effect)))


def scan_lines(scan: DiskScan) -> Iterator[str]:
    """The JSON document; each dir and each partition stands on a line."""
    yield '{"schema": ' + _json(SCHEMA)
    yield ',"host": ' + _json(scan.host)
    yield ',"readAtMs": ' + _json(scan.read_at_ms)
    yield ',"checksums": ' + _json(scan.checksums)
    yield from _list("logDirs", (_dir_fields(found) for found in scan.dirs))
    yield from _list(
        "partitions", (_log_fields(found.path, log) for found in scan.dirs for log in found.logs)
    )
    yield from _list("atStart", (one._asdict() for one in scan.at_start))
    yield "}"


def _list(key: str, items: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield "," + _json(key) + ": ["
    before = ""
    for item in items:
        yield "  " + before + _json(item)
        before = ","
    yield "]"


def _dir_fields(found: ScannedDir) -> dict[str, Any]:
    return {
        "path": found.path,
        "problem": found.problem,
        "clusterId": found.cluster_id,
        "nodeId": found.node_id,
        "directoryId": found.directory_id,
        "cleanShutdown": found.clean_shutdown,
        "neverStarted": found.never_started,
        "remarks": found.remarks,
    }


def _log_fields(path: str, log: ScannedLog) -> dict[str, Any]:
    defect = log.defect
    return {
        "logDir": path,
        "folder": log.folder,
        "kind": log.kind,
        "topic": log.topic,
        "partition": log.partition,
        "topicId": log.topic_id,
        "logStartOffset": log.log_start,
        "logEndOffset": log.log_end,
        "highWatermark": log.high_watermark,
        "recoveryPoint": log.recovery_point,
        "lastEpoch": log.last_epoch,
        "leaderEpoch": log.leader_epoch,
        "spans": log.spans,
        "lastTimestampMs": log.last_timestamp,
        "records": log.records,
        "size": log.size,
        "skippedBytes": log.skipped,
        "segments": log.segments,
        "mayBeTiered": log.may_be_tiered,
        "defect": None
        if defect is None
        else {
            "kind": defect.kind,
            "file": defect.file,
            "position": defect.position,
            "offset": defect.offset,
            "segmentsAfter": defect.segments_after,
            "bytesAfter": defect.bytes_after,
            "text": defect.text,
        },
        "lostTail": log.lost_tail,
        "remarks": log.remarks,
        "oldMessages": log.old_messages,
        "oldBytes": log.old_size,
        "oldEndOffset": log.old_end,
    }


def _json(value: object) -> str:
    # File names on a broker may be no UTF-8: pure ASCII can always be written.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
