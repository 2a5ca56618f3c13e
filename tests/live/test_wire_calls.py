"""Every call of the wire layer on a running cluster, and brokers that do not answer."""

from __future__ import annotations

import asyncio

import pytest

from backends.base.answers import LogDir
from backends.base.check_report import CheckReport
from backends.live.calls.configs import describe_broker_configs, describe_topic_configs
from backends.live.calls.describe_cluster import cluster_info, describe_cluster
from backends.live.calls.describe_log_dirs import describe_log_dirs
from backends.live.calls.describe_partitions import WHOLE_TOPIC, describe_partitions, describe_some
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.reassignments import list_reassignments, write_assignments
from backends.live.check import NO_GROUPS, check
from backends.live.codec.apis import USES, Api
from backends.live.codec.offered_versions import capabilities
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem
from backends.live.nodes.brokers import BrokerFleet
from backends.live.nodes.log_dir_listing import LogDirListing
from backends.live.nodes.quorum_cache import up_to_date_brokers
from recovery.model import TopicPartition, Unknown, Why
from testbed.kafka import KafkaCluster
from tests.live import broker_fleet
from tests.live.broker_fleet import ASSIGNMENTS, fleet_of
from tests.live.incident_steps import eventually

# Broker 3 holds all of the wide topic: it is paused at times, and never killed. A page is a tenth of the usual one.
CLUSTER = broker_fleet.CLUSTER
SMALL, WIDE = broker_fleet.ORDERS, "wide"
WIDTH = 500


@pytest.fixture(scope="module", autouse=True)
def topics(cluster: KafkaCluster) -> None:
    broker_fleet.create_orders(cluster)
    cluster.client.create_topic(WIDE, [[3]] * WIDTH)


