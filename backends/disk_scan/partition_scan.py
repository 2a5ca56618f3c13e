"""One partition's folder of a log dir, with the epoch spans of its log: from its batches and its
leader-epoch-checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.broker_start import (
    METADATA_TOPIC,
    bad_epochs,
    begins_behind,
    cut_off,
    deleted_folder,
    deleted_segments,
    file_effects,
    partition_metadata,
    quorum_state_effect,
    transaction_index_effect,
)
from backends.disk_scan.checkpoint_files import CheckpointError, NotReadByKafka, read_epochs
from backends.disk_scan.scan_values import (
    DELETED,
    DIR_OFFLINE,
    ENDS,
    FUTURE,
    LIVE,
    STRAY,
    LogDefect,
    ScanDepth,
    ScannedLog,
    StartEffect,
)
from backends.disk_scan.segment_walk import SegmentName, SegmentWalk
from backends.log_segments.segment_reader import DefectKind
from backends.log_segments.segment_source import SegmentError, reason_of


def epoch_spans(
    extents: Sequence[tuple[int, int, int]],
    epochs: Sequence[tuple[int, int]] | None,
    start: int,
    end: int,
) -> tuple[tuple[tuple[int, int, int], ...], str | None]:
    """Spans (epoch, first offset, offset after the last) from ``start`` to ``end`` without gaps, and what is wrong
    with the checkpoint ``epochs`` (epoch, first offset), None where nothing is.

    The batches (``extents``) decide which epoch has which offsets. Where compaction has left a hole between two
    epochs, only the checkpoint knows where the newer one began; the broker answers by it.
    """
    clipped = [(epoch, max(first, start), beyond) for epoch, first, beyond in extents if beyond > start]
    if not clipped:
        return (), None
    if epochs is None:
        return _without_holes(
            clipped, start, end
        ), "it has no leader-epoch-checkpoint: its batches tell the epochs"
    reported = _checkpoint_spans(epochs, start, end)
    if all(_holds(reported, extent) for extent in clipped):
        # A replica that copied a compacted log from its first batch on knows no epoch below it.
        (epoch, _, beyond), *later = reported
        return ((epoch, start, beyond), *later), None
    return _without_holes(
        clipped, start, end
    ), "its leader-epoch-checkpoint differs from the epochs of its batches"


def _checkpoint_spans(epochs: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int, int]]:
    """The checkpoint's spans; an epoch whose leader wrote nothing has none."""
    spans = []
    for number, (epoch, first) in enumerate(epochs):
        beyond = epochs[number + 1][1] if number + 1 < len(epochs) else end
        if max(first, start) < min(beyond, end):
            spans.append((epoch, max(first, start), min(beyond, end)))
    return spans


def _holds(spans: Sequence[tuple[int, int, int]], extent: tuple[int, int, int]) -> bool:
    epoch, first, beyond = extent
    return any(span[0] == epoch and span[1] <= first and beyond <= span[2] for span in spans)


def _without_holes(
    extents: Sequence[tuple[int, int, int]], start: int, end: int
) -> tuple[tuple[int, int, int], ...]:
    """Each epoch reaches up to the next one's first batch, as in a broker that has read its batches anew."""
    firsts = [start, *(first for _, first, _ in extents[1:]), end]
    return tuple((extent[0], firsts[at], firsts[at + 1]) for at, extent in enumerate(extents))


_SEGMENT = re.compile(r"(\d{20})\.log")
_LOG = re.compile(r"(.+)-([0-9]{1,9})", re.DOTALL)
_MARKED = re.compile(r"(\S+)-([0-9]{1,9})\.[^\s.]+-(delete|future|stray)")
_KINDS = {"delete": DELETED, "future": FUTURE, "stray": STRAY}
_MARKS = tuple(f"-{mark}" for mark in _KINDS)
_NO_SEGMENT = "it has no segment: what it held is not known"
_MOST_TRIES = 3
"""How often a folder is read whose segments a running broker deletes meanwhile."""


class PartitionFolder(NamedTuple):
    """A folder of a log dir that is named like a partition. Kafka cuts a long topic's name where it adds a mark."""

    name: str
    topic: str
    partition: int
    kind: str


class LogCheckpoints(NamedTuple):
    """The offsets that the checkpoints of the log dir have for one partition, -1 for none."""

    log_start: int
    recovery_point: int
    high_watermark: int


def partition_folder(name: str) -> PartitionFolder | None:
    """What a folder of that name is; None for one that is no partition's (UnifiedLog.parseTopicPartitionName)."""
    marked = _MARKED.fullmatch(name)
    if marked:
        return PartitionFolder(name, marked[1], int(marked[2]), _KINDS[marked[3]])
    plain = None if name.endswith(_MARKS) else _LOG.fullmatch(name)
    return PartitionFolder(name, plain[1], int(plain[2]), LIVE) if plain else None


