"""The journal's entries about logs that were kept: brokers that elections have taken out of assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from console.journal.change_kinds import KEEP_LOG, keep_moves
from console.journal.run_records import RunRecord, read_runs
from recovery.heal_plan import ReplicaMove
from recovery.model import TopicPartition


def recorded_keeps(cluster_id: str, root: Path | None = None) -> Mapping[TopicPartition, ReplicaMove]:
    """As :func:`keeps_of`, of the cluster's journal. Raises JournalError, InputError."""
    return keeps_of(read_runs(cluster_id, root))


def keeps_of(runs: Iterable[RunRecord]) -> Mapping[TopicPartition, ReplicaMove]:
    """The newest move of each partition that was to keep a log, whatever became of it: the cluster shows that."""
    return {
        keep.move.tp: keep.move
        for run in runs
        for begun, _ in run.entries(KEEP_LOG)
        for keep in keep_moves(begun.detail)
    }
