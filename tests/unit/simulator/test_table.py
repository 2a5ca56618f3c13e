from __future__ import annotations

import pytest

from backends.simulator.partition_table import PartitionTable
from recovery.controller.cluster_image import ClusterImage, apply
from recovery.controller.registration import PartitionChange, Registration
from recovery.model import TopicPartition

ONE = Registration((1, 2), (1, 2), 1)


def _table() -> PartitionTable:
    return PartitionTable({"foo": (ONE,) * 3, "bar": (ONE,)})


def test_it_reads_as_the_mapping_that_it_stands_for() -> None:
    table = _table()
    plain = dict(table.items())
    assert plain == {TopicPartition("foo", n): ONE for n in range(3)} | {TopicPartition("bar", 0): ONE}
    assert len(table) == 4
    assert list(table) == list(plain)
    assert TopicPartition("foo", 2) in table
    for absent in (TopicPartition("foo", 3), TopicPartition("foo", -1), TopicPartition("baz", 0)):
        assert absent not in table
        with pytest.raises(KeyError):
            table[absent]


def test_a_change_leaves_the_old_table_alone_and_shares_the_other_topics() -> None:
    image = ClusterImage({}, _table())
    after = apply(image, {TopicPartition("foo", 1): PartitionChange(leader=2)}).image.partitions
    assert isinstance(after, PartitionTable)
    assert after[TopicPartition("foo", 1)].leader == 2
    assert image.partitions[TopicPartition("foo", 1)].leader == 1
    assert isinstance(image.partitions, PartitionTable)
    assert after.topics["bar"] is image.partitions.topics["bar"]
    assert after.keys_of("foo") == _table().keys_of("foo")
