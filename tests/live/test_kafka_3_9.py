"""Calls, surveys and elections on Kafka 3.9: it has no ELR, lists no fenced broker, and what it lacks is said."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backends.base.answers import Depth, Outcome
from backends.live.adapter import LiveBackend
from backends.live.calls.configs import describe_topic_configs
from backends.live.calls.describe_cluster import cluster_info, describe_cluster
from backends.live.calls.describe_log_dirs import describe_log_dirs
from backends.live.calls.describe_partitions import describe_partitions
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.reassignments import list_reassignments, write_assignments
from backends.live.check import NO_GROUPS, check
from backends.live.client.addresses import Address
from backends.live.codec.offered_versions import capabilities
from backends.live.nodes.log_dir_listing import LogDirListing
from recovery.model import Lineage, Standing, TopicPartition, Unknown, Why
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.log_files import cut_log, read_log, replica_directory
from tests.live import incident_steps
from tests.live.advised_operator import AGGRESSIVE, Night, Operator, create, left
from tests.live.broker_fleet import fleet_of
from tests.live.command_runner import CommandRunner
from tests.live.designated_elections import elect, wait_leader_and_order
from tests.live.incident_steps import Counts
from tests.live.live_backend import MemoryRecorder, designation, open_backend, survey
from tests.live.rescued_records import expected, values

CLUSTER = ClusterSpec(version="3.9.1", controllers=1)
TP = TopicPartition("orders", 0)
CALLS = "calls"


@pytest.fixture(scope="module", autouse=True)
def called_topic(cluster: KafkaCluster) -> None:
    """The only topic in the tests that come before those of an incident."""
    cluster.client.create_topic(CALLS, [[1, 2], [2, 1]])


async def test_elr_and_fenced_brokers_are_not_offered_rather_than_empty(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(1)
        info = cluster_info(await describe_cluster(conn), 1, conn.features)
        partitions = await describe_partitions(conn, [CALLS])
    assert info.elr_enabled is False
    assert info.release.startswith("3.9")
    assert {b.id: b.fenced for b in info.brokers} == {1: None, 2: None, 3: None}
    assert {(s.elr, s.last_known_elr) for s in partitions.states} == {(None, None)}


async def test_every_other_call_answers(whole_cluster: KafkaCluster) -> None:
    first = TopicPartition(CALLS, 0)
    async with fleet_of(whole_cluster) as fleet:
        conn = await fleet.connection(2)
        quorum = await fleet.describe_quorum(conn)
        dirs = await describe_log_dirs(conn)
        configs = await describe_topic_configs(conn, [CALLS])
        written = await write_assignments(conn, {first: (2, 1)})
        restored = await write_assignments(conn, {first: (1, 2)})
        elected = await elect_leaders(conn, [first], preferred=False)
        under_way = await list_reassignments(conn)
    assert [key.directory_id for key in quorum.voters.keys] == [whole_cluster.node(100).directory_id]
    assert {r.tp.topic for d in dirs for r in d.replicas} == {CALLS}
    assert not isinstance(configs[CALLS], Unknown)
    assert written == restored == {first: None}
    refused = elected[first]
    assert refused is not None
    assert refused.not_needed
    assert under_way == ()


async def test_what_it_does_not_offer_is_said(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        conns = [await fleet.connection(broker) for broker in (1, 2, 3)]
        offered = capabilities({c.broker or -1: c.api_keys for c in conns}, conns[0].features)
    calls = {call.call: call.versions for call in offered.calls}
    assert calls["DescribeCluster"] == (0, 1)
    assert calls["AlterPartitionReassignments"] == (0, 0)
    native = calls["GetReplicaLogInfo"]
    assert isinstance(native, Unknown)
    assert native.why is Why.NOT_OFFERED
    assert "eligible.leader.replicas.version" not in offered.features
    assert offered.designated_elections == "reorder, elect, revert (emulated)"


async def test_a_fenced_broker_is_not_listed_and_its_address_is_remembered(
    whole_cluster: KafkaCluster,
) -> None:
    async with fleet_of(whole_cluster) as fleet:
        whole_cluster.node(2).pause()
        whole_cluster.metadata.wait_fenced(2)
        async with asyncio.timeout(20):
            while 2 in {b.id for b in (await fleet.refresh()).value.brokers}:
                pass
        assert fleet.address(2) == Address("127.0.0.1", whole_cluster.node(2).port)
    async with fleet_of(whole_cluster) as fleet:
        # Nobody lists it, and it is one of the bootstrap servers: the node itself says who it is.
        assert fleet.address(2) is None
        whole_cluster.node(2).resume()
        assert (await fleet.connection(2)).verified


async def test_check_says_what_an_older_cluster_lacks(whole_cluster: KafkaCluster) -> None:
    async with fleet_of(whole_cluster) as fleet:
        found = await check(fleet, LogDirListing(fleet).everything)
    assert {r.problem for r in found.reach} == {None}
    assert {r.fenced for r in found.reach} == {None}
    assert {right.granted for right in found.rights} <= {True, NO_GROUPS}


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> tuple[str, ...]:
    """2, the last ISR member, is dead; 1 and 3 are alive, 3 with more of the log. Returns the records of 3."""
    cluster.client.create_topic(TP.topic, [[1, 2, 3]])
    kept = incident_steps.produce(cluster, TP.topic, 10, "common")
    paused = [cluster.node(broker) for broker in (1, 3)]
    try:
        paused[0].pause()
        incident_steps.wait_all(
            cluster, [TP.topic], lambda state: set(state.isr) == {2, 3}, "in sync on 2 and 3"
        )
        kept += incident_steps.produce(cluster, TP.topic, 5, "kept")
        paused[1].pause()
        incident_steps.wait_all(
            cluster, [TP.topic], lambda state: state.isr == (2,), "with 2 alone in the ISR"
        )
        incident_steps.produce(cluster, TP.topic, 5, "only-on-2", acks="1")
        cluster.node(2).kill()
    finally:
        for node in paused:
            node.resume()
    cluster.metadata.wait_live([1, 3])
    incident_steps.wait_offline(cluster, [TP.topic])
    return kept


@pytest.fixture
async def backend(cluster: KafkaCluster, incident: object) -> AsyncIterator[LiveBackend]:
    async with open_backend(cluster) as backend:
        yield backend


async def test_every_log_is_told_and_what_is_not_offered_is_said(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    found = (await survey(backend, [TP.topic], depth=Depth.FULL))[TP]
    assert (found.state.leader, found.state.isr) == (-1, (2,))
    assert (found.state.elr, found.state.last_known_elr) == (None, None)
    assert [r.standing for r in found.replicas] == [Standing.ELECTABLE, Standing.FENCED, Standing.ELECTABLE]
    dead = found.replica(2)
    assert dead is not None and isinstance(dead.log, Unknown)
    for broker in (1, 3):
        told, disk = found.log(broker), read_log(cluster.node(broker), *TP)
        assert told is not None and told.log_end_offset == disk.end
        assert told.lineage == Lineage(disk.last_epoch, disk.spans, 0)
    waiting = decide(found, Ranking.LAST_RECORD, Strategy.BALANCED)
    assert (waiting.verdict, waiting.waits_for) == (DecisionKind.WAIT, (2,))


async def test_the_chosen_leads_and_the_order_is_reverted(
    backend: LiveBackend, cluster: KafkaCluster, incident: tuple[str, ...]
) -> None:
    row = designation((await survey(backend, [TP.topic]))[TP])
    assert row.order == (3, 1, 2)
    recorder = MemoryRecorder()
    [election] = await elect(backend, recorder, row)
    assert (election.outcome, election.leader, election.reverted) == (Outcome.ELECTED, 3, True), election
    assert recorder.actions == ["reorder", "elect", "revert"]
    wait_leader_and_order(cluster, TP, 3, (1, 2, 3))
    cluster.metadata.wait_isr(*TP, (1, 3))
    assert [record.value for record in cluster.client.consume(*TP)] == list(incident)
    [again] = await elect(backend, recorder, row)
    assert (again.outcome, again.leader) == (Outcome.ALREADY_ONLINE, 3)
    assert recorder.actions == ["reorder", "elect", "revert"]


FIRST, EARLY, LATE = 20, 60, 540
STANDING = ("standing", "standing-waited")
SHORTENED = ("shortened", "shortened-forced")


@pytest.fixture(scope="module")
def power_cut(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Night:
    """3 drops out, 1 dies, 2 dies last; for half of the topics 2 loses its tail, for the others 1 does."""
    cluster.bring_all_up()
    operator = Operator(cluster, tmp_path_factory.mktemp("operator"))
    every = (*STANDING, *SHORTENED)
    create(cluster, every, [1, 2, 3], min_insync_replicas=2)
    for topic in every:
        incident_steps.produce(cluster, topic, FIRST, "first")
        incident_steps.produce(cluster, topic, EARLY, "early")
    wait_marks(cluster, 3, SHORTENED, FIRST + EARLY)
    incident_steps.pause(cluster, 3)
    for topic in every:
        incident_steps.produce(cluster, topic, LATE, "late")
    incident_steps.kill(cluster, 1)
    incident_steps.wait_all(cluster, every, lambda state: state.isr == (2,), "with 2 alone in the ISR")
    incident_steps.kill(cluster, 2)
    for topic in STANDING:
        cut_log(cluster.node(2), topic, 0, FIRST + EARLY)
    for topic in SHORTENED:
        cut_log(cluster.node(1), topic, 0, FIRST)
    incident_steps.start(cluster, 1, 3)
    incident_steps.wait_offline(cluster, every)

    advice = {topic: operator.advised(topic) for topic in (STANDING[0], SHORTENED[0])}
    accepted = "--accept-unchecked", "--reason", "the host of 1 kept power"
    advice["accepted"] = operator.advised(STANDING[0], *accepted)
    operator.elect(STANDING[0])
    advice[SHORTENED[1]] = operator.advised(SHORTENED[1], *AGGRESSIVE)
    operator.elect(SHORTENED[1])
    incident_steps.start(cluster, 2)
    incident_steps.wait_all(cluster, every, lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    return Night(advice, {topic: left(cluster, topic) for topic in every})


def wait_marks(cluster: KafkaCluster, broker: int, topics: tuple[str, ...], offset: int) -> None:
    """Until the broker has checkpointed that high watermark for each topic."""
    file = replica_directory(cluster.node(broker), topics[0], 0).parent / "replication-offset-checkpoint"
    marks = {f"{topic} 0 {offset}" for topic in topics}
    wait_until(lambda: marks <= set(file.read_text().splitlines()), f"the checkpoint of broker {broker}", 30)


@pytest.mark.long
def test_another_replica_that_holds_everything_is_elected_if_its_host_kept_power(power_cut: Night) -> None:
    advice = power_cut.advice[STANDING[0]]
    assert (advice.step["kind"], advice.step["brokers"], list(advice.down)) == ("bring back", [2], [])
    assert "If its host lost power, or nobody knows, read its disk first" in advice.step["text"]
    assert "Or elect 1: not fully checked." in advice.step["text"]
    assert power_cut.advice["accepted"].acknowledged(1)["verdict"] == "none, in doubt"
    assert power_cut.left[STANDING[0]] == {"first": FIRST, "early": EARLY, "late": LATE}
    assert power_cut.left[STANDING[1]] == {"first": FIRST, "early": EARLY}, "broker 2 was started first"


@pytest.mark.long
def test_a_witness_that_visibly_lost_records_lets_nobody_be_elected(power_cut: Night) -> None:
    """1 left the ISR after 3 and ends below what 3 knows as committed: 2 alone may have the rest."""
    advice, forced = (power_cut.advice[topic] for topic in SHORTENED)
    assert (advice.step["kind"], advice.step["brokers"]) == ("bring back", [2])
    verdict = forced.acknowledged(3)
    assert verdict["verdict"] != "none"
    assert {"kind": "lost records that it had", "brokers": [1], "offset": FIRST + EARLY} in verdict[
        "evidence"
    ]
    assert power_cut.left[SHORTENED[0]] == {"first": FIRST, "early": EARLY, "late": LATE}
    assert power_cut.left[SHORTENED[1]] == {"first": FIRST, "early": EARLY}, "broker 3 was elected"


@pytest.mark.long
def test_a_dead_last_member_of_an_isr_is_named_though_no_broker_lists_it(
    whole_cluster: KafkaCluster,
) -> None:
    cluster = whole_cluster
    cluster.client.create_topic("alone", [[3]])
    cluster.node(3).kill()
    cluster.metadata.wait_fenced(3)
    ended = CommandRunner(cluster.directory, cluster.bootstrap())("status")
    cluster.bring_all_up()
    assert "broker 3 down" in ended.out.splitlines()[0], ended


def test_below_min_isr_consumers_see_nothing_new_though_there_is_no_elr(cluster: KafkaCluster) -> None:
    """The simulator's rule for the high watermark (KIP-966), which no feature guards."""
    cluster.bring_all_up()
    cluster.client.create_topic("hidden", [[1, 2]], {"min.insync.replicas": "2"})
    seen = incident_steps.produce(cluster, "hidden", 20, "seen")
    incident_steps.pause(cluster, 2)
    incident_steps.wait_all(cluster, ["hidden"], lambda state: state.isr == (1,), "with 1 alone in the ISR")
    hidden = incident_steps.produce(cluster, "hidden", 7, "hidden", acks="1")
    assert values(cluster, "hidden") == Counter(seen)
    incident_steps.start(cluster, 2)
    incident_steps.wait_all(cluster, ["hidden"], lambda state: set(state.isr) == {1, 2}, "in sync on 1 and 2")
    assert values(cluster, "hidden") == Counter((*seen, *hidden))


