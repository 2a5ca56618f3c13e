"""The simulator's metadata log: folded, it is the state of the simulated controllers at every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.metadata_log.directory import DirectoryReading, read_directory
from backends.metadata_log.topic_scan import TopicScan
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.events import Event, MetadataCommitted
from backends.simulator.partition_table import id_of
from backends.simulator.world import World
from recovery.controller.cluster_image import BrokerRegistration
from recovery.controller.registration import Registration
from recovery.metadata_log.history import MetadataHistory, fold
from recovery.metadata_log.log_changes import ConfigSubject, PartitionSubject, TopicSubject, applied
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    RegisterBrokerRecord,
    ResourceType,
)
from testbed.histories.history_folder import HistoryFolder
from testbed.histories.random_histories import TOPIC, prepare, run
from tests.repetitions import repetitions

SEEDS = repetitions(10, 50)
SHARDS = 5


class FoldedState:
    """The state that a history ends in, read row by row."""

    def __init__(self, history: MetadataHistory) -> None:
        self.history = history
        self.partitions: dict[PartitionSubject, Registration | None] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.configs: dict[ConfigSubject, str | None] = {}
        self._read = 0

    def catch_up(self) -> None:
        for row in self.history.rows(self._read):
            if isinstance(row.subject, PartitionSubject):
                self.partitions[row.subject] = applied(self.partitions.get(row.subject), row.change)
            elif isinstance(row.change, RegisterBrokerRecord):
                told = row.change
                self.brokers[told.broker] = BrokerRegistration(
                    told.broker_epoch, told.fenced, told.in_controlled_shutdown, told.directories
                )
            elif isinstance(row.change, BrokerRegistrationChangeRecord):
                self._change(row.change)
            elif isinstance(row.change, ConfigRecord) and isinstance(row.subject, ConfigSubject):
                self.configs[row.subject] = row.change.value
        self._read = len(self.history)

    def _change(self, told: BrokerRegistrationChangeRecord) -> None:
        now = self.brokers[told.broker]
        assert told.broker_epoch == now.epoch
        self.brokers[told.broker] = now._replace(
            fenced=now.fenced if told.fenced is None else told.fenced,
            in_controlled_shutdown=now.in_controlled_shutdown or bool(told.in_controlled_shutdown),
            directories=now.directories if told.directories is None else told.directories,
        )


def check_equal(state: FoldedState, world: World) -> None:
    image = world.image
    partitions = {
        PartitionSubject(id_of(image, tp.topic), tp.partition): held for tp, held in image.partitions.items()
    }
    assert {key: held for key, held in state.partitions.items() if held is not None} == partitions
    assert state.brokers == {
        number: held._replace(incarnation=None) for number, held in image.brokers.items()
    }
    for topic, value in image.min_isr.topics.items():
        assert state.configs[ConfigSubject(ResourceType.TOPIC, topic, "min.insync.replicas")] == str(value)
        assert list(state.history.of(TopicSubject(id_of(image, topic))))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bytes_on_disk_fold_to_the_same_history(seed: int, tmp_path: Path) -> None:
    world, _checker = prepare(seed)
    log = EncodedMetadataLog(world.committed_records)
    run(world, seed, 30)
    log.catch_up()
    reading = DirectoryReading(log.write(tmp_path))
    history = fold(read_directory(reading))
    folder = HistoryFolder(world.committed_records)
    assert list(history.rows()) == list(folder.catch_up().rows())
    assert (reading.problem, reading.end_offset) == (None, log.end_offset)


@pytest.mark.parametrize("seed", range(5))
def test_a_scan_for_one_partition_misses_none_of_its_states(seed: int, tmp_path: Path) -> None:
    world, _checker = prepare(seed)
    run(world, seed, 30)
    log = EncodedMetadataLog(world.committed_records)
    log.catch_up()
    folder = log.write(tmp_path)
    whole = fold(read_directory(DirectoryReading(folder)))
    reading = DirectoryReading(folder)
    found = fold(read_directory(reading, TopicScan([TOPIC], 1)))
    subject = PartitionSubject(id_of(world.image, TOPIC), 1)
    assert found.intervals(subject) == whole.intervals(subject) != ()
    assert (reading.problem, reading.end_offset) == (None, log.end_offset)
    assert len(found) < len(whole)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_folded_log_is_the_controllers_state_at_every_step(shard: int) -> None:
    for seed in range(shard, SEEDS, SHARDS):
        world, _checker = prepare(seed)
        folder = HistoryFolder(world.committed_records)
        state = FoldedState(folder.history)

        def look(
            event: Event, folder: HistoryFolder = folder, state: FoldedState = state, world: World = world
        ) -> None:
            if isinstance(event, MetadataCommitted):
                folder.catch_up()
                state.catch_up()
                check_equal(state, world)

        look(MetadataCommitted(world.image, world.image, (), "loaded"))
        world.events.subscribers.append(look)
        run(world, seed, 30)
        assert len(state.history) > len(state.partitions)
