"""From --evidence to the disks that were read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from console.errors import InputError
from recovery.disk_evidence import DiskReading
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
