"""Which of a branch's batches are written back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from backends.log_segments.batch_header import BatchHeader
from console.rescue.record_fields import has_holes
from console.rescue.rescued_branch import Ending, RescuedBatch, RescuedBranch, TransactionEndings


@dataclass(frozen=True, slots=True)
class RestoreSelection:
    """``uncommitted``: records of aborted and open transactions too. ``incomplete``: branches that are not whole
    too. ``topics``: only these; empty: all.
    """

    uncommitted: bool = False
    incomplete: bool = False
    topics: tuple[str, ...] = ()


class BranchCounts(NamedTuple):
    """Records of a branch: ``selected`` are written back. ``outside`` of the branch are in its first and last
    batch, which are never cut. ``holes`` are those of selected batches that compaction has thinned.
    """

    selected: int
    aborted: int
    open: int
    control: int
    outside: int
    holes: int


def selects(header: BatchHeader, ending: Ending, selection: RestoreSelection) -> bool:
    """Control batches never; of transactions the committed ones, unless told otherwise."""
    if header.is_control or not header.record_count:
        return False
    return selection.uncommitted or ending in (Ending.NONE, Ending.COMMITTED)


def selected_batches(
    rescued: RescuedBranch, selection: RestoreSelection, start: int
) -> Iterator[RescuedBatch]:
    """The batches to be written back that end behind offset ``start``. Raises InputError."""
    endings = TransactionEndings.of(rescued)
    for batch in rescued.batches():
        header = batch.header
        if header.next_offset > start and selects(header, endings.ending(header), selection):
            yield batch


def count_branch(rescued: RescuedBranch, selection: RestoreSelection) -> BranchCounts:
    """Reads the whole branch. Raises InputError."""
    endings = TransactionEndings.of(rescued)
    counts = dict.fromkeys(BranchCounts._fields, 0)
    for batch in rescued.batches():
        header = batch.header
        ending = endings.ending(header)
        if header.is_control:
            counts["control"] += header.record_count
            continue
        if ending in (Ending.ABORTED, Ending.OPEN):
            counts[str(ending)] += header.record_count
        if selects(header, ending, selection):
            counts["selected"] += header.record_count
            if has_holes(header):
                counts["holes"] += header.record_count
        branch = rescued.branch
        before, behind = branch.start - header.base_offset, header.next_offset - branch.end
        counts["outside"] += max(0, before) + max(0, behind)
    return BranchCounts(**counts)
