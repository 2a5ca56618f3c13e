"""What one request may ask for, and how the rest is had: pages with cursors, HasMoreData."""

from __future__ import annotations

from backends.simulator.loop import SECOND
from backends.simulator.messages import DeleteTopic, Done, Error
from backends.simulator.operator_messages import (
    DescribeTopicPartitions,
    GetReplicaLogInfo,
    ReplicaLogInfos,
    TopicPartitionsDescribed,
)
from backends.simulator.topology import TopicSpec, Topology
from backends.simulator.world import World
from recovery.model import TopicPartition
from tests.unit.simulator.clusters import QUICK, ask, cluster, tell, topology

SIZES = {"a": 3, "b": 4, "c": 1, "d": 5}


def page(world: World, cursor: TopicPartition | None, limit: int) -> TopicPartitionsDescribed:
    found = ask(world, DescribeTopicPartitions(None, cursor, limit))
    assert isinstance(found, TopicPartitionsDescribed)
    return found


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


def test_the_logs_of_a_thousand_partitions_are_told_and_that_there_is_more() -> None:
    world = cluster(topology(partitions=1100, acks=None))
    tps = tuple(TopicPartition("foo", number) for number in range(1100))
    first = ask(world, GetReplicaLogInfo(tps))
    assert isinstance(first, ReplicaLogInfos)
    assert (first.error, first.has_more_data) == (None, True)
    assert [info.tp for info in first.infos] == list(tps[:1000])
    assert first.broker_epoch == world.image.brokers[1].epoch
    rest = ask(world, GetReplicaLogInfo(tps[1000:]))
    assert (rest.has_more_data, [info.tp for info in rest.infos]) == (False, list(tps[1000:]))


def test_what_a_broker_does_not_hold_or_cannot_read_is_an_error_of_its_own_row() -> None:
    world = cluster(topology(partitions=4, log_dirs=2, acks=None))
    world.break_log_dir(1, 1)
    tps = (TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("no", 0))
    told = ask(world, GetReplicaLogInfo(tps))
    assert [info.error for info in told.infos] == [
        None,
        Error.KAFKA_STORAGE_ERROR,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [info.log_end_offset for info in told.infos] == [1000, -1, -1]
