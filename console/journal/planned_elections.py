"""The journal's entry about a run's elections: the chosen leaders, what the choice loses, and who leads now.

It sends nothing. The requests have their own entries, without loss and plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from console.journal.run_records import EntryBegun, EntryEnded, RunRecord
from recovery.model import NO_LEADER, TopicPartition
from recovery.plan.values import Plan
from recovery.wording.verdict_text import short_verdict

PLANNED = "planned-elections"
"""The action of the entry."""
_NOT_READ = -1


class PlannedElection(NamedTuple):
    """One election. ``planned_leader`` is NO_LEADER where Kafka chose. ``at_least`` and ``at_most`` are the offsets
    that the choice loses (None: no bound known), ``acknowledged`` the short verdict on the acknowledged records.

    ``outcome`` is "" if the run recorded none. ``leader_before``, ``leader`` and ``leader_epoch`` (the new
    leader's) are -1 if nobody led or it was not read.
    """

    tp: TopicPartition
    planned_leader: int = NO_LEADER
    at_least: int = 0
    at_most: int | None = None
    acknowledged: str = ""
    outcome: str = ""
    leader_before: int = NO_LEADER
    leader: int = NO_LEADER
    leader_epoch: int = _NOT_READ


class ElectionResult(NamedTuple):
    """The result of one election, as the journal records it."""

    tp: TopicPartition
    outcome: str
    leader_before: int
    leader: int
    leader_epoch: int


def planned_detail(plan: Plan, file: str) -> dict[str, object]:
    """What is recorded before the elections of a plan; ``file`` is "" if the plan is in no file.

    Partitions are numbers grouped by topic: a plan may have 200,000 of them.
    """
    texts: dict[str, int] = {}
    topics: dict[str, list[list[object]]] = {}
    for row in plan.rows:
        chosen = row.chosen
        text = texts.setdefault(short_verdict(chosen.verdict), len(texts))
        loss = chosen.loss
        topics.setdefault(row.tp.topic, []).append(
            [row.tp.partition, row.leader, loss.at_least, loss.at_most, text]
        )
    return {
        "planId": plan.header.plan_id,
        "file": file,
        "ranking": str(plan.header.ranking),
        "strategy": str(plan.header.strategy),
        "uncheckedAccepted": plan.header.accepted,
        "acknowledged": list(texts),
        "elections": _by_topic(topics),
    }


def results_detail(results: Iterable[ElectionResult]) -> dict[str, object]:
    """What is recorded after them."""
    outcomes: dict[str, dict[str, list[list[object]]]] = {}
    for tp, outcome, before, leader, epoch in results:
        outcomes.setdefault(outcome, {}).setdefault(tp.topic, []).append(
            [tp.partition, before, leader, epoch]
        )
    return {
        "outcomes": [
            {"outcome": outcome, "elections": _by_topic(topics)} for outcome, topics in outcomes.items()
        ]
    }


def _by_topic(topics: Mapping[str, list[list[object]]]) -> list[dict[str, object]]:
    # A list, because a topic name as a key could look like the name of a secret.
    return [{"topic": topic, "partitions": rows} for topic, rows in topics.items()]


def planned_elections(begun: EntryBegun, ended: EntryEnded | None) -> tuple[PlannedElection, ...]:
    """The elections of an entry, in the order of the plan, without those that are damaged or of a later version."""
    found = {election.tp: election for election in _planned(begun.detail)}
    if ended is not None:
        for result in _results(ended.result):
            planned = found.get(result.tp, PlannedElection(result.tp))
            found[result.tp] = planned._replace(**result._asdict())
    return tuple(found.values())


def planned_entries(run: RunRecord) -> frozenset[str]:
    """The ids of those entries in a run."""
    return frozenset(begun.entry for begun, _ in run.entries(PLANNED))


def led_afterwards(result: Mapping[str, Any]) -> frozenset[TopicPartition]:
    """The partitions that had a leader when the elections of an entry were over, from what its end recorded."""
    return frozenset(one.tp for one in _results(result) if one.leader != NO_LEADER)


def _planned(detail: Mapping[str, Any]) -> Iterator[PlannedElection]:
    texts = detail.get("acknowledged", ())
    for topic, row in _rows(detail.get("elections", ())):
        match row:
            case [int(partition), int(leader), int(at_least), int() | None as at_most, int(text), *_]:
                acknowledged = str(texts[text]) if 0 <= text < len(texts) else ""
                yield PlannedElection(
                    TopicPartition(topic, partition), leader, at_least, at_most, acknowledged
                )


def _results(result: Mapping[str, Any]) -> Iterator[ElectionResult]:
    for group in result.get("outcomes", ()):
        for topic, row in _rows(group.get("elections", ())):
            match row:
                case [int(partition), int(before), int(leader), int(epoch), *_]:
                    tp = TopicPartition(topic, partition)
                    yield ElectionResult(tp, str(group.get("outcome", "")), before, leader, epoch)


def _rows(topics: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    for topic in topics:
        for row in topic.get("partitions", ()):
            yield str(topic.get("topic", "")), row