async def test_brokers_features_and_quorum_are_described(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(2)
        info = cluster_info(await describe_cluster(conn, operations=True), 2, conn.features)
        quorum = await fleet.describe_quorum(conn)
    assert info.cluster_id == whole_cluster.cluster_id
    assert {b.id: (b.port, b.fenced) for b in info.brokers} == {
        node.id: (node.port, False) for node in whole_cluster.brokers.values()
    }
    assert info.elr_enabled is True
    assert info.release.startswith("4.3")
    assert {key.id: key.directory_id for key in quorum.voters.keys} == {
        node.id: node.directory_id for node in whole_cluster.controllers.values()
    }
    assert {held.key.id for held in quorum.observer_progress} == {1, 2, 3}
    assert {(voter.key.id, at.port) for voter in quorum.voters.voters for at in voter.endpoints} == {
        (node.id, node.port) for node in whole_cluster.controllers.values()
    }


async def test_more_partitions_than_a_broker_gives_at_once_come_page_by_page(
    whole_cluster: KafkaCluster,
) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(1)
        everything = await describe_partitions(conn)
        in_small_pages = await describe_partitions(conn, [WIDE, SMALL], page=70)
    assert everything.visible_only
    assert len(everything.states) == WIDTH + len(ASSIGNMENTS)
    assert {s.tp for s in everything.states} == {s.tp for s in in_small_pages.states}
    wide = [s for s in in_small_pages.states if s.topic == WIDE]
    assert [s.partition for s in wide] == list(range(WIDTH))
    assert {s.replicas for s in wide} == {(3,)}
    assert all(s.elr == () and s.last_known_elr == () and not s.offline for s in wide)
    assert len({id(s.replicas) for s in wide}) == 1, "equal tuples are kept once"


async def test_some_partitions_come_without_the_rest_of_their_topic(whole_cluster: KafkaCluster) -> None:
    some = [TopicPartition(WIDE, n) for n in range(50, 450)]
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(1)
        of_one = await describe_some(conn, reversed(some))
        of_both = await describe_some(conn, [*some[:10], TopicPartition(SMALL, 2)])
        gone = await describe_some(conn, [TopicPartition(SMALL, 7), TopicPartition("nothing", 0)])
        no_more = await describe_some(conn, [TopicPartition(SMALL, 7)])
    assert [s.tp for s in of_one.states] == some
    assert {s.tp for s in of_both.states} >= {TopicPartition(SMALL, 2), *some[:10]}
    assert len(of_both.states) < WIDTH
    assert TopicPartition("nothing", WHOLE_TOPIC) in gone.unknown
    assert not [s for s in (*gone.states, *no_more.states) if s.partition == 7]


async def test_a_topic_that_does_not_exist_is_unknown_and_not_empty(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(1)
        partitions = await describe_partitions(conn, [SMALL, "nothing"])
        configs = await describe_topic_configs(conn, [SMALL, "nothing"])
    assert {s.topic for s in partitions.states} == {SMALL}
    assert partitions.unknown == {
        TopicPartition("nothing", WHOLE_TOPIC): Unknown(Why.FAILED, "topic nothing does not exist")
    }
    assert partitions.hidden == ()
    of_small = configs[SMALL]
    assert not isinstance(of_small, Unknown)
    assert of_small["min.insync.replicas"] == "2"
    assert of_small["cleanup.policy"] == "delete"
    assert isinstance(configs["nothing"], Unknown)


async def test_log_dirs_hold_each_replica_once(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        answers = await asyncio.gather(*(describe(fleet, broker) for broker in (1, 2, 3)))
        conn = await fleet.connection(3)
        few = await describe_log_dirs(conn, [TopicPartition(SMALL, 1)])
        settings = await describe_broker_configs(conn, 3, ["node.id", "log.dirs"])
    for broker, dirs in zip((1, 2, 3), answers, strict=True):
        assert {d.path for d in dirs} == {str(path) for path in whole_cluster.node(broker).log_dirs}
        held = [r.tp for d in dirs for r in d.replicas]
        assert len(held) == len(set(held)) == len(ASSIGNMENTS) + (WIDTH if broker == 3 else 0)
        assert all(d.error is None and 0 < d.usable_bytes < d.total_bytes for d in dirs)
    assert [r.tp for d in few for r in d.replicas] == [TopicPartition(SMALL, 1)]
    assert not isinstance(settings, Unknown)
    assert settings["node.id"] == "3"


async def describe(fleet: BrokerFleet, broker: int) -> tuple[LogDir, ...]:
    return await describe_log_dirs(await fleet.connection(broker))


async def test_what_the_controller_refuses_is_told_by_partition(whole_cluster: KafkaCluster) -> None:
    first, second, missing = TopicPartition(SMALL, 0), TopicPartition(SMALL, 1), TopicPartition("nothing", 0)
    async with fleet_of(whole_cluster) as fleet:
        written = await fleet.any(
            lambda conn: write_assignments(conn, {first: (2, 1, 3), second: (1, 2, 9), missing: (1, 2, 3)}),
            again=False,
        )
        shrunk = await fleet.any(lambda conn: write_assignments(conn, {second: (2, 3)}), again=False)
        conn = await fleet.connection(written.broker)
        # A broker describes what it has heard from the controller so far.
        await eventually(
            lambda: describe_partitions(conn, [SMALL]),
            lambda answer: answer.states[0].replicas == (2, 1, 3),
            f"broker {written.broker} to hear of the order",
        )
        restored = await fleet.any(lambda conn: write_assignments(conn, {first: (1, 2, 3)}), again=False)
        elected = await fleet.any(
            lambda conn: elect_leaders(conn, [first, missing], preferred=False), again=False
        )
        under_way = await list_reassignments(await fleet.connection(1), [first, missing])
    assert written.value[first] is None
    assert str(written.value[second]).startswith("INVALID_REPLICA_ASSIGNMENT: ")
    unknown_topic = written.value[missing]
    assert unknown_topic is not None
    assert (unknown_topic.name, unknown_topic.retryable) == ("UNKNOWN_TOPIC_OR_PARTITION", False)
    changed_factor = shrunk.value[second]
    assert changed_factor is not None
    assert changed_factor.name == "INVALID_REPLICATION_FACTOR"
    assert restored.value == {first: None}
    not_needed = elected.value[first]
    assert not_needed is not None
    assert not_needed.not_needed
    assert under_way == ()


async def test_what_the_cluster_offers_is_told_from_all_brokers(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conns = [await fleet.connection(broker) for broker in (1, 2, 3)]
        offered = capabilities({c.broker or -1: c.api_keys for c in conns}, conns[0].features)
    calls = {call.call: call.versions for call in offered.calls}
    assert calls["DescribeTopicPartitions"] == (0, 0)
    assert calls["AlterPartitionReassignments"] == (0, 1)
    for native in ("GetReplicaLogInfo", "ElectLeaders v3"):
        lacking = calls[native]
        assert isinstance(lacking, Unknown)
        assert lacking.why is Why.NOT_OFFERED
    assert offered.features["eligible.leader.replicas.version"] == 1
    assert offered.replica_logs == "ListOffsets+Fetch (emulated)"
    assert offered.designated_elections == "reorder, elect, revert (emulated)"


async def test_without_describe_topic_partitions_metadata_tells_the_same_but_elr(
    whole_cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(1)
        full = await describe_partitions(conn)
        # No release from 3.9 on lacks these calls in KRaft mode; a broker in ZooKeeper mode does.
        older = {k: v for k, v in conn.api_keys.items() if k not in (60, 75)} | {55: (0, 1)}
        monkeypatch.setattr(BrokerConnection, "api_keys", older)
        monkeypatch.setattr(BrokerConnection, "highest", lambda _, api: highest_of(older.get(api), api))
        fallen_back = await describe_partitions(conn)
        named = await describe_partitions(conn, [SMALL, "nothing"])
        cluster = await describe_cluster(conn)
        quorum = await fleet.describe_quorum(conn)
    assert {s._replace(elr=None, last_known_elr=None) for s in full.states} == set(fallen_back.states)
    assert [s.topic for s in named.states] == [SMALL] * 3
    assert TopicPartition("nothing", WHOLE_TOPIC) in named.unknown
    assert cluster.cluster_id == whole_cluster.cluster_id
    assert {b.fenced for b in cluster.brokers} == {None}
    assert {key.id for key in quorum.voters.keys} == {100, 101, 102}
    assert not any(voter.endpoints for voter in quorum.voters.voters)


def highest_of(served: tuple[int, int] | None, api: Api) -> int | None:
    return max((v for v in USES[api].sent if served and served[0] <= v <= served[1]), default=None)


async def test_a_paused_broker_takes_the_connection_and_does_not_answer(whole_cluster: KafkaCluster) -> None:
    whole_cluster.node(3).pause()
    async with fleet_of(whole_cluster) as fleet:
        with pytest.raises(BrokerError) as caught:
            await fleet.connection(3)
        described = await fleet.any(describe_partitions)
    assert caught.value.trouble is ConnectionProblem.NO_ANSWER
    assert caught.value.reached
    assert caught.value.unknown.why is Why.NOT_ANSWERED
    assert str(caught.value).startswith(f"broker 3 at 127.0.0.1:{whole_cluster.node(3).port}: ")
    assert len(described.value.states) == WIDTH + len(ASSIGNMENTS)


async def test_a_request_that_hangs_costs_its_own_connection_only(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        hung, other = await fleet.connection(2), await fleet.connection(1)
        whole_cluster.node(2).pause()
        with pytest.raises(BrokerError) as caught:
            await describe_partitions(hung, timeout=0.5)
        assert len((await describe_partitions(other)).states) == WIDTH + len(ASSIGNMENTS)
        assert (caught.value.trouble, caught.value.sent) == (ConnectionProblem.NO_ANSWER, True)
        assert (hung.closed, other.closed) == (True, False)
        whole_cluster.node(2).resume()
        again = await fleet.connection(2)
        assert again.identity != hung.identity, "an answer on it is not from the connection of before"


async def test_a_killed_broker_is_refused_and_costs_nothing_else(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        dying = await fleet.connection(1)
        whole_cluster.node(1).kill()
        whole_cluster.node(1).wait_exit()
        with pytest.raises(BrokerError) as on_the_old:
            await describe_log_dirs(dying)
        with pytest.raises(BrokerError) as on_a_new:
            await fleet.connection(1)
        answer = await fleet.any(describe_cluster)
        await until_fenced(fleet, 1)
        info = await fleet.refresh()
    assert dying.closed
    assert on_the_old.value.trouble is ConnectionProblem.CLOSED
    assert on_a_new.value.trouble is ConnectionProblem.REFUSED
    assert not on_a_new.value.reached
    assert answer.broker in (2, 3)
    assert {b.id: b.fenced for b in info.value.brokers} == {1: True, 2: False, 3: False}


async def test_a_broker_cut_off_from_the_controllers_is_asked_last(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        await fleet.connection(1)
        whole_cluster.node(1).pause()
        whole_cluster.metadata.wait_fenced(1)
        quorum = await fleet.quorum(max_age=0.0)
        told = await fleet.any(describe_cluster)
    assert up_to_date_brokers(quorum) == frozenset((2, 3, 100, 101, 102))
    assert told.broker in (2, 3)
    assert told.caught_up


async def test_controllers_that_hang_keep_no_brokers_own_answer_waiting(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        own = await fleet.connection(1)
        for controller in whole_cluster.controllers.values():
            controller.pause()
        asking = asyncio.ensure_future(fleet.any(list_reassignments, forwarded=True))
        quorum = asyncio.ensure_future(fleet.quorum(max_age=0.0))
        assert len(await describe_log_dirs(own)) == 2
        found = await quorum
        partitions = await fleet.any(lambda conn: describe_partitions(conn, [SMALL]))
        assert not asking.done()
        assert await fleet.connection(1) is own
        asking.cancel()
    assert isinstance(found, Unknown)
    assert found.why is Why.NOT_ANSWERED
    assert partitions.caught_up is None, "who has the latest metadata cannot be told, which is not 'nobody'"
    assert len(partitions.value.states) == len(ASSIGNMENTS)


async def until_fenced(fleet: BrokerFleet, broker: int) -> None:
    """Every broker that is alive says so: each learns it some milliseconds after the controller."""
    for other in {1, 2, 3} - {broker}:
        for _ in range(600):
            described = await describe_cluster(await fleet.connection(other))
            if broker in {b.id for b in described.brokers if b.fenced}:
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail(f"broker {other} does not see broker {broker} fenced")


async def test_check_finds_a_healthy_cluster_and_names_who_is_gone(whole_cluster: KafkaCluster) -> None:
    whole_cluster.node(2).kill()
    async with fleet_of(whole_cluster) as fleet:
        await until_fenced(fleet, 2)
        found: CheckReport = await check(fleet, LogDirListing(fleet).everything)
    problems = {r.broker: r.problem for r in found.reach}
    assert [problems[1], problems[3]] == [None, None]
    assert problems[2] is not None
    assert "connection refused" in problems[2].detail
    assert {r.broker: r.fenced for r in found.reach} == {1: False, 2: True, 3: False}
    assert {right.granted for right in found.rights} <= {True, NO_GROUPS}
    assert found.hidden == ()


async def ask(fleet: BrokerFleet, broker: int) -> None:
    await describe_cluster(await fleet.connection(broker), timeout=60.0)


async def test_closing_ends_what_is_in_flight(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        asked, connected = 1, 2
        await fleet.connection(asked)
        whole_cluster.node(asked).pause()
        whole_cluster.node(connected).pause()
        asking = asyncio.ensure_future(ask(fleet, asked))
        connecting = asyncio.ensure_future(fleet.connection(connected))
        await asyncio.sleep(0)
        await fleet.close()
        ended = await asyncio.gather(asking, connecting, return_exceptions=True)
        with pytest.raises(BrokerError):
            await fleet.connection(1)
    assert [
        str(e) for e in ended if isinstance(e, BrokerError) and e.trouble is ConnectionProblem.CLOSED
    ] == [
        f"broker {asked} at 127.0.0.1:{whole_cluster.node(asked).port}: connection closed",
        f"broker {connected}: closed here",
    ]
