"""Runs and rows for the tests of the journal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from console.journal.journal import Journal, JournalRun
from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


class Clock:
    """A clock that goes on by a second whenever somebody looks."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def run(run_id: str = "run-1", *command: str, reason: str = "INC-7") -> JournalRun:
    return JournalRun(
        run_id, command or ("ktriage", "apply", "plan.json"), "ann", "ops1", 4711, reason, "0.1.0"
    )


def journal(root: Path, run_id: str = "run-1") -> Journal:
    return Journal.open(CLUSTER, run(run_id), Clock(), root)


def row(partition: int = 0, topic: str = "orders") -> WrittenOrder:
    """Replicas [1, 2, 3] that are to be elected in the order [2, 1, 3]."""
    return WrittenOrder(TopicPartition(topic, partition), "topic-id", (1, 2, 3), (2, 1, 3))