def test_what_the_election_cuts_off_is_read_before_it_and_written_back(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    """The last one here: broker 3 stays dead. An independent consumer counts."""
    cluster.bring_all_up()
    counts = Counts(1000, 500, 300)
    cluster.client.create_topic("tail", [[1, 2, 3]], {"min.insync.replicas": "1"})
    incident_steps.stale_long_tails(cluster, {"tail": counts})
    console = CommandRunner(tmp_path, cluster.bootstrap(), cluster.metadata.wait_caught_up)
    agreed = ("--yes", "--reason", "a test")
    console.plan_aggressively("tail")
    status, applied = console.json("apply", "plan.json", "--rescue", "saved", *agreed)
    assert status == 0, applied
    (branch,) = applied["rescue"]["branches"]
    assert (branch["broker"], branch["startOffset"], branch["endOffset"]) == (1, 1000, 1500)
    incident_steps.wait_all(cluster, ["tail"], lambda state: set(state.isr) == {1, 2}, "in sync on 1 and 2")
    assert values(cluster, "tail") == expected(Counts(1000, 0, 300)), "the election has cut the tail off"
    ended = console("restore", "saved", "--to-source", *agreed)
    assert ended.status == 0 and "500 records written back; 500 counted" in ended.out, ended
    assert values(cluster, "tail") == expected(counts)
