"""A topology as the state of a running cluster: its metadata, and the logs on each broker's disks.

Equal logs and registrations are one object, so that 200,000 partitions load in a second or two.
"""

from __future__ import annotations

from typing import NamedTuple

from backends.simulator.broker.log_storage import BrokerDisk, LogDirState
from backends.simulator.broker.replica_log import Log
from backends.simulator.committed_records import config_steps
from backends.simulator.messages import MetadataUpdate
from backends.simulator.partition_table import Interner, PartitionTable
from backends.simulator.topology import BrokerSpec, TopicSpec, Topology, directory_id
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage, Layered
from recovery.controller.registration import MIGRATING_DIRECTORY, Registration
from recovery.controller.rules import UncleanRecoveryStrategy
from recovery.model import EpochSpan


class InitialState(NamedTuple):
    """The first entry of the metadata log, and the brokers' disks."""

    metadata: MetadataUpdate
    disks: dict[int, BrokerDisk]


def initial_state(topology: Topology, cluster: str = "") -> InitialState:
    """``cluster`` tells its topic ids from those of others. Raises KeyError if a topic names an unknown broker."""
    brokers = {spec.id: spec for spec in topology.brokers}
    disks = {spec.id: BrokerDisk(_log_dirs(spec)) for spec in topology.brokers}
    tracked = any(spec.log_dirs > 1 for spec in topology.brokers)
    intern = Interner()
    rows = {}
    for topic in topology.topics:
        rows[topic.name] = _row(topic, brokers, intern, tracked=tracked)
    table = PartitionTable(rows, cluster=cluster)
    for topic in topology.topics:
        _place(topic, table, disks, brokers)
    registrations = {
        spec.id: BrokerRegistration(epoch, directories=_ids(spec) if spec.log_dirs > 1 else ())
        for epoch, spec in enumerate(topology.brokers, start=1)
    }
    image = ClusterImage(
        registrations,
        table,
        topology.config.rules,
        Layered(
            topology.min_isr,
            # With the ELR on the cluster always has a dynamic value, and without it the files can differ.
            cluster=topology.min_isr if topology.config.rules.elr or not _files_differ(topology) else None,
            topics={topic.name: topic.min_isr for topic in topology.topics if topic.min_isr is not None},
        ),
        Layered(
            UncleanRecoveryStrategy(topology.config.rules.strategy),
            topics={topic.name: topic.strategy for topic in topology.topics if topic.strategy is not None},
        ),
    )
    configs = tuple(config_steps(ClusterImage({}, {}), image))
    return InitialState(MetadataUpdate(image, (), (), len(registrations), "loaded", configs=configs), disks)


def _files_differ(topology: Topology) -> bool:
    return any(spec.min_isr is not None for spec in topology.brokers)


def _ids(spec: BrokerSpec) -> tuple[str, ...]:
    return tuple(directory_id(spec.id, index) for index in range(spec.log_dirs))


def _log_dirs(spec: BrokerSpec) -> list[LogDirState]:
    return [LogDirState(f"/kafka/{index}", directory_id(spec.id, index)) for index in range(spec.log_dirs)]


def _row(
    topic: TopicSpec, brokers: dict[int, BrokerSpec], intern: Interner, *, tracked: bool
) -> tuple[Registration, ...]:
    row = []
    for number in range(topic.partitions):
        replicas = topic.assignments[number % len(topic.assignments)]
        directories: tuple[str, ...] = ()
        if tracked:
            directories = tuple(_directory(brokers[replica], number) for replica in replicas)
        row.append(intern(Registration(replicas, replicas, replicas[0], directories=directories)))
    return tuple(row)


def _index(spec: BrokerSpec, number: int) -> int:
    return number % spec.log_dirs


def _directory(spec: BrokerSpec, number: int) -> str:
    if spec.log_dirs == 1:
        return MIGRATING_DIRECTORY
    return directory_id(spec.id, _index(spec, number))


def _place(
    topic: TopicSpec, table: PartitionTable, disks: dict[int, BrokerDisk], brokers: dict[int, BrokerSpec]
) -> None:
    end = topic.records
    spans = (EpochSpan(0, 0, end),) if end else ()
    logs = [Log(spans, 0, end, end, end, index) for index in range(max(b.log_dirs for b in brokers.values()))]
    for tp, partition in zip(table.keys_of(topic.name), table.topics[topic.name], strict=True):
        for replica in partition.replicas:
            disks[replica].logs[tp] = logs[_index(brokers[replica], tp.partition)]
