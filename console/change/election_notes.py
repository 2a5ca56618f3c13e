"""What the journal says about the elections of a run, beside the requests: the choice, its loss, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from backends.base.answers import Election
from backends.base.protocol import Recorder
from console.journal.planned_elections import (
    PLANNED,
    ElectionResult,
    planned_detail,
    results_detail,
)
from console.journal.unread_disks import UnreadDisksDetail, unread_detail
from recovery.assignment_order import WrittenOrder
from recovery.model import NO_LEADER, PartitionState, TopicPartition
from recovery.plan.values import Plan
from recovery.unread_brokers import UnreadBrokers


def note_plan(recorder: Recorder, plan: Plan, file: Path | None, silent: UnreadBrokers) -> str:
    """Records which leaders are about to be elected, and which disks nobody has read of the ``silent`` brokers;
    returns the entry's id. Raises JournalError.
    """
    detail = planned_detail(plan, "" if file is None else str(file))
    unread = unread_detail(plan.rows, silent)
    return recorder.before(PLANNED, {**detail, "unread": unread} if unread else detail)


def note_kafka_elections(
    recorder: Recorder,
    elections: Iterable[Election],
    leaders: Mapping[TopicPartition, int],
    unread: UnreadDisksDetail,
) -> None:
    """Records who led before Kafka's own elections (``leaders``), who leads now, and which disks nobody read."""
    entry = recorder.before(PLANNED, {"unread": unread} if unread else {})
    recorder.after(entry, results_detail(election_results(elections, leaders)))


class KafkaElectionRecorder:
    """The journal of Kafka's own elections. Each entry also has the partitions of ``states`` that need the
    election, with the topic's id, so that ``resume`` can tell what became of an election without an answer.

    ``every``: the request names no partition, because it is for all of them.
    """

    def __init__(
        self, recorder: Recorder, states: Iterable[PartitionState], *, preferred: bool, every: bool
    ) -> None:
        self._recorder = recorder
        self._every = every
        self._rows: Sequence[WrittenOrder] = [
            WrittenOrder(state.tp, state.topic_id, state.replicas, state.replicas)
            for state in states
            if (state.leader != state.replicas[0] if preferred else state.offline)
        ]

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        """Raises JournalError."""
        return self._recorder.before(action, {**detail, "rows": self._rows})

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        """Raises JournalError. The failure of a request for all partitions names none of them."""
        if self._every and "error" in result:
            how = "refused" if "refused" in result else "unknown"
            result = {**result, how: {row.tp: str(result["error"]) for row in self._rows}}
        self._recorder.after(entry, result)


def election_results(
    elections: Iterable[Election], leaders: Mapping[TopicPartition, int]
) -> Iterable[ElectionResult]:
    """Each election's end, for the journal."""
    for election in elections:
        before = leaders.get(election.tp, NO_LEADER)
        yield ElectionResult(
            election.tp, str(election.outcome), before, election.leader, election.leader_epoch
        )
