"""What is left of a quorum: every surviving copy of the metadata log, compared by content, and what the best
one lacks of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from backends.disk_scan.broker_start import same_batches_to
from backends.log_segments.segment_source import SegmentError
from backends.metadata_log.directory import DirectoryReading, MetadataDirError, read_directory
from backends.metadata_log.quorum_copy import read_quorum_copy
from console.disk_evidence_files import read_disk_evidence
from console.errors import InputError
from recovery.disk_evidence import DiskReading
from recovery.membership.lost_quorum import (
    ComparedQuorumCopy,
    CopyRelation,
    QuorumCopy,
    best_first,
    committed_to,
    compared,
)
from recovery.metadata_log.access_records import access_change_text
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, MetadataLogRecord
from recovery.metadata_log.timeline import events
from recovery.metadata_log.timeline_text import event_text


class CopiedChange(NamedTuple):
    """A change that a copy holds: when, at which offset, in words."""

    time_ms: int
    offset: int
    text: str


class ScannedMetadataEnd(NamedTuple):
    """A copy of the metadata log as the output of ``disk scan`` or its script tells it: where it ends, and not what
    its batches hold. ``source`` is the file, ``host`` where it was made.
    """

    source: str
    host: str
    node: int
    cluster_id: str
    epoch: int
    end: int

    @property
    def position(self) -> tuple[int, int]:
        """By which Raft compares two logs."""
        return self.epoch, self.end


class LostQuorumEvidence(NamedTuple):
    """``copies``: each beside the ``chosen`` one, the best first. ``committed``: everything of the chosen one
    below this offset was committed for certain, for ``committed_why``; ``uncertain`` are its changes from there
    on. ``missing``: what the chosen one lacks of the others, by their path. ``unread``: a directory that could
    not be read, and why. ``scans``: copies of which only the end is known.
    """

    chosen: QuorumCopy
    copies: tuple[ComparedQuorumCopy, ...]
    committed: int
    committed_why: str
    uncertain: tuple[CopiedChange, ...]
    missing: dict[str, tuple[CopiedChange, ...]]
    unread: tuple[tuple[str, str], ...]
    scans: tuple[ScannedMetadataEnd, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every directory could be read and compared."""
        return not self.unread and all(
            found.relation is not CopyRelation.NOT_COMPARED for found in self.copies
        )


def gather_evidence(
    paths: Sequence[Path], chosen: Path | None = None, progress: Callable[[int, int], None] | None = None
) -> LostQuorumEvidence:
    """Reads the directories; ``chosen`` is compared with the others, None: the best of them. Raises InputError
    where none can be read.
    """
    copies: dict[str, QuorumCopy] = {}
    unread: list[tuple[str, str]] = []
    chosen_copy: QuorumCopy | None = None
    scans: list[ScannedMetadataEnd] = []
    for number, path in enumerate(dict.fromkeys((*(() if chosen is None else (chosen,)), *paths))):
        try:
            if path.is_file():
                scans += metadata_ends(read_disk_evidence([path]))
                continue
            copy = read_quorum_copy(path.absolute())
        except (MetadataDirError, InputError) as error:
            unread.append((str(path), str(error)))
        else:
            copies[copy.path] = copy
            if path == chosen:
                chosen_copy = copy
        if progress is not None:
            progress(number + 1, len(paths))
    if chosen is not None and chosen_copy is None:
        reason = "; ".join(why for path, why in unread if path == str(chosen))
        raise InputError(
            reason or f"{chosen}: is a scan, which does not have the log itself: give its directory"
        )
    ordered = best_first(copies.values())
    if not ordered:
        scanned = "only scans were given, which do not have the log itself: give a directory with it as well"
        raise InputError("; ".join(why for _, why in unread) or scanned)
    best = chosen_copy or ordered[0]
    found = tuple(compared(best, copy, _batches(best, copy)) for copy in ordered)
    committed, why = committed_to(best, found)
    return LostQuorumEvidence(
        best,
        found,
        committed,
        why,
        tuple(changes_from(best, committed)),
        {
            one.copy.path: tuple(changes_from(one.copy, one.lost_from))
            for one in found
            if one.lost_from is not None and one.copy.path != best.path
        },
        tuple(unread),
        tuple(scans),
    )


def metadata_ends(readings: Iterable[DiskReading]) -> Iterator[ScannedMetadataEnd]:
    """Those of the scans that found a metadata log."""
    for reading in readings:
        if reading.metadata_end is not None:
            yield ScannedMetadataEnd(
                reading.source,
                reading.host,
                reading.broker,
                reading.cluster_id,
                reading.metadata_epoch,
                reading.metadata_end,
            )


def history_of(copy: QuorumCopy, until: int | None = None) -> MetadataHistory:
    """What the copy says, up to before the offset ``until``. Raises MetadataDirError."""
    history = MetadataHistory()
    history.extend(
        record
        for record in read_directory(DirectoryReading(Path(copy.path)))
        if until is None or record.offset < until
    )
    return history


def online_directories(history: MetadataHistory, broker: int) -> tuple[str, ...]:
    """The ids of the broker's log dirs as the log told them last."""
    return ((), *history.online_dirs(broker))[-1]


def changes_from(copy: QuorumCopy, offset: int) -> Iterator[CopiedChange]:
    """The changes that the copy holds at ``offset`` and later, in the order of the log. Raises MetadataDirError."""
    if offset >= copy.end:
        return
    history = MetadataHistory()
    others: list[CopiedChange] = []

    def passing() -> Iterable[MetadataLogRecord]:
        for record in read_directory(DirectoryReading(Path(copy.path))):
            if record.offset >= offset and record.batch != IN_SNAPSHOT:
                try:
                    text = access_change_text(record.value)
                except MalformedRecordError as error:
                    text = f"a damaged record ({error})"
                if text is not None:
                    others.append(CopiedChange(record.time_ms, record.offset, text))
            yield record

    history.extend(passing())
    described = [
        CopiedChange(event.time_ms, event.offset, event_text(event, history))
        for event in events(history)
        if event.offset >= offset
    ]
    yield from sorted((*described, *others), key=lambda change: change.offset)


def _batches(chosen: QuorumCopy, copy: QuorumCopy) -> tuple[int | None, int] | str | None:
    if copy.path == chosen.path:
        return None
    try:
        return same_batches_to(Path(chosen.path), Path(copy.path))
    except SegmentError as error:
        return str(error)
