"""Designated elections on a real cluster that has no such call, on partitions with a stale long tail each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from backends.base.answers import Depth, Outcome
from backends.live.adapter import LiveBackend
from recovery.loss import loss
from recovery.membership.quorum import Quorum
from recovery.model import EpochSpan, Lineage, TopicPartition, Unknown
from recovery.plan.judgement import Reason
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking, rank
from testbed.kafka import KafkaCluster
from tests.live import designated_elections, incident_steps
from tests.live.designated_elections import ActionAt, elect, through_proxies, wait_leader_and_order
from tests.live.live_backend import MemoryRecorder, designation, open_backend, survey
from tests.live.request_proxy import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS

pytestmark = pytest.mark.long

CLUSTER = designated_elections.CLUSTER
MIN_ISR_2 = {"min.insync.replicas": "2"}
TAIL = "tail"
ROWS = "rows"
ORDERS = ((1, 3, 2), (3, 1, 2), (3, 2, 1), (2, 1, 3), (1, 2, 3))
BY_LAST_RECORD, BY_SPECIFICATION = TopicPartition(TAIL, 0), TopicPartition(TAIL, 1)


@pytest.fixture(scope="module")
def promised(cluster: KafkaCluster) -> dict[str, tuple[str, ...]]:
    """Every partition has a stale long tail; by topic, the values that the cluster promised to keep."""
    cluster.client.create_topic(TAIL, [[1, 2, 3]] * 2, MIN_ISR_2)
    cluster.client.create_topic(ROWS, [list(order) for order in ORDERS] + [[1, 2, 3]] * 25, MIN_ISR_2)
    return incident_steps.stale_long_tails(
        cluster, {TAIL: incident_steps.Counts(1000, 500, 300), ROWS: incident_steps.Counts(10, 5, 3)}
    )


@pytest.fixture(scope="module")
def unused(promised: object) -> Iterator[TopicPartition]:
    return iter([TopicPartition(ROWS, number) for number in range(len(ORDERS), len(ORDERS) + 25)])


@pytest.fixture
async def backend(cluster: KafkaCluster) -> AsyncIterator[LiveBackend]:
    async with open_backend(cluster) as backend:
        yield backend


@pytest.fixture
async def row(backend: LiveBackend, unused: Iterator[TopicPartition]) -> PlanRow:
    """An offline partition, assigned to [1, 2, 3], that no test has used; the right leader is 2."""
    return await offline_row(backend, next(unused))


async def offline_row(backend: LiveBackend, tp: TopicPartition) -> PlanRow:
    chosen = designation((await survey(backend, [ROWS]))[tp])
    assert (chosen.replicas, chosen.order) == ((1, 2, 3), (2, 1, 3))
    return chosen


async def test_both_rankings_are_shown_with_what_each_would_lose(
    backend: LiveBackend, promised: object
) -> None:
    found = (await survey(backend, [TAIL], depth=Depth.FULL))[BY_LAST_RECORD]
    lineages = {replica.broker: found.log(replica.broker) for replica in found.replicas}
    stale, newer = lineages[1], lineages[2]
    assert stale is not None and newer is not None and lineages[3] is None
    assert stale.lineage == Lineage(0, (EpochSpan(0, 0, 1500),), 0)
    assert newer.lineage == Lineage(2, (EpochSpan(0, 0, 1000), EpochSpan(2, 1000, 1300)), 0)
    assert (stale.leader_epoch, newer.leader_epoch) == (found.state.leader_epoch,) * 2
    for ranking, best in ((Ranking.LAST_RECORD, 2), (Ranking.SPECIFICATION, 1)):
        ranked = rank(found, ranking)
        assert not isinstance(ranked, Unknown)
        assert [candidate.broker for candidate in ranked] == [best, 3 - best]
    right, wrong = loss(found, 2), loss(found, 1)
    assert (right.at_least, right.tail, right.unanswered) == (500, (EpochSpan(0, 1000, 1500),), (3,))
    assert (wrong.at_least, wrong.tail, wrong.unanswered) == (300, (EpochSpan(2, 1000, 1300),), (3,))
    assert found.min_isr == 2


async def test_by_the_last_record_every_acknowledged_record_is_read_back(
    backend: LiveBackend, cluster: KafkaCluster, promised: dict[str, tuple[str, ...]]
) -> None:
    chosen = designation((await survey(backend, [TAIL]))[BY_LAST_RECORD], Ranking.LAST_RECORD)
    recorder = MemoryRecorder()
    [election] = await elect(backend, recorder, chosen)
    assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 2, True), election
    assert recorder.actions == ["reorder", "elect", "revert"]
    wait_leader_and_order(cluster, BY_LAST_RECORD, 2, (1, 2, 3))
    cluster.metadata.wait_isr(TAIL, 0, (1, 2))
    values = [record.value for record in cluster.client.consume(*BY_LAST_RECORD)]
    assert values == list(promised[TAIL])


async def test_by_the_specification_the_300_acknowledged_records_are_gone(
    backend: LiveBackend, cluster: KafkaCluster, promised: dict[str, tuple[str, ...]]
) -> None:
    chosen = designation((await survey(backend, [TAIL]))[BY_SPECIFICATION], Ranking.SPECIFICATION)
    recorder = MemoryRecorder()
    [election] = await elect(backend, recorder, chosen)
    assert (election.outcome, election.leader) == (Outcome.ELECTED, 1)
    assert recorder.actions == ["elect"], "1 stands first already: nothing to reorder"
    cluster.metadata.wait_isr(TAIL, 1, (1, 2))
    values = [record.value for record in cluster.client.consume(*BY_SPECIFICATION)]
    assert values == [*promised[TAIL][:1000], *(f"tail-{number}" for number in range(500))]
    assert not set(values) & set(promised[TAIL][1000:])


async def test_the_chosen_leads_wherever_it_stood_and_every_order_is_reverted(
    backend: LiveBackend, cluster: KafkaCluster, promised: object
) -> None:
    found = await survey(backend, [ROWS])
    rows = [designation(found[TopicPartition(ROWS, number)]) for number in range(len(ORDERS))]
    elections = await elect(backend, MemoryRecorder(), *rows)
    assert [e.tp for e in elections] == [row.tp for row in rows]
    assert {(e.outcome, e.leader, e.reverted) for e in elections} == {(Outcome.ELECTED, 2, True)}
    for number, order in enumerate(ORDERS):
        wait_leader_and_order(cluster, TopicPartition(ROWS, number), 2, order)
    again = MemoryRecorder()
    elections = await elect(backend, again, *rows)
    assert {(e.outcome, e.leader) for e in elections} == {(Outcome.ALREADY_ONLINE, 2)}
    assert again.actions == []


async def test_a_reorder_whose_answer_is_lost_is_undone_and_then_tried_again(
    cluster: KafkaCluster, row: PlanRow
) -> None:
    async with through_proxies(cluster) as (backend, proxies):
        for proxy in proxies.values():
            proxy.lose_answer(ALTER_PARTITION_REASSIGNMENTS)
        recorder = MemoryRecorder()
        [election] = await elect(backend, recorder, row)
        assert (election.outcome, election.reverted) == (Outcome.FAILED, True), election
        assert "closed by peer" in election.detail
        assert recorder.actions[:2] == ["reorder", "revert"]
        wait_leader_and_order(cluster, row.tp, -1, (1, 2, 3))
        for proxy in proxies.values():
            proxy.lose_answer(ALTER_PARTITION_REASSIGNMENTS)
        [election] = await elect(backend, MemoryRecorder(), row, attempts=1)
        assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 2, True)
        wait_leader_and_order(cluster, row.tp, 2, (1, 2, 3))


async def test_an_election_whose_answer_is_lost_is_read_back(cluster: KafkaCluster, row: PlanRow) -> None:
    async with through_proxies(cluster) as (backend, proxies):
        for proxy in proxies.values():
            proxy.lose_answer(ELECT_LEADERS)
        recorder = MemoryRecorder()
        [election] = await elect(backend, recorder, row)
        assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 2, True)
        assert "unknown" in recorder.ends["2"]
        wait_leader_and_order(cluster, row.tp, 2, (1, 2, 3))


async def test_a_replica_set_that_somebody_else_changes_meanwhile_is_left_alone(
    backend: LiveBackend, cluster: KafkaCluster, row: PlanRow
) -> None:
    """Reverting [1, 2, 3] would bring replica 3 back, from nothing or from its old log."""
    recorder = ActionAt("elect", lambda: incident_steps.assign(cluster, 1, *row.tp, (2, 1)))
    [election] = await elect(backend, recorder, row)
    assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 2, False)
    assert "left alone" in election.detail
    # Our own look meets the change, or else the broker, which refuses the write: on a busy machine either.
    assert recorder.actions in (["reorder", "elect"], ["reorder", "elect", "revert"])
    wait_leader_and_order(cluster, row.tp, 2, (2, 1))


async def test_the_active_controller_dies_before_the_election(
    backend: LiveBackend, cluster: KafkaCluster, row: PlanRow
) -> None:
    quorum = await backend.quorum()
    assert isinstance(quorum, Quorum)
    active = cluster.node(quorum.leader.id)
    try:
        [election] = await elect(backend, ActionAt("elect", active.kill), row, attempts=3)
        assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 2, True), election
        wait_leader_and_order(cluster, row.tp, 2, (1, 2, 3))
    finally:
        active.start()


async def test_the_chosen_broker_dies_before_the_last_look_and_nobody_is_elected(
    backend: LiveBackend, cluster: KafkaCluster, row: PlanRow
) -> None:
    try:
        [election] = await elect(backend, ActionAt("elect", lambda: incident_steps.kill(cluster, 2)), row)
        assert (election.outcome, election.reason) == (Outcome.FAILED, Reason.NOT_ELECTABLE), election
        assert election.reverted
        wait_leader_and_order(cluster, row.tp, -1, (1, 2, 3))
    finally:
        incident_steps.start(cluster, 2)


async def test_the_chosen_broker_dies_before_the_election_and_the_next_by_rank_leads(
    cluster: KafkaCluster, backend: LiveBackend, row: PlanRow, unused: Iterator[TopicPartition]
) -> None:
    """Between the last look and the election: 1 leads, and 3 offsets of epoch 2 that only 2 held are gone.

    A backend keeps to the broker that answered first, or that had the newest metadata then. Where that is 2, the
    election is held before 2 can be killed: another backend takes the next partition.
    """
    killed: list[int] = []

    def kill_2() -> None:
        killed.append(2)
        incident_steps.kill(cluster, 2)

    try:
        while True:
            async with through_proxies(cluster) as (proxied, proxies):
                proxies[1].at(ELECT_LEADERS, kill_2)
                [election] = await elect(proxied, MemoryRecorder(), row)
            if killed:
                break
            assert (election.outcome, election.leader) == (Outcome.ELECTED, 2), election
            row = await offline_row(backend, next(unused))
        assert (election.outcome, election.leader) == (Outcome.OTHER_LEADER, 1), election
        assert election.reverted
        assert (
            election.detail
            == "1 leads, and not 2 as planned; at least 3 offsets of the planned log are cut off"
        )
        wait_leader_and_order(cluster, row.tp, 1, (1, 2, 3))
    finally:
        incident_steps.start(cluster, 2)
