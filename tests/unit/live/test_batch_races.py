"""What happens to the cluster between two questions of a designated election."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from backends.base.answers import Election, Outcome
from backends.base.errors import BackendError, NotAllowed
from backends.live.calls.partition_errors import LEFT_OUT, PartitionRefusal
from backends.live.elections import designate as attempts_module
from backends.live.elections import election_batch as module
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.plan.judgement import Reason
from recovery.ranking import Ranking
from tests.unit.live.one_partition import BEHIND, NEWEST, STALE, TP, Cluster, Journal, elect, planned


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the pauses between attempts, and with a short wait for what never shows."""
    monkeypatch.setattr(attempts_module, "BACKOFF", 0.0)
    monkeypatch.setattr(module, "ORDER_VISIBLE_WITHIN", 0.05)
    monkeypatch.setattr(module, "READ_BACK_FOR", 0.05)


def three(replicas: tuple[int, ...], order: tuple[int, ...], live: tuple[int, ...] = (1, 2, 3)) -> Cluster:
    """The logs are best in ``order``."""
    return Cluster(replicas, live, dict(zip(order, (NEWEST, BEHIND, STALE), strict=True)))


def test_a_stale_replica_that_is_unfenced_right_before_the_election_does_not_lead() -> None:
    cluster = three((1, 2, 3), (2, 3, 1), live=(2, 3))
    cluster.at["elect", 1] = lambda: cluster.live.add(1)
    election = elect(cluster, planned(cluster, (2, 3, 1)))
    assert (election.outcome, cluster.leader, cluster.replicas) == (Outcome.ELECTED, 2, (1, 2, 3))


def test_another_leader_of_our_own_election_is_none_that_was_there_already() -> None:
    cluster = three((3, 1, 2), (2, 1, 3))

    def fails() -> None:
        raise BackendError("connection reset")

    cluster.at["elect", 1] = lambda: cluster.live.discard(2)
    cluster.at["states", 3] = fails  # the look for the leader
    election = elect(cluster, planned(cluster, (2, 1, 3)))
    assert cluster.calls.count("elect") == 1
    assert (election.outcome, election.leader) == (Outcome.OTHER_LEADER, 1)
    assert "1 leads, and not 2 as planned" in election.detail


def test_an_order_whose_answer_leaves_the_partition_out_is_put_back_and_told_as_unknown() -> None:
    cluster, journal = three((1, 2, 3), (2, 3, 1)), Journal()
    cluster.at["write_orders", 1] = lambda: LEFT_OUT
    election = elect(cluster, planned(cluster, (2, 3, 1)), journal)
    assert journal.ended[0] == ("reorder", {"applied": [], "refused": {}, "unknown": {TP: str(LEFT_OUT)}})
    assert journal.ended[1] == ("revert", {"applied": [TP], "refused": {}})
    assert (election.outcome, election.leader, cluster.replicas) == (Outcome.ELECTED, 2, (1, 2, 3))


def test_an_order_that_another_run_puts_back_is_not_elected_by() -> None:
    cluster = three((1, 2, 3), (2, 3, 1))

    def another_run_reverts() -> None:
        cluster.replicas = cluster.own

    for look in range(2, 30):
        cluster.at["states", look] = another_run_reverts
    election = elect(cluster, planned(cluster, (2, 3, 1)))
    assert (election.outcome, cluster.leader) == (Outcome.FAILED, -1)
    assert "another run put it back" in election.detail
    assert "elect" not in cluster.calls


# What was silent or fenced when the plan was made.


@pytest.mark.parametrize("native", [False, True])
def test_one_that_comes_back_after_the_logs_were_asked_is_asked_before_anything_is_elected(
    native: bool,
) -> None:
    """It is unfenced between the question and the election: only the last look at the state shows it."""
    cluster = Cluster((2, 1, 3), (1, 2), {1: STALE, 2: BEHIND}, native=native)
    row = planned(cluster, (2, 1, 3))

    def returns() -> None:
        cluster.live.add(3)
        cluster.logs_now[3] = NEWEST

    cluster.at["states", 2] = returns
    election = elect(cluster, row)
    assert (election.outcome, election.reason) == (Outcome.STALE, Reason.BETTER_LOG)
    assert "elect" not in cluster.calls


def test_one_that_is_dead_and_was_silent_is_not_waited_for() -> None:
    cluster = Cluster((1, 2, 3), (1, 2), {1: STALE, 2: BEHIND})
    assert elect(cluster, planned(cluster, (2, 1, 3))).outcome is Outcome.ELECTED
    assert cluster.asked == [{TP: (1, 2)}]


# The state is read last.


def test_a_change_while_the_journals_line_is_written_is_seen_before_the_election() -> None:
    cluster = three((2, 1, 3), (2, 1, 3))

    def somebody_else_leads() -> None:
        cluster.leader, cluster.epoch = 3, 6

    election = elect(cluster, planned(cluster, (2, 1, 3)), Journal({"elect": somebody_else_leads}))
    assert (election.outcome, election.leader) == (Outcome.OTHER_LEADER, 3)
    assert "elect" not in cluster.calls


