"""The min ISR that each broker obeys, which is not always the one that the controllers have (Kafka 4.3.1)."""

from __future__ import annotations

from dataclasses import replace

from backends.simulator.broker.broker_min_isr import replayed
from backends.simulator.events import Acknowledged, Event
from backends.simulator.loop import SECOND
from backends.simulator.messages import (
    CreateTopic,
    DeleteTopic,
    Done,
    ElectLeaders,
    Error,
    Produce,
    ProduceReply,
    SetConfig,
    TopicRemoved,
)
from backends.simulator.network import broker as broker_node
from backends.simulator.topology import ProducerSpec, Topology
from backends.simulator.world import World
from recovery.controller.controller_errors import ControllerError
from recovery.controller.rules import MIN_ISR
from recovery.controller.transition_targets import ElectionKind
from recovery.metadata_log.records import ConfigRecord, ResourceType
from recovery.model import NO_LEADER
from tests.unit.simulator.clusters import (
    FOO,
    QUICK,
    ask,
    cluster,
    controllers,
    end,
    foo,
    tell,
    topology,
    until,
    without_elr,
)


def set_min_isr(world: World, value: int | None, *, topic: str = "", broker: int | None = None) -> None:
    given = None if value is None else str(value)
    assert tell(world, SetConfig(topic, MIN_ISR, given, broker)) == Done(None)


def obeys(world: World, broker: int) -> int:
    return world.brokers[broker].state.effective_min_isr(FOO)


def described(world: World, broker: int) -> str:
    """What the broker says when it is asked for the topic's configuration."""
    return str(world.brokers[broker].state.min_isr.levels("foo").in_force)


def written(world: World, broker: int, records: int = 10) -> Error | None:
    """A producer's batch with acks=all; why it was refused."""
    answer = ask(world, Produce(FOO, records, -1), broker)
    assert isinstance(answer, ProduceReply)
    return answer.error


def made_again(world: World, min_isr: int | None = None) -> None:
    assert tell(world, DeleteTopic("foo")) == Done(None)
    assert tell(world, CreateTopic("foo", ((1, 2, 3),), min_isr)) == Done(None)
    until(world, lambda: all(FOO in disk.logs for disk in world.disks.values()))


def alone(world: World, leader: int) -> None:
    """Only ``leader`` is left in the ISR, and lives."""
    for broker in {1, 2, 3} - {leader}:
        world.shut_down_broker(broker)
    until(world, lambda: foo(world).leader == leader and foo(world).isr == (leader,))
    world.loop.run_for(SECOND)


def files(*values: int) -> Topology:
    """One value in each broker's file, and nothing set dynamically."""
    made = topology(acks=None, config=without_elr())
    brokers = tuple(replace(spec, min_isr=value) for spec, value in zip(made.brokers, values, strict=True))
    return replace(made, brokers=brokers, min_isr=1)


def test_a_value_for_one_broker_is_obeyed_by_that_broker_alone() -> None:
    world = cluster(topology(min_isr=1, acks=None, config=without_elr()))
    set_min_isr(world, 2, broker=1)
    world.loop.run_for(SECOND)
    assert [obeys(world, broker) for broker in (1, 2, 3)] == [2, 1, 1]
    assert [described(world, broker) for broker in (1, 2, 3)] == ["2", "1", "1"]
    assert world.image.effective_min_isr("foo") == 1, "the controllers go by their own value"
    alone(world, 1)
    assert written(world, 1) is Error.NOT_ENOUGH_REPLICAS
    set_min_isr(world, None, broker=1)
    world.loop.run_for(SECOND)
    assert written(world, 1) is None


def test_a_broker_without_any_other_value_obeys_its_own_file() -> None:
    world = cluster(files(2, 2, 1))
    assert [obeys(world, broker) for broker in (1, 2, 3)] == [2, 2, 1]
    alone(world, 3)
    assert written(world, 3) is None
    world.files[3] = 2
    world.kill_broker(3)
    until(world, lambda: foo(world).leader == NO_LEADER)
    world.start_broker(3)
    until(world, lambda: foo(world).leader == 3)
    world.loop.run_for(SECOND)
    assert written(world, 3) is Error.NOT_ENOUGH_REPLICAS, "a file is read at the start"


def test_the_order_is_topic_then_broker_then_cluster_then_file() -> None:
    world = cluster(files(1, 1, 1))
    for value, where in ((2, {}), (3, {"broker": 1}), (2, {"topic": "foo"})):
        set_min_isr(world, value, **where)
        world.loop.run_for(SECOND)
        assert obeys(world, 1) == value
    assert obeys(world, 2) == 2


def test_with_the_elr_no_broker_has_a_value_of_its_own() -> None:
    world = cluster(topology(acks=None))
    refused = tell(world, SetConfig("", MIN_ISR, "1", 1))
    assert refused.refusal.error is ControllerError.INVALID_CONFIG


def test_a_topic_that_is_made_again_has_none_of_the_old_values() -> None:
    world = cluster(topology(min_isr=1, acks=None, config=without_elr()))
    set_min_isr(world, 2, topic="foo")
    made_again(world)
    world.loop.run_for(SECOND)
    assert [obeys(world, broker) for broker in (1, 2, 3)] == [1, 1, 1]
    assert {end(world, broker) for broker in (1, 2, 3)} == {0}
    alone(world, 1)
    assert written(world, 1) is None


