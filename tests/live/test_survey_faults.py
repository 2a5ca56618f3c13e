"""Surveys and elections while brokers hang, die, come back, or are cut off from the controllers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from backends.base.answers import Depth, Outcome, SurveyRequest, SurveyResult
from backends.live.adapter import LiveBackend
from recovery.model import Lineage, PartitionState, ReplicaLog, Standing, TopicPartition, Unknown, Why
from recovery.ranking import Ranking, rank
from recovery.strategy import DecisionKind, Strategy, decide
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live import incident_steps
from tests.live.designated_elections import ActionAt, elect, through_proxies
from tests.live.live_backend import MemoryRecorder, designation, open_backend, survey
from tests.live.request_proxy import FETCH, RequestProxy

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(controllers=1, quorum="static")
CALM, BESIDE, CUT, STALE, LONE = "calm", "beside", "cut", "stale", "lone"
PATIENT = 3600.0
"""Seconds: a survey that only its deadline ends is a test that fails."""


@pytest.fixture(scope="module")
def to_controller(cluster: KafkaCluster) -> Iterator[RequestProxy]:
    """Broker 1 reaches the controller through this proxy only: its configuration names the voters' addresses."""
    node, controller = cluster.node(1), cluster.node(100)
    with RequestProxy(controller.port) as proxy:
        node.stop()
        text = node.properties_file.read_text()
        changed = text.replace(f"@127.0.0.1:{controller.port}", f"@127.0.0.1:{proxy.port}")
        assert changed != text
        node.properties_file.write_text(changed)
        incident_steps.start(cluster, 1)
        cluster.client.create_topic(CALM, [[1, 2, 3], [2, 3, 1]])
        cluster.client.create_topic(BESIDE, [[3, 1]])
        incident_steps.produce(cluster, CALM, 10, "calm")
        yield proxy


@pytest.fixture(autouse=True)
def connected(to_controller: RequestProxy) -> Iterator[None]:
    """No test is cut off because another one failed."""
    yield
    to_controller.open()


@pytest.fixture
async def backend(cluster: KafkaCluster, to_controller: RequestProxy) -> AsyncIterator[LiveBackend]:
    async with open_backend(cluster) as backend:
        yield backend


async def ask(
    backend: LiveBackend, states: tuple[PartitionState, ...], duration: float, depth: Depth = Depth.FULL
) -> SurveyResult:
    async with asyncio.timeout(120):
        return await backend.survey(SurveyRequest(states, duration, depth))


def assert_complete_but_for(result: SurveyResult, silent: int) -> None:
    """Every replica of every other broker is told to the bottom; those of ``silent`` are not, with its reason."""
    contact = result.contact(silent)
    assert contact is not None and contact.problem is not None
    assert [c.broker for c in result.contacts if c.problem] == [silent]
    for row in result.surveys:
        for replica in row.replicas:
            if replica.broker == silent:
                assert replica.log == contact.problem
            else:
                assert isinstance(replica.log, ReplicaLog) and isinstance(replica.log.lineage, Lineage)
                assert replica.log.log_end_offset == 10