def test_an_order_that_is_changed_while_the_journals_line_is_written_is_not_elected_by() -> None:
    cluster = three((1, 2, 3), (2, 1, 3))

    def somebody_reassigns() -> None:
        cluster.replicas = (3, 1, 2)

    journal = Journal({"elect": somebody_reassigns})
    election = elect(cluster, planned(cluster, (2, 1, 3)), journal)
    assert (election.outcome, election.reason) == (Outcome.STALE, Reason.ASSIGNMENT)
    assert (cluster.leader, cluster.replicas, election.reverted) == (-1, (3, 1, 2), False)
    assert "elect" not in cluster.calls
    assert journal.ended[1][0] == "elect" and "applied" not in journal.ended[1][1]


def test_the_state_is_the_last_thing_that_is_read() -> None:
    cluster = three((1, 2, 3), (2, 1, 3))
    elect(cluster, planned(cluster, (2, 1, 3)), Journal({"elect": lambda: cluster.calls.append("journal")}))
    assert cluster.calls[: cluster.calls.index("elect") + 1] == [
        "states",
        "logs",
        "write_orders",
        "journal",
        "states",
        "elect",
    ]


def test_a_reconnected_broker_that_tells_the_same_is_elected_after_its_log_was_asked_again() -> None:
    cluster = three((1, 2, 3), (2, 1, 3))

    def reconnects() -> None:
        cluster.connections[2] = object()

    cluster.at["write_orders", 1] = reconnects
    election = elect(cluster, planned(cluster, (2, 1, 3)), attempts=0)
    assert (election.outcome, election.leader) == (Outcome.ELECTED, 2)
    assert cluster.calls.count("logs") == 2


def test_nothing_is_elected_over_a_connection_that_broke_with_the_last_look() -> None:
    cluster = three((1, 2, 3), (2, 1, 3))

    def breaks() -> None:
        cluster.connections[2] = object()

    cluster.at["states", 2] = breaks
    election = elect(cluster, planned(cluster, (2, 1, 3)), attempts=0)
    assert election.outcome is Outcome.FAILED and "broke right before the election" in election.detail
    assert "elect" not in cluster.calls and cluster.replicas == (1, 2, 3)


def test_what_a_broker_told_over_a_connection_that_broke_meanwhile_is_asked_again() -> None:
    """It may have been started again between its first answer and its last."""
    cluster = three((2, 1, 3), (2, 1, 3))

    def restarts() -> None:
        cluster.connections[2] = object()

    cluster.at["logs", 1] = restarts
    election = elect(cluster, planned(cluster, (2, 1, 3)), attempts=0)
    assert election.outcome is Outcome.ELECTED and cluster.calls.count("logs") == 2


def test_an_order_without_an_answer_may_stand_and_is_put_back() -> None:
    """The cluster wrote it, and the answer was lost with the connection."""
    cluster, journal = three((1, 2, 3), (2, 3, 1)), Journal()

    def lost() -> None:
        cluster.replicas = (2, 3, 1)
        raise BackendError("connection reset")

    cluster.at["write_orders", 1] = lost
    election = elect(cluster, planned(cluster, (2, 3, 1)), journal, attempts=0)
    assert (election.outcome, cluster.replicas) == (Outcome.FAILED, (1, 2, 3))
    assert [action for action, _ in journal.ended] == ["reorder", "revert"]


class Behind(Cluster):
    """From the election on, ``shown`` is what the broker that is asked shows, one state after the other."""

    def __init__(self, shown: list[PartitionState | Unknown], after: str = "elect") -> None:
        super().__init__((2, 1, 3), (1, 2, 3), dict(zip((2, 1, 3), (NEWEST, BEHIND, STALE), strict=True)))
        self._shown = shown
        self._after = after

    async def states(  # type: ignore[override]  # what cannot be read is a value too
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, PartitionState | Unknown]:
        found = await super().states(partitions)
        if self._after in self.calls and self._shown:
            return dict.fromkeys(partitions, self._shown.pop(0))
        return found


def test_a_leader_under_the_epoch_of_before_is_not_the_one_that_was_elected() -> None:
    """A broker that is behind the controller shows who led before."""
    before = three((2, 1, 3), (2, 1, 3)).state()._replace(leader=1)
    cluster = Behind([before])
    election = elect(cluster, planned(cluster, (2, 1, 3)), attempts=0)
    assert (election.outcome, election.leader, election.leader_epoch) == (Outcome.ELECTED, 2, 6)


def test_a_leader_that_is_lost_right_after_its_election_is_not_waited_for() -> None:
    """The leader epoch has moved on, and nobody leads: the row is finished at once, with what happened."""
    lost = three((2, 1, 3), (2, 1, 3)).state()._replace(leader=-1, leader_epoch=7)
    election = elect(cluster := Behind([lost] * 99), planned(cluster, (2, 1, 3)), attempts=0)
    assert election.outcome is Outcome.FAILED
    assert "a leader was elected after our election was sent, and nobody leads now" in election.detail