def test_a_broker_that_starts_again_brings_the_old_value_of_a_topic_back() -> None:
    """It replays the log in one delta, in which the removal finds nothing to remove (ConfigurationsDelta)."""
    world = cluster(topology(min_isr=1, acks=None, config=without_elr()))
    set_min_isr(world, 2, topic="foo")
    made_again(world)
    world.shut_down_broker(1)
    until(world, lambda: 1 not in world.brokers)
    world.start_broker(1)
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})
    assert [obeys(world, broker) for broker in (1, 2, 3)] == [2, 1, 1]
    assert [described(world, broker) for broker in (1, 2, 3)] == ["2", "1", "1"]
    assert world.image.effective_min_isr("foo") == 1


def test_a_removal_takes_along_only_what_was_known_before_the_delta() -> None:
    was = ConfigRecord(ResourceType.TOPIC, "foo", MIN_ISR, "2")
    other = ConfigRecord(ResourceType.TOPIC, "foo", "unclean.leader.election.enable", "true")
    foo_topic = (ResourceType.TOPIC, "foo")
    before = replayed({}, [was])
    assert replayed(before, [TopicRemoved("foo")]) == {}
    assert replayed({}, [was, TopicRemoved("foo")]) == {foo_topic: {MIN_ISR: "2"}}
    # Whatever else was known of the topic makes the removal whole.
    assert replayed(replayed({}, [other]), [was, TopicRemoved("foo")]) == {}


def test_a_log_of_a_deleted_topic_is_not_continued_by_a_broker_that_was_down() -> None:
    world = cluster(topology(acks=None))
    world.kill_broker(3)
    until(world, lambda: foo(world).isr == (1, 2))
    assert end(world, 3) == 1000
    assert tell(world, DeleteTopic("foo")) == Done(None)
    assert tell(world, CreateTopic("foo", ((1, 2, 3),), 1)) == Done(None)
    world.loop.run_for(SECOND)
    assert written(world, 1, 7) is None
    world.start_broker(3)
    until(world, lambda: set(foo(world).isr) == {1, 2, 3})
    assert end(world, 3) == 7


def test_a_leader_acknowledges_by_the_old_value_until_the_configurations_of_its_delta_are_applied() -> None:
    """The value is raised, and its leadership begins, in one delta (BrokerMetadataPublisher)."""
    config = replace(without_elr(), publish_time=SECOND // 4)
    made = topology(min_isr=1, config=config)
    producer = ProducerSpec("foo", (0,), -1, 10, SECOND // 100)
    world = cluster(replace(made, producers=(producer,)))
    told: list[tuple[int, int]] = []

    def look(event: Event) -> None:
        if isinstance(event, Acknowledged) and event.broker == 1 and event.span.epoch > 1:
            told.append((event.isr, event.span.end))

    world.events.subscribers.append(look)
    world.shut_down_broker(3)
    world.shut_down_broker(1)
    until(world, lambda: set(world.brokers) == {2} and foo(world).isr == (2,))
    world.start_broker(1)
    until(world, lambda: set(foo(world).isr) == {1, 2})
    active = world.active
    assert active is not None and active.active is not None
    told.clear()
    for request in (SetConfig("foo", MIN_ISR, "3"), ElectLeaders(ElectionKind.PREFERRED, None)):
        active.active.handle(request, lambda _answer: None)
    until(world, lambda: obeys(world, 1) == 3)
    assert foo(world).leader == 1
    assert {isr for isr, _ in told} == {2}, "the new leader acknowledged by the old value"
    until(world, lambda: written(world, 1) is Error.NOT_ENOUGH_REPLICAS)
    last = len(told)
    world.loop.run_for(2 * SECOND)
    assert len(told) == last


def test_a_leader_that_is_cut_off_from_the_controllers_leads_on() -> None:
    """Its ISR is itself, its min ISR 1, and clients still reach it: also after another was elected."""
    made = topology(min_isr=1, config=without_elr(QUICK))
    world = cluster(made)
    for broker in (2, 3):
        world.kill_broker(broker)
    until(world, lambda: world.brokers[1].state.image.partitions[FOO].isr == (1,))
    world.network.cut([broker_node(1)], controllers(world))
    until(world, lambda: foo(world).leader == NO_LEADER)
    at_election = end(world, 1)
    assert written(world, 1, 70) is None
    assert end(world, 1) == at_election + 70
    world.network.heal_all()
    until(world, lambda: world.brokers[1].state.image.partitions[FOO].leader_epoch == foo(world).leader_epoch)


def test_a_producer_with_old_metadata_sends_to_a_leader_that_is_cut_off() -> None:
    made = topology(min_isr=1, config=without_elr(QUICK))
    stays = replace(made.producers[0], keeps_leader=True)
    world = cluster(replace(made, producers=(stays,)))
    for broker in (2, 3):
        world.kill_broker(broker)
    until(world, lambda: world.brokers[1].state.image.partitions[FOO].isr == (1,))
    world.network.cut([broker_node(1)], controllers(world))
    until(world, lambda: foo(world).leader == NO_LEADER)
    world.start_broker(2)
    until(world, lambda: not world.image.brokers[2].fenced)
    world.loop.run_for(SECOND)
    before, (producer,) = end(world, 1), world.producers
    told = producer.acknowledged
    until(world, lambda: producer.acknowledged > told + 100)
    assert end(world, 1) > before + 100
