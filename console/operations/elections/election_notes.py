"""What the journal says about the elections of a run, beside the requests: the choice, its loss, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from backends.base.answers import Election
from backends.base.protocol import Recorder
from console.journal.planned_elections import PLANNED, ElectionResult, planned_detail, results_detail
from console.operations.elections.election_batches import Elected
from recovery.model import NO_LEADER, TopicPartition
from recovery.plan.values import Plan


def note_plan(recorder: Recorder, plan: Plan, file: Path | None) -> str:
    """Records which leaders are about to be elected; returns the entry's id. Raises JournalError."""
    return recorder.before(PLANNED, planned_detail(plan, "" if file is None else str(file)))


def note_elected(recorder: Recorder, entry: str, elected: Elected) -> None:
    """Records who leads after the elections of a plan."""
    recorder.after(entry, results_detail(_results((r.election for r in elected.results), {})))


def note_kafka_elections(
    recorder: Recorder, elections: Iterable[Election], leaders: Mapping[TopicPartition, int]
) -> None:
    """Records who led before Kafka's own elections (``leaders``) and who leads now."""
    entry = recorder.before(PLANNED, {})
    recorder.after(entry, results_detail(_results(elections, leaders)))


def _results(
    elections: Iterable[Election], leaders: Mapping[TopicPartition, int]
) -> Iterable[ElectionResult]:
    for election in elections:
        before = leaders.get(election.tp, NO_LEADER)
        yield ElectionResult(
            election.tp, str(election.outcome), before, election.leader, election.leader_epoch
        )