def test_the_leader_of_a_topic_that_was_made_again_is_not_the_one_that_was_elected() -> None:
    again = three((2, 1, 3), (2, 1, 3)).state()._replace(leader=2, leader_epoch=9, topic_id="another")
    election = elect(cluster := Behind([again]), planned(cluster, (2, 1, 3)), attempts=0)
    assert (election.outcome, election.reason) == (Outcome.STALE, Reason.TOPIC_ID)


def test_nothing_is_elected_while_the_state_cannot_be_read() -> None:
    unread = Unknown(Why.NOT_ANSWERED, "LEADER_NOT_AVAILABLE")
    cluster = Behind([unread] * 99, after="logs")
    election = elect(cluster, planned(cluster, (2, 1, 3)), attempts=0)
    assert election.outcome is Outcome.FAILED and "elect" not in cluster.calls


def test_who_was_told_to_stop_does_not_wait_for_another_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts_module, "BACKOFF", 3_600.0)
    cluster = three((2, 1, 3), (2, 1, 3))
    refusal = PartitionRefusal(41, "NOT_CONTROLLER", "", True)
    cluster.at["elect", 1] = lambda: refusal
    cluster.elects = lambda leader=None: None  # type: ignore[method-assign]  # noqa: ARG005

    class StopAfterElect:
        def __bool__(self) -> bool:
            return "elect" in cluster.calls

    row = planned(cluster, (2, 1, 3))
    run = attempts_module.designate(
        cluster, [row], Ranking.LAST_RECORD, Journal(), attempts=5, stop=StopAfterElect()
    )

    async def in_time() -> tuple[Election, ...]:
        async with asyncio.timeout(10):
            return await run

    elections = asyncio.run(in_time())
    assert elections[0].outcome is Outcome.FAILED
    assert cluster.calls.count("elect") == 1 and cluster.calls.count("logs") == 1


def test_a_cluster_that_refuses_its_own_election_to_the_caller_elects_by_order() -> None:
    """ElectLeaders v3 needs CLUSTER_ACTION; reordering and ElectLeaders v2 need ALTER."""
    cluster = three((1, 2, 3), (2, 1, 3))
    cluster.native = True

    async def refused(leaders: object) -> Mapping[TopicPartition, PartitionRefusal | None]:
        raise NotAllowed("CLUSTER_ACTION", "the cluster", "elect designated leaders")

    cluster.designate = refused  # type: ignore[method-assign]
    election = elect(cluster, planned(cluster, (2, 1, 3)), attempts=0)
    assert (election.outcome, cluster.leader, cluster.replicas) == (Outcome.ELECTED, 2, (1, 2, 3))


def test_where_the_connection_to_the_chosen_one_is_another_its_log_is_asked_again() -> None:
    """Its broker may have been started again, and come back with a shorter log."""
    cluster = three((1, 2, 3), (2, 1, 3))

    def restarts() -> None:
        cluster.connections[2] = object()
        cluster.logs_now[2] = BEHIND

    cluster.at["write_orders", 1] = restarts
    election = elect(cluster, planned(cluster, (2, 1, 3)))
    assert (election.outcome, election.reason) == (Outcome.STALE, Reason.CANDIDATE_LOG)
    assert (cluster.leader, cluster.replicas, election.reverted) == (-1, (1, 2, 3), True)


@pytest.mark.parametrize("native", [False, True])
def test_the_chosen_one_that_somebody_else_elected_before_anything_was_sent_is_not_told_as_ours(
    native: bool,
) -> None:
    cluster = Cluster((1, 2, 3), (1, 2), {2: NEWEST, 3: BEHIND, 1: STALE}, native=native)
    row = planned(cluster, (2, 3, 1))
    cluster.elects(2)
    election = elect(cluster, row)
    assert (election.outcome, election.leader) == (Outcome.ALREADY_ONLINE, 2)
    assert "elect" not in cluster.calls


def test_a_row_whose_order_could_not_be_reverted_is_not_tried_again() -> None:
    """The next attempt would take our own order for somebody else's, and say nothing of the revert."""
    cluster = Cluster((1, 2, 3), (1, 2), {2: NEWEST, 3: BEHIND, 1: STALE})
    cluster.at["elect", 1] = lambda: PartitionRefusal(41, "NOT_CONTROLLER", "", retryable=True)
    cluster.elects = lambda _leader=None: None  # type: ignore[assignment, method-assign]  # nobody is elected

    async def refused(
        orders: Mapping[TopicPartition, tuple[int, ...]],
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        if orders[TP] == cluster.own:
            cluster.called("write_orders")
            return {TP: PartitionRefusal(39, "INVALID_REPLICA_ASSIGNMENT", "", retryable=False)}
        return await Cluster.write_orders(cluster, orders)

    row = planned(cluster, (2, 3, 1))
    cluster.write_orders = refused  # type: ignore[method-assign]
    election = elect(cluster, row)
    assert not election.reverted and "INVALID_REPLICA_ASSIGNMENT" in election.detail
    assert cluster.calls.count("elect") == 1