def has_segment(folder: Path) -> bool:
    """Whether a segment lies in it; False too where it cannot be listed."""
    try:
        return any(_SEGMENT.fullmatch(entry.name) for entry in folder.iterdir())
    except OSError:
        return False


def scan_partition(
    log_dir: Path,
    folder: PartitionFolder,
    checkpoints: LogCheckpoints,
    depth: ScanDepth,
    *,
    clean: bool = False,
) -> ScannedLog:
    """Reads it; whatever is wrong with it is in the value. ``clean``: the broker stopped cleanly."""
    log = _scan_partition(log_dir, folder, checkpoints, depth, clean=clean)
    if folder.kind != DELETED:
        return log
    effect = deleted_folder(log_dir / folder.name, log)
    return log if effect is None else log._replace(at_start=(*log.at_start, effect))


def _scan_partition(
    log_dir: Path, folder: PartitionFolder, checkpoints: LogCheckpoints, depth: ScanDepth, *, clean: bool
) -> ScannedLog:
    for _ in range(_MOST_TRIES - 1):
        try:
            return _FolderScan(log_dir, folder, checkpoints, depth).scan(clean=clean)
        except SegmentError:
            continue  # a running broker has deleted a segment since its folder was listed
    try:
        return _FolderScan(log_dir, folder, checkpoints, depth).scan(clean=clean)
    except SegmentError as error:
        return _unreadable(folder, checkpoints, str(error))


