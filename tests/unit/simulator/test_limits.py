"""What one request may ask for, and how the rest is had: pages with cursors, HasMoreData."""

from __future__ import annotations

from backends.simulator.broker.describe import describe_page
from backends.simulator.loop import SECOND
from backends.simulator.messages import DeleteTopic, Done
from backends.simulator.operator_messages import (
    DescribeTopicPartitions,
    TopicPartitionsDescribed,
)
from backends.simulator.permissions import DeniedPermissions
from backends.simulator.topology import TopicSpec, Topology
from backends.simulator.world import World
from recovery.model import TopicPartition
from tests.unit.simulator.clusters import QUICK, cluster, tell, topology

SIZES = {"a": 3, "b": 4, "c": 1, "d": 5}


def page(world: World, cursor: TopicPartition | None, limit: int) -> TopicPartitionsDescribed:
    image = world.brokers[1].state.image
    return describe_page(image, 2000, DescribeTopicPartitions(None, cursor, limit), DeniedPermissions())


def several() -> World:
    made = topology(acks=None)
    topics = tuple(TopicSpec(name, size, ((1, 2, 3),), records=10) for name, size in SIZES.items())
    return cluster(Topology("pages", made.brokers, topics, min_isr=2, config=QUICK))


def test_a_page_ends_at_the_limit_and_its_cursor_begins_the_next() -> None:
    world = several()
    everything = [TopicPartition(name, number) for name, size in SIZES.items() for number in range(size)]
    for limit in (1, 3, 4, 5, 13, 2000):
        cursor: TopicPartition | None = None
        pages: list[list[TopicPartition]] = []
        while not pages or cursor is not None:
            found = page(world, cursor, limit)
            pages.append([state.tp for state in found.states])
            cursor = found.cursor
        assert [len(told) for told in pages[:-1]] == [limit] * (len(pages) - 1)
        assert [tp for told in pages for tp in told] == everything


def test_a_cursor_whose_topic_is_deleted_goes_on_with_the_next_one() -> None:
    world = several()
    found = page(world, None, 5)
    assert found.cursor == TopicPartition("b", 2)
    assert tell(world, DeleteTopic("b")) == Done(None)
    world.loop.run_for(5 * SECOND)
    rest = page(world, found.cursor, 5)
    assert [state.tp.topic for state in rest.states] == ["c", "d", "d", "d", "d"]
    assert rest.cursor == TopicPartition("d", 4)