async def test_a_broker_that_hangs_is_settled_once_the_controller_has_fenced_it(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    states = (await backend.partitions([CALM])).states
    cluster.node(3).pause()
    try:
        result = await ask(backend, states, PATIENT)
    finally:
        cluster.node(3).resume()
    assert_complete_but_for(result, 3)
    assert {
        replica.standing for row in result.surveys for replica in row.replicas if replica.broker == 3
    } == {Standing.FENCED}
    cluster.metadata.wait_live([3])


async def test_a_broker_that_should_be_up_is_asked_again_until_it_answers(
    cluster: KafkaCluster, to_controller: RequestProxy
) -> None:
    async with through_proxies(cluster) as (backend, proxies):
        states = (await backend.partitions([CALM, BESIDE])).states
        proxies[2].close()

        def come_back(_what: str, done: int, _of: int) -> None:
            if done == 1:
                proxies[2].open()

        async with asyncio.timeout(120):
            result = await backend.survey(SurveyRequest(states, PATIENT, Depth.FULL), come_back)
    assert [contact.problem for contact in result.contacts] == [None, None, None]
    assert all(isinstance(r.log, ReplicaLog) for row in result.surveys for r in row.replicas)


async def test_a_broker_killed_in_the_middle_keeps_what_it_said_and_costs_nothing_else(
    cluster: KafkaCluster, to_controller: RequestProxy
) -> None:
    """It told its log ends and died at the next question; then a partition is asked for that had only this one."""
    cluster.client.create_topic(LONE, [[2]])
    try:
        async with through_proxies(cluster) as (backend, proxies):
            states = (await backend.partitions([CALM])).states
            proxies[2].at(FETCH, cluster.node(2).kill)
            result = await ask(backend, states, PATIENT)
            for row in result.surveys:
                for replica in row.replicas:
                    assert isinstance(replica.log, ReplicaLog) and replica.log.log_end_offset == 10
                    told = replica.log.lineage
                    assert isinstance(told, Unknown) == (replica.broker == 2)
                    if isinstance(told, Unknown):
                        assert told.why is Why.NOT_ANSWERED and "broker 2 at" in told.detail
            lone = await ask(backend, (await backend.partitions([LONE])).states, PATIENT)
        decision = decide(lone.surveys[0], Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
        assert (decision.verdict, decision.reason) == (DecisionKind.NO_CANDIDATE, "no replica answered")
    finally:
        incident_steps.start(cluster, 2)


async def test_a_fenced_broker_that_answers_is_listed_and_never_chosen_until_it_is_back(
    cluster: KafkaCluster, to_controller: RequestProxy
) -> None:
    """1, the only ISR member, is cut off from the controller but not from us; then it comes back by itself."""
    cluster.client.create_topic(CUT, [[1, 3]])
    incident_steps.produce(cluster, CUT, 10, "common")
    incident_steps.kill(cluster, 3)
    incident_steps.wait_all(cluster, [CUT], lambda state: state.isr == (1,), "with 1 alone in the ISR")
    incident_steps.produce(cluster, CUT, 5, "only-on-1")
    async with through_proxies(cluster) as (backend, proxies):
        to_controller.close()
        # 3 must not come back while it can still copy from 1.
        await incident_steps.eventually(
            lambda: backend.partitions([CUT]), lambda told: told.states[0].offline, "1 to lead no more"
        )
        cluster.node(3).start()
        await incident_steps.eventually(
            lambda: survey(backend, [CUT]),
            lambda found: (
                [r.standing for r in found[TopicPartition(CUT, 0)].replicas]
                == [Standing.FENCED, Standing.ELECTABLE]
            ),
            "1 to be fenced and 3 to be back",
        )
        found = (await survey(backend, [CUT]))[TopicPartition(CUT, 0)]
        assert found.state.leader == -1, "1 still takes itself for the leader: its word does not count"
        ranked = rank(found, Ranking.LAST_RECORD)
        assert not isinstance(ranked, Unknown)
        assert [(c.broker, c.key[1]) for c in ranked] == [(1, 15), (3, 10)]
        assert decide(found, Ranking.LAST_RECORD, Strategy.AGGRESSIVE).leader == 3
        assert decide(found, Ranking.LAST_RECORD, Strategy.BALANCED).waits_for == (1,)
        row = designation(found)
        recorder = MemoryRecorder()
        [refused] = await elect(backend, recorder, row._replace(order=(1, 3)))
        assert (refused.outcome, refused.detail) == (Outcome.FAILED, "broker 1 is fenced")
        assert recorder.actions == []

        def come_back() -> None:
            to_controller.open()
            # 1 has shown itself as the leader all the time, under the epoch before the fenced one.
            was = found.state.leader_epoch
            cluster.metadata.wait_partition(
                CUT, 0, lambda state: state.leader == 1 and state.leader_epoch > was, "to be led by 1 again"
            )

        proxies[3].at(FETCH, come_back)
        result = await ask(backend, (found.state,), PATIENT)
        assert [contact.problem for contact in result.contacts] == [None, None]
        [election] = await elect(backend, recorder, row)
        assert (election.outcome, election.leader) == (Outcome.ALREADY_ONLINE, 1)
        assert recorder.actions == []


async def test_an_order_is_reverted_by_way_of_a_broker_that_has_not_seen_it_yet(
    backend: LiveBackend, cluster: KafkaCluster, to_controller: RequestProxy
) -> None:
    """1 is asked for the state and has old metadata: the reorder has not reached it."""
    cluster.client.create_topic(STALE, [[1, 3, 2]])
    cluster.node(1).pause()
    cluster.node(3).pause()
    try:
        incident_steps.wait_all(cluster, [STALE], lambda state: state.isr == (2,), "with 2 alone in the ISR")
        cluster.node(2).kill()
    finally:
        cluster.node(1).resume()
        cluster.node(3).resume()
    cluster.metadata.wait_live([1, 3])
    incident_steps.wait_offline(cluster, [STALE])
    found = (await survey(backend, [STALE]))[TopicPartition(STALE, 0)]
    row = designation(found)._replace(order=(3, 1, 2))

    def only_the_first_is_connected() -> None:
        to_controller.delay(FETCH)
        # Whoever is connected is asked first.
        for pool in (backend._fleet._common, backend._fleet._forwarding):
            other = pool.current(3)
            if other is not None:
                other.close()

    recorder = ActionAt("reorder", only_the_first_is_connected)
    try:
        [election] = await elect(backend, recorder, row)
        assert (await backend.partitions([STALE])).states[0].replicas == (1, 3, 2), "1 knows nothing yet"
    finally:
        to_controller.release()
    assert (election.outcome, election.reverted) == (Outcome.FAILED, True)
    assert election.detail.startswith("the order that was written is not seen to stand: a broker is behind")
    # The intention is recorded before the last look at the state; nobody is elected by an order that nobody shows.
    assert recorder.actions == ["reorder", "elect", "revert"]
    assert set(recorder.ends["2"]["refused"]) == {row.tp}  # type: ignore[call-overload]
    state = cluster.metadata.wait_partition(STALE, 0, lambda state: state.replicas == (1, 3, 2), "reverted")
    assert state.leader == -1
