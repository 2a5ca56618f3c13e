"""The journal's entries about logs that were kept: brokers that elections have taken out of assignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from console.journal.run_records import EntryBegun, RunRecord, read_runs
from console.journal.unfinished_entries import KEEP_LOG
from recovery.heal_plan import ReplicaMove
from recovery.model import TopicPartition


class KeepMove(NamedTuple):
    """A move that takes silent brokers out. ``leader_epoch`` is that before the election."""

    move: ReplicaMove
    leader_epoch: int


def keep_moves(detail: Mapping[str, Any]) -> Iterator[KeepMove]:
    """The moves of an entry's detail."""
    for row in detail.get("moves", ()):
        tp = TopicPartition(str(row["topic"]), int(row["partition"]))
        before, after = tuple(map(int, row["before"])), tuple(map(int, row["after"]))
        move = ReplicaMove(tp, str(row["topicId"]), before, after, int(row["bytes"]))
        yield KeepMove(move, int(row["leaderEpoch"]))


def recorded_keeps(cluster_id: str, root: Path | None = None) -> Mapping[TopicPartition, ReplicaMove]:
    """As :func:`keeps_of`, of the cluster's journal. Raises JournalError, InputError."""
    return keeps_of(read_runs(cluster_id, root))


def keeps_of(runs: Iterable[RunRecord]) -> Mapping[TopicPartition, ReplicaMove]:
    """The newest move of each partition that was to keep a log, whatever became of it: the cluster shows that."""
    return {
        keep.move.tp: keep.move
        for run in runs
        for event in run.events
        if isinstance(event, EntryBegun) and event.action == KEEP_LOG
        for keep in keep_moves(event.detail)
    }