class _FolderScan:
    def __init__(
        self, log_dir: Path, folder: PartitionFolder, checkpoints: LogCheckpoints, depth: ScanDepth
    ) -> None:
        self._path = log_dir / folder.name
        self._folder = folder
        self._checkpoints = checkpoints
        flushed_to = max(checkpoints.recovery_point, 0)
        check_from = {"unflushed": flushed_to, "all": 0}.get(depth.checksums)
        reads_all = depth.every_batch or depth.checksums == "all"
        self._walk = SegmentWalk(self._path, check_from, 0 if reads_all else flushed_to)
        self._remarks: list[str] = []
        self._segments: list[SegmentName] = []
        self._at_start: list[StartEffect] = []

    def scan(self, *, clean: bool) -> ScannedLog:
        self._list()
        first = self._segments[0].base_offset if self._segments else 0
        start = max(self._checkpoints.log_start, first)
        self._walk.walk(self._from(start))
        tally = self._walk.tally
        end = max(tally.log_end, start)
        epochs = self._epochs()
        spans, differs = epoch_spans(tally.extents, epochs, max(start, tally.old.end), end)
        if differs is not None:
            self._remarks.append(differs)
        if self._walk.mismatches:
            self._remarks.append(
                f"indexes that contradict their segments: {self._walk.mismatches}; every batch of these was read"
            )
        if tally.old.messages:
            self._remarks.append(
                f"{tally.old.messages:,} messages of formats 0 and 1, before offset {tally.old.end}, were not read:"
                " a broker serves them"
            )
        newest = epochs[-1][0] if epochs else -1
        if self._folder.kind != DELETED:
            self._losses_at_start(start, clean=clean)
        return ScannedLog(
            folder=self._folder.name,
            kind=self._folder.kind,
            topic=self._folder.topic,
            partition=self._folder.partition,
            topic_id=self._topic_id(),
            log_start=start,
            log_end=end,
            high_watermark=self._checkpoints.high_watermark,
            recovery_point=self._checkpoints.recovery_point,
            last_epoch=spans[-1][0] if spans else newest if end else -1,
            leader_epoch=max(newest, spans[-1][0] if spans else -1),
            spans=spans,
            last_timestamp=tally.last_timestamp,
            records=None if tally.skipped or tally.old.messages else tally.records,
            size=sum(segment.size for segment in self._segments),
            skipped=tally.skipped,
            segments=len(self._segments),
            may_be_tiered=0 <= self._checkpoints.log_start < first,
            defect=self._walk.defect,
            lost_tail=self._lost_tail(start, epochs, clean=clean)
            or (None if self._segments else _NO_SEGMENT),
            remarks=tuple(self._remarks),
            at_start=tuple(self._at_start),
            old_messages=tally.old.messages,
            old_size=tally.old.size,
            old_end=tally.old.end,
        )

    def _list(self) -> None:
        swapped, deleted, deleted_size = 0, [], 0
        indexed = set()
        try:
            for entry in self._path.iterdir():
                name = _SEGMENT.fullmatch(entry.name)
                if name:
                    self._segments.append(SegmentName(int(name[1]), entry.name, entry.stat().st_size))
                elif entry.name.endswith(".log.deleted"):
                    deleted.append(entry.name)
                    deleted_size += entry.stat().st_size
                elif entry.name.endswith(".txnindex"):
                    indexed.add(entry.name[: -len(".txnindex")])
                swapped += entry.name.endswith(".log.swap")
                self._at_start += file_effects(self._path, [entry.name])
        except OSError as error:
            raise SegmentError(f"{self._path}: cannot be listed: {reason_of(error)}") from None
        self._segments.sort()
        self._at_start += deleted_segments(self._path, deleted, deleted_size)
        for segment in self._segments:
            stem = segment.name[: -len(".log")]
            effect = transaction_index_effect(self._path / f"{stem}.txnindex") if stem in indexed else None
            self._at_start += filter(None, [effect])
        if swapped:
            self._remarks.append(
                f"{swapped} .log.swap files: the broker will finish a compaction when it starts"
            )

    def _from(self, start: int) -> list[SegmentName]:
        """The segments that reach beyond the log start: the broker deletes the others."""
        segments = self._segments
        return [
            segment
            for number, segment in enumerate(segments)
            if number + 1 == len(segments) or segments[number + 1].base_offset > start
        ]

    def _topic_id(self) -> str:
        """Kafka reads the file of every folder, but only a replica without one, and the copy of one for a move, is
        no replica any more.
        """
        kind = self._folder.kind
        topic_id, effect = partition_metadata(self._path, future=kind == FUTURE)
        if self._folder.topic == METADATA_TOPIC:
            self._at_start += filter(None, [quorum_state_effect(self._path)])
        elif effect is not None and (kind in (LIVE, FUTURE) or effect.effect in (ENDS, DIR_OFFLINE)):
            self._at_start.append(effect)
        return topic_id

    def _epochs(self) -> list[tuple[int, int]] | None:
        path = self._path / "leader-epoch-checkpoint"
        try:
            return read_epochs(path)
        except NotReadByKafka as error:
            self._at_start.append(bad_epochs(path, error))
            self._remarks.append(str(error))
        except CheckpointError as error:
            self._remarks.append(str(error))
        return None

    def _losses_at_start(self, start: int, *, clean: bool) -> None:
        """What the broker deletes of the log itself."""
        defect, point = self._walk.defect, self._checkpoints.recovery_point
        later = [one.base_offset for one in self._segments if defect is not None and one.name > defect.file]
        size = sum(segment.size for segment in self._segments)
        self._at_start += filter(
            None,
            [
                cut_off(self._path, defect, min(later, default=None), point, clean=clean),
                begins_behind(self._path, start, self._walk.tally.log_end, size),
            ],
        )

    def _lost_tail(self, start: int, epochs: list[tuple[int, int]] | None, *, clean: bool) -> str | None:
        """Why records are known to be missing at the end; the most telling reason."""
        end = self._walk.tally.log_end
        if self._checkpoints.high_watermark > max(end, start):
            return f"it ends at {end}, below its high watermark {self._checkpoints.high_watermark}"
        if self._checkpoints.recovery_point > max(end, start):
            return f"it ends at {end}, and was flushed up to {self._checkpoints.recovery_point}"
        if epochs and epochs[-1][1] > max(end, start):
            return f"it ends at {end}, and leader epoch {epochs[-1][0]} began at {epochs[-1][1]}"
        # A clean stop has written every record to disk: zeros behind them are none that are missing.
        if self._walk.defect is not None and not (clean and self._walk.defect.kind == DefectKind.ZEROS.value):
            return self._walk.defect.text
        if end < start and self._segments:
            return f"it ends at {end}, below its log start {start}"
        return None


def _unreadable(folder: PartitionFolder, checkpoints: LogCheckpoints, text: str) -> ScannedLog:
    return ScannedLog(
        folder=folder.name,
        kind=folder.kind,
        topic=folder.topic,
        partition=folder.partition,
        topic_id="",
        log_start=-1,
        log_end=-1,
        high_watermark=checkpoints.high_watermark,
        recovery_point=checkpoints.recovery_point,
        last_epoch=-1,
        leader_epoch=-1,
        spans=(),
        last_timestamp=-1,
        records=0,
        size=0,
        skipped=0,
        segments=0,
        may_be_tiered=False,
        defect=LogDefect(DefectKind.UNREADABLE.value, folder.name, 0, -1, 0, text),
        lost_tail=text,
        remarks=(),
    )
