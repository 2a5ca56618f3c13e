"""The requests that applying a plan sends, as they go out.

Where the cluster elects designated leaders itself: ElectLeaders v3 (unclean-recovery-tool, "Designated Leader
Elections"). Elsewhere an unclean election takes the first live replica in assignment order, so each part is
reordered, elected and reverted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from recovery.assignment_order import needs_reorder
from recovery.plan.values import Plan, PlanRow

PART = 500
"""Rows that are elected and reverted together: few, so that a signal or a power cut leaves few rows in
flight. ElectLeaders v3 takes at most 1000.
"""
NEIGHBOURS_AMONG = 10_000
"""Among so many rows in the plan's order, those of one topic are sent together, by their numbers: a broker
describes a range of partitions, and 500 scattered ones cost as much as the whole topic.
"""


class PlannedRequest(NamedTuple):
    """One request; ``body`` has Kafka's own field names. It lacks timeoutMs: the client's request.timeout.ms."""

    name: str
    purpose: str
    partitions: int
    body: Mapping[str, object]

    def text(self) -> str:
        """The request for a person: a line that says what it is, and its body as JSON."""
        plural = "" if self.partitions == 1 else "s"
        return f"{self.name}: {self.purpose}, {self.partitions} partition{plural}\n{json.dumps(self.body)}"


def requests(plan: Plan, native: bool) -> Iterator[PlannedRequest]:
    """Every request, part after part; some parts are sent at the same time.

    As the cluster stood when the plan was made: a row whose preconditions fail by then is left out of its part.
    """
    for rows in election_parts(plan.rows):
        if native:
            yield _designate(rows)
            continue
        moved = [row for row in rows if needs_reorder(row.replicas, row.order, row.standings)]
        if moved:
            yield _reassign(moved, "put the chosen leader first", lambda row: row.order)
        yield _elect(rows)
        if moved:
            yield _reassign(moved, "revert the assignment order", lambda row: row.replicas)


def requests_in_short(plan: Plan, *, native: bool) -> str:
    """Such as ``sends ElectLeaders (elect the designated leaders)``: each kind of request once, as they go out."""
    kinds = dict.fromkeys(f"{request.name} ({request.purpose})" for request in requests(plan, native))
    return f"sends {', then '.join(kinds)}"


def election_parts(rows: Sequence[PlanRow]) -> Iterator[tuple[PlanRow, ...]]:
    """The rows in parts. The most important topic still comes first: that of the first row."""
    for start in range(0, len(rows), NEIGHBOURS_AMONG):
        topics: dict[str, list[PlanRow]] = {}
        for row in rows[start : start + NEIGHBOURS_AMONG]:
            topics.setdefault(row.tp.topic, []).append(row)
        together = [row for found in topics.values() for row in sorted(found, key=_number)]
        for first in range(0, len(together), PART):
            yield tuple(together[first : first + PART])


def _number(row: PlanRow) -> int:
    return row.tp.partition


def _reassign(
    rows: Sequence[PlanRow], purpose: str, replicas: Callable[[PlanRow], tuple[int, ...]]
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
    body = {"allowReplicationFactorChange": False, "topics": topics}
    return PlannedRequest("AlterPartitionReassignments", purpose, len(rows), body)


def _elect(rows: Sequence[PlanRow]) -> PlannedRequest:
    topics = [
        {"topic": topic, "partitions": [row.tp.partition for row in group]}
        for topic, group in _by_topic(rows)
    ]
    body = {"electionType": "unclean", "topicPartitions": topics}
    return PlannedRequest("ElectLeaders", "elect the first live replica", len(rows), body)


def _designate(rows: Sequence[PlanRow]) -> PlannedRequest:
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
    body = {"electionType": "designated", "topicPartitions": topics}
    return PlannedRequest("ElectLeaders", "elect the designated leaders", len(rows), body)


def _by_topic(rows: Sequence[PlanRow]) -> Iterator[tuple[str, Iterator[PlanRow]]]:
    return groupby(sorted(rows, key=lambda row: row.tp), key=lambda row: row.tp.topic)
