"""Which markers ``ktriage transactions fix`` writes, and which transactions it leaves for an operator to decide."""

# ruff: noqa: ARG002  # the signatures are the cluster's

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from backends.base.answers import LogPosition, Partitions, RawBatches
from backends.base.transactions import LEADERLESS, CoordinatorAnswers, Marker
from console.errors import InputError
from console.jobs.consumers.fix_transactions import (
    FixTransactions,
    NamedOutcome,
    PreparedMarkers,
    prepared_markers,
)
from console.jobs.consumers.hanging_transactions import read_transactions
from recovery.groups.group_values import CommittedOffset, ConsumerGroup, GroupKind
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.transactions.transaction_judgement import (
    EndingEvidence,
    TransactionEnding,
    TransactionJudgement,
)
from recovery.transactions.transaction_values import (
    CoordinatedTransaction,
    OpenTransaction,
    PartitionTransactions,
    TransactionState,
)
from tests.unit.cli.memory_backend import NoGroups

HERE = TopicPartition("payments", 0)
NOT_ALLOWED = Unknown(Why.NOT_ALLOWED, "Fetch needs READ on Topic:__transaction_state")
SILENT = Unknown(Why.NOT_ANSWERED, "the coordinator on broker 3 did not answer")


class Groups(NoGroups):
    """Two groups: one has committed the last stable offset."""

    async def listed(self) -> Any:
        groups = [
            ConsumerGroup(name, 1, GroupKind.CLASSIC, "consumer", "Stable") for name in ("stuck", "other")
        ]
        return type("Listing", (), {"groups": tuple(groups), "not_listed": ()})()

    async def committed(self, groups: Sequence[ConsumerGroup], partitions: Any) -> Any:
        return {"stuck": {HERE: CommittedOffset(50)}, "other": {HERE: CommittedOffset(20)}}


class Cluster:
    """One partition with an open transaction of producer 4001, and its coordinator's answer."""

    def __init__(self, answers: CoordinatorAnswers, *, leader: int = 2, coordinator_epoch: int = -1) -> None:
        self._answers = answers
        self._leader = leader
        self.ends_meanwhile = self._ended = False
        self._open = OpenTransaction(HERE, 4001, 5, 50, 1_700_000_000_000, coordinator_epoch)

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        names = topics or ("payments",)
        states = [
            PartitionState(name, 0, "id", self._leader, 4, (1, 2, 3), (2,), None, None, ()) for name in names
        ]
        return Partitions(tuple(states))

    async def survey(self, request: Any, progress: Any = None) -> Any:
        log = type("Log", (), {"log_start_offset": 0})()
        return type("Surveyed", (), {"surveys": (type("Survey", (), {"log": lambda _self, _b: log})(),)})()

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        return {position.tp: NOT_ALLOWED for position in positions}

    def transactions(self) -> Cluster:
        return self

    def consumer_groups(self) -> Groups:
        return Groups()

    async def open_in(self, leaders: Mapping[TopicPartition, int]) -> Any:
        if self._leader < 0:
            return dict.fromkeys(leaders, LEADERLESS)
        found = () if self._ended else (self._open,)
        return {HERE: PartitionTransactions(self._leader, found, 50, 151)}

    async def coordinated(self, producers: Sequence[int]) -> CoordinatorAnswers:
        assert producers == [4001]
        self._ended = self.ends_meanwhile
        return self._answers


def known(state: TransactionState, *partitions: TopicPartition) -> CoordinatorAnswers:
    return CoordinatorAnswers({4001: CoordinatedTransaction("app", state, 4001, 5, 0, frozenset(partitions))})


async def prepared(cluster: Cluster, outcome: NamedOutcome | None = None) -> PreparedMarkers:
    found = await read_transactions(cluster, [HERE])  # type: ignore[arg-type]  # what is asked of a cluster
    return prepared_markers("id", found, outcome)


COMMITTED = known(TransactionState.COMPLETE_COMMIT)


async def test_one_that_is_alive_is_left_alone() -> None:
    told = await prepared(Cluster(known(TransactionState.ONGOING, HERE)), NamedOutcome(4001, False))
    (left,) = told.left
    assert not told.markers, "not even if its outcome is named"
    assert left.why == "open and alive (the coordinator has it in progress): no marker is missing"
    assert told.found.complete


async def test_without_the_coordinators_log_an_operator_has_to_name_the_outcome() -> None:
    told = await prepared(Cluster(COMMITTED))
    (left,) = told.left
    assert not told.markers
    assert "hanging, was committed, not certain" in left.why
    assert "--producer-id 4001 --outcome commit (or abort)" in left.why
    assert told.found.waiting == {HERE: ("stuck",)}


@pytest.mark.parametrize("commit", [True, False])
async def test_the_named_outcome_is_written(commit: bool) -> None:
    told = await prepared(Cluster(COMMITTED, coordinator_epoch=7), NamedOutcome(4001, commit))
    (one,) = told.markers
    assert one.named and one.leader == 2
    assert one.marker == Marker(HERE, 4001, 5, commit, 7), "no older than the coordinator's last marker"


async def test_a_producer_that_has_no_open_transaction_is_refused() -> None:
    change = FixTransactions(None, ("payments",), "test", "", NamedOutcome(9999, False), dry_run=True)
    with pytest.raises(
        InputError, match="no open transaction of producer 9999 on payments; nothing was sent"
    ):
        await change.prepare(Cluster(COMMITTED), "id", SimpleNamespace(progress=None))  # type: ignore[arg-type]  # as above


async def test_a_named_producer_limits_the_run_to_it() -> None:
    """The other one hangs, and would be ended if no producer were named."""
    cluster = Cluster(COMMITTED)
    found = await read_transactions(cluster, [HERE])  # type: ignore[arg-type]  # as above
    (row,) = found.rows
    certain = row._replace(
        judgement=TransactionJudgement(TransactionEnding.COMMITTED, EndingEvidence.DECISION_RECORD)
    )
    found = replace(found, rows=(certain,))
    assert prepared_markers("id", found, None).markers
    other = prepared_markers("id", found, NamedOutcome(9999, False))
    assert not other.markers and not other.left


async def test_a_coordinator_that_did_not_answer_may_know_that_it_is_alive() -> None:
    told = await prepared(Cluster(CoordinatorAnswers({}, (SILENT,))), NamedOutcome(4001, False))
    (left,) = told.left
    assert not told.markers and "did not answer" in left.why
    assert not told.found.complete


async def test_a_partition_without_a_leader_is_not_called_free_of_transactions() -> None:
    told = await prepared(Cluster(COMMITTED, leader=-1))
    assert told.found.unread == {HERE: LEADERLESS} and not told.found.complete
    assert str(LEADERLESS) == "the partition has no leader", (
        "which was not asked, and so did not fail to answer"
    )


async def test_one_that_ends_while_the_coordinator_is_asked_is_not_hanging() -> None:
    """Its markers are written before the coordinator calls it complete; another one might be open by then."""
    cluster = Cluster(COMMITTED)
    cluster.ends_meanwhile = True
    told = await prepared(cluster, NamedOutcome(4001, True))
    assert not told.markers and not told.left and told.found.rows == ()
