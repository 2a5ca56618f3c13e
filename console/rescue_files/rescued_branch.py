"""Reading what a rescue directory holds: branches, batches, and how their transactions ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from backends.log_segments.batch_header import HEADER_SIZE, BatchHeader
from console.errors import InputError
from console.rescue_files.manifest import (
    INDEX,
    MANIFEST,
    BranchManifest,
    RescueIndex,
    SegmentEntry,
    branch_directory,
    read_index,
    read_manifest,
)
from console.rescue_files.record_batches import MalformedRecord, RecordFieldReader
from console.rescue_files.rescued_segment import DamagedPart, RescuedBatch, segment_parts
from recovery.model import TopicPartition
from recovery.plan.values import BarePlan, Plan
from recovery.rescue_branches import BranchPart, RescueBranch
from recovery.transactions.producer_sequences import CutOffProducer, last_of, newest
from recovery.transactions.transaction_values import RescuedMarker

_ABORT, _COMMIT = 0, 1


class DamagedRescue(InputError):
    """A file of a rescue is not as it was written."""


@dataclass(frozen=True, slots=True)
class RescuedBranch:
    """One branch on disk; ``manifest`` is None if its reading was never finished. ``sound_only``: of damaged files
    the sound batches count.
    """

    directory: Path
    branch: RescueBranch
    manifest: BranchManifest | None
    sound_only: bool = False

    @property
    def problem(self) -> str | None:
        """Why the branch is not whole, None if it is."""
        if self.manifest is None:
            return "its reading was not finished"
        return None if self.manifest.whole else self.manifest.problem or "not whole"

    @property
    def segments(self) -> tuple[SegmentEntry, ...]:
        return () if self.manifest is None else self.manifest.segments

    def batches(self) -> Iterator[RescuedBatch]:
        """Every batch, its checksum checked. Raises DamagedRescue where a file is not as the manifest says, unless
        the sound ones are enough.
        """
        for part in self._parts():
            if isinstance(part, RescuedBatch):
                yield part
            elif not self.sound_only:
                raise DamagedRescue(part.text)

    def damaged(self) -> tuple[DamagedPart, ...]:
        """What is damaged, in order. Reads the whole branch."""
        return tuple(part for part in self._parts() if isinstance(part, DamagedPart))

    def _parts(self) -> Iterator[RescuedBatch | DamagedPart]:
        for segment in self.segments:
            yield from segment_parts(self.directory / segment.name, segment, self.branch)


@dataclass(frozen=True, slots=True)
class RescueContents:
    """A whole rescue directory."""

    path: Path
    index: RescueIndex
    branches: tuple[RescuedBranch, ...]


def open_rescue(path: Path) -> RescueContents:
    """The branches by partition and offset. Raises InputError."""
    index = read_index(path / INDEX)
    branches = []
    for branch in index.branches:
        directory = path / branch_directory(branch)
        manifest = read_manifest(directory / MANIFEST) if (directory / MANIFEST).exists() else None
        if manifest is not None and manifest.branch.spans != branch.spans:
            raise InputError(f"{directory / MANIFEST}: it is of another branch than {INDEX} says")
        branches.append(RescuedBranch(directory, branch, manifest))
    branches.sort(key=lambda one: (one.branch.tp, one.branch.start, one.branch.broker))
    return RescueContents(path, index, tuple(branches))


class Ending(StrEnum):
    """How the transaction of a batch ended. OPEN: the branch holds no end of it, or none that is certain."""

    NONE = "no transaction"
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


class _Marker(NamedTuple):
    offset: int
    producer_epoch: int
    ending: Ending


_offset_of = attrgetter("offset")


class TransactionEndings:
    """How the transactions in a branch ended, from its control batches (KIP-98). Where damage lies between a batch
    and its producer's next marker, no end is known: that marker may be a later transaction's.
    """

    def __init__(self, gaps: Sequence[int] = ()) -> None:
        self._markers: dict[int, list[_Marker]] = {}
        self._gaps = gaps
        """The first offsets of damaged parts, ascending. A marker may have been in each."""

    @classmethod
    def of(cls, branch: RescuedBranch) -> TransactionEndings:
        """Reads the whole branch. Raises InputError."""
        gaps = [part.first_offset for part in branch.damaged()] if branch.sound_only else ()
        found = cls(gaps)
        for batch in branch.batches():
            found.note(batch)
        return found

    def note(self, batch: RescuedBatch) -> None:
        """Takes a batch into account, in the order of offsets."""
        header = batch.header
        if header.is_control and header.is_transactional:
            ending = marker_ending(batch)
            if ending is not None:
                marker = _Marker(header.base_offset, header.producer_epoch, ending)
                self._markers.setdefault(header.producer_id, []).append(marker)

    def ending(self, header: BatchHeader) -> Ending:
        """How the transaction of that batch ended: by its producer's first marker behind it."""
        if not header.is_transactional:
            return Ending.NONE
        markers = self._markers.get(header.producer_id, [])
        for marker in markers[bisect_right(markers, header.last_offset, key=_offset_of) :]:
            # A producer that was fenced is aborted with a higher epoch than its records have.
            if marker.producer_epoch >= header.producer_epoch:
                gap = bisect_right(self._gaps, header.last_offset)
                unsure = gap < len(self._gaps) and self._gaps[gap] < marker.offset
                return Ending.OPEN if unsure else marker.ending
        return Ending.OPEN


