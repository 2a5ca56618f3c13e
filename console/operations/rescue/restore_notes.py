"""What somebody who writes rescued records back has to know before, in lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from console.journal.recorded_restores import RecordedRestore, RestorePlace
from console.operations.rescue.restore_run import TargetPartition
from console.rescue.rescued_branch import RescuedBranch
from console.rescue.restore_journal import RestoreJournal, restored_records
from console.rescue.restore_selection import REFUSED_BY
from recovery.rescue_branches import RescueBranch
from recovery.wording.quantity_text import counted

_PRODUCER_KNOWN = 86_400.0
"""Seconds that a broker remembers an idle producer by default (producer.id.expiration.ms)."""


def damaged_lines(branches: Sequence[RescuedBranch]) -> tuple[str, ...]:
    """What of damaged files is not written back, one line for each part."""
    return tuple(
        f"not written back: {rescued.branch.tp}, {rescued.branch.part} of broker {rescued.branch.broker}:"
        f" {part.offsets_text} ({part.text})"
        for rescued in branches
        for part in rescued.damaged()
    )


def refused_lines(rows: Sequence[TargetPartition]) -> Iterator[str]:
    """Records that the target would not take, or not keep."""
    for name, (setting, words) in REFUSED_BY.items():
        counts = {row.tp.topic: getattr(row.counts, name) for row in rows if getattr(row.counts, name)}
        if counts:
            total = sum(getattr(row.counts, name) for row in rows)
            why = words.format(setting, ", ".join(sorted(counts)))
            yield (
                f"{counted(total, 'record')} or more will be refused: {why}; change it, or write them to a new"
                " topic with --to-topic"
            )
    expired = sum(row.counts.expired for row in rows)
    topics = ", ".join(sorted({row.tp.topic for row in rows if row.counts.expired}))
    instead = "raise it, or write them to a new topic with --to-topic"
    if expired:
        yield (
            f"{counted(expired, 'record')} may soon be deleted again: older than {topics}'s retention.ms; {instead}"
        )


def forgotten(journal: RestoreJournal, at: float) -> Iterator[str]:
    """What an earlier run may have sent last is told apart by its producer, which a cluster forgets."""
    if journal.appended() and at - journal.modified > _PRODUCER_KNOWN:
        yield (
            "an earlier run wrote last more than a day ago: if it was killed, and the cluster has forgotten its"
            " producer (producer.id.expiration.ms), then the last batch of each partition that was sent and not"
            " noted may stand there twice; the count at the end tells"
        )


def other_runs(directory: Path, journal: RestoreJournal, target: str) -> tuple[str, ...]:
    """What was written to the same target by another selection."""
    others = [
        records
        for path, written_to, records in restored_records(directory)
        if written_to == target and path != journal.path
    ]
    if not sum(others):
        return ()
    return (
        f"{sum(others):,} records were written to the same target with other options: those that both select will"
        " stand there twice",
    )


def repeated_lines(
    restores: Iterable[RecordedRestore], branches: Sequence[tuple[RescueBranch, str]]
) -> Iterator[str]:
    """What those restores of other directories took from the same offsets and wrote to the same places."""
    for restore in restores:
        same = sum(
            restore.same_offsets(RestorePlace(branch.tp, branch.topic_id, to_topic), branch.spans)
            for branch, to_topic in branches
        )
        if same:
            yield (
                f"{counted(same, 'offset')} of this rescue were written to the same target before, from"
                f" {restore.directory} ({restore.at}): records that both select will stand there twice"
            )
