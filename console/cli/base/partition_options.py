"""The partitions that the options select, and the disks that --evidence names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from console.errors import InputError
from console.reading.partition_selection import Selection, Which
from recovery.disk_evidence import DiskReading
from recovery.model import TopicPartition
from recovery.ranking import Ranking


def read_evidence(
    files: Sequence[Path] | None, ranking: Ranking = Ranking.LAST_RECORD
) -> tuple[DiskReading, ...]:
    """The readings of those files. Raises InputError."""
    if not files:
        return ()
    if ranking is Ranking.SPECIFICATION:
        raise InputError(
            "--evidence needs --ranking last-record: a disk does not have the partition's current leader epoch"
        )
    from console.disk_evidence_files import read_disk_evidence  # noqa: PLC0415  # for evidence only

    return read_disk_evidence(files)


def selection(
    topics: Sequence[str] | None = None,
    partitions: Sequence[int] | None = None,
    path: Path | None = None,
    *,
    offline: bool = False,
    under_min_isr: bool = False,
    leaders_refused: bool = False,
) -> Selection:
    """The selection that these options describe; all partitions if no option is given. Raises InputError.

    ``leaders_refused``: a file at ``path`` that names designated leaders is refused.
    """
    if offline and under_min_isr:
        raise InputError("--all-offline-partitions and --under-min-isr exclude each other")
    which = Which.OFFLINE if offline else Which.UNDER_MIN_ISR if under_min_isr else Which.ALL
    if path is not None:
        if topics or partitions:
            raise InputError("--path-to-json-file and --topic exclude each other")
        # The JSON reader is imported only if there is a file.
        from console.plan_files import read_targets  # noqa: PLC0415

        # A row that does not exist refuses no other one (unclean-recovery-tool).
        named = read_targets(path, leaders_refused=leaders_refused)
        return Selection(partitions=named, which=which, best_effort=True)
    if partitions:
        if topics is None or len(topics) != 1:
            raise InputError("--partition needs exactly one --topic")
        _refuse_twice([str(partition) for partition in partitions], "--partition")
        return Selection(partitions=tuple(TopicPartition(topics[0], p) for p in partitions), which=which)
    _refuse_twice(topics or (), "--topic")
    return Selection(topics=tuple(topics or ()), which=which)


def _refuse_twice(values: Sequence[str], option: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise InputError(f"{option} {value} is given twice")


def words(topic: Sequence[str] | None, partition: Sequence[int] | None, path: Path | None) -> tuple[str, ...]:
    """The options that select the same partitions again, for the next command."""
    if path is not None:
        return ("--path-to-json-file", str(path))
    topics = (word for name in topic or () for word in ("--topic", name))
    partitions = (word for number in partition or () for word in ("--partition", str(number)))
    return (*topics, *partitions) or ("--all-offline-partitions",)