def marker_ending(batch: RescuedBatch) -> Ending | None:
    """What a control batch says of a transaction; None for other kinds of control records."""
    try:
        fields = RecordFieldReader(batch.data, HEADER_SIZE)
        fields.varint()  # length of the record
        fields.skip(1)
        fields.varint()
        fields.varint()
        key = fields.sized()
    except MalformedRecord:
        return None
    if key is None or len(key) < 4:
        return None
    kind = int.from_bytes(key[2:4], "big")
    return {_ABORT: Ending.ABORTED, _COMMIT: Ending.COMMITTED}.get(kind)


def rescue_of(directory: Path | None, plan: Plan | BarePlan | None) -> RescueContents | None:
    """The rescue that ``--rescue`` names, None without it. Raises InputError: it is another plan's."""
    if directory is None:
        return None
    contents = open_rescue(directory)
    made_for = contents.index.header.plan_id
    # A rescue of disks, compared with the leaders of now, is of no plan.
    if made_for and isinstance(plan, Plan) and plan.header.plan_id != made_for:
        raise InputError(f"{directory}: the rescue of plan {made_for}, and this is {plan.header.plan_id}")
    return contents


def refuse_other_rescue(contents: RescueContents | None, cluster_id: str) -> None:
    """Raises InputError where it was read from another cluster."""
    if contents is not None and contents.index.header.cluster_id != cluster_id:
        raise InputError(
            f"{contents.path}: rescued from cluster {contents.index.header.cluster_id}, and this is {cluster_id}"
        )


def rescued_markers(
    contents: RescueContents, topic_ids: Collection[tuple[TopicPartition, str]]
) -> tuple[RescuedMarker, ...]:
    """The first marker of every producer, of each branch of these partitions that begins where its log and the
    chosen one part. Reads the branches. Raises InputError where one is damaged.
    """
    tails = [one for one in contents.branches if one.branch.part is BranchPart.TAIL]
    # Of two logs that share offsets only one is read as a whole: the rest of the other begins later.
    diverged: dict[TopicPartition, int] = {}
    for one in tails:
        diverged[one.branch.tp] = min(one.branch.start, diverged.get(one.branch.tp, one.branch.start))
    return tuple(
        marker
        for one in tails
        if (one.branch.tp, one.branch.topic_id) in topic_ids and one.branch.start == diverged[one.branch.tp]
        for marker in _first_markers(one)
    )


def _first_markers(rescued: RescuedBranch) -> Iterator[RescuedMarker]:
    """Behind a gap nothing is taken: compaction may have removed an earlier marker there."""
    branch, producers = rescued.branch, set()
    offset = branch.start
    for batch in rescued.batches():
        header = batch.header
        if header.base_offset > offset:
            return
        offset = header.next_offset
        ending = marker_ending(batch) if header.is_control and header.is_transactional else None
        if ending is not None and header.base_offset >= branch.start and header.producer_id not in producers:
            producers.add(header.producer_id)
            yield RescuedMarker(
                branch.tp, branch.start, header.producer_id, header.producer_epoch, ending is Ending.COMMITTED
            )


def cut_off_producers(
    contents: RescueContents, topic_ids: Collection[tuple[TopicPartition, str]]
) -> tuple[CutOffProducer, ...]:
    """The idempotent producers of the tails of these partitions, each with its last batch. Reads the branches.
    Raises InputError where one is damaged.
    """
    tails = (one for one in contents.branches if one.branch.part is BranchPart.TAIL)
    wanted = (one for one in tails if (one.branch.tp, one.branch.topic_id) in topic_ids)
    return tuple(newest(producer for one in wanted for producer in branch_producers(one)))


def branch_producers(rescued: RescuedBranch) -> tuple[CutOffProducer, ...]:
    """As :func:`cut_off_producers`, of one branch. A batch that begins before the branch is not cut off as a whole,
    but its end is.
    """
    found: dict[int, CutOffProducer] = {}
    for header, _ in rescued.batches():
        note_producer(found, rescued.branch.tp, header)
    return tuple(found.values())


def note_producer(found: dict[int, CutOffProducer], tp: TopicPartition, header: BatchHeader) -> None:
    """Takes a batch into account, in the order of offsets; one of no idempotent producer, and a marker, is none."""
    if header.is_control or header.producer_id < 0 or header.base_sequence < 0:
        return
    before = found.get(header.producer_id)
    found[header.producer_id] = CutOffProducer(
        tp,
        header.producer_id,
        header.producer_epoch,
        last_of(header.base_sequence, header.last_offset_delta + 1),
        header.record_count + (0 if before is None else before.records),
        header.max_timestamp,
        header.is_transactional,
    )
