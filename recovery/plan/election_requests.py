"""The requests that applying a plan sends, as they go out.

Where the cluster elects designated leaders itself: ElectLeaders v3 (unclean-recovery-tool, "Designated Leader
Elections"). Elsewhere an unclean election takes the first live replica in assignment order, so each batch is
reordered, elected and restored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from recovery.assignment_order import needs_reorder
from recovery.plan.values import Plan, PlanRow

BATCH = 1000
"""Partitions per request: the limit of ElectLeaders v3, and what was tried on real clusters."""


class PlannedRequest(NamedTuple):
    """One request; ``body`` has Kafka's own field names, times in ms."""

    name: str
    purpose: str
    partitions: int
    body: Mapping[str, object]

    def text(self) -> str:
        """The request for a person: a line that says what it is, and its body as JSON."""
        plural = "" if self.partitions == 1 else "s"
        return f"{self.name}: {self.purpose}, {self.partitions} partition{plural}\n{json.dumps(self.body)}"


def requests(
    plan: Plan, native: bool, batch: int = BATCH, timeout_ms: int = 60_000
) -> Iterator[PlannedRequest]:
    """Every request, in the order they go out.

    As the cluster stood when the plan was made: a row whose preconditions fail by then is left out of its batch.
    """
    for start in range(0, len(plan.rows), batch):
        rows = plan.rows[start : start + batch]
        if native:
            yield _designate(rows, timeout_ms)
            continue
        moved = [row for row in rows if needs_reorder(row.replicas, row.order, row.standings)]
        if moved:
            yield _reassign(moved, "put the chosen leader first", lambda row: row.order, timeout_ms)
        yield _elect(rows, timeout_ms)
        if moved:
            yield _reassign(moved, "restore the assignment order", lambda row: row.replicas, timeout_ms)


def _reassign(
    rows: Sequence[PlanRow], purpose: str, replicas: Callable[[PlanRow], tuple[int, ...]], timeout_ms: int
) -> PlannedRequest:
    topics = [
        {
            "name": topic,
            "partitions": [
                {"partitionIndex": row.tp.partition, "replicas": list(replicas(row))} for row in group
            ],
        }
        for topic, group in _by_topic(rows)
    ]
    body = {"timeoutMs": timeout_ms, "allowReplicationFactorChange": False, "topics": topics}
    return PlannedRequest("AlterPartitionReassignments", purpose, len(rows), body)


def _elect(rows: Sequence[PlanRow], timeout_ms: int) -> PlannedRequest:
    topics = [
        {"topic": topic, "partitions": [row.tp.partition for row in group]}
        for topic, group in _by_topic(rows)
    ]
    body = {"electionType": "unclean", "topicPartitions": topics, "timeoutMs": timeout_ms}
    return PlannedRequest("ElectLeaders", "elect the first live replica", len(rows), body)


def _designate(rows: Sequence[PlanRow], timeout_ms: int) -> PlannedRequest:
    topics = []
    for topic, group in _by_topic(rows):
        own = list(group)
        topics.append(
            {
                "topic": topic,
                "partitions": [row.tp.partition for row in own],
                "designatedLeaders": [row.leader for row in own],
            }
        )
    body = {"electionType": "designated", "topicPartitions": topics, "timeoutMs": timeout_ms}
    return PlannedRequest("ElectLeaders", "elect the designated leaders", len(rows), body)


def _by_topic(rows: Sequence[PlanRow]) -> Iterator[tuple[str, Iterator[PlanRow]]]:
    return groupby(sorted(rows, key=lambda row: row.tp), key=lambda row: row.tp.topic)
