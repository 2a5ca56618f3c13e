"""The initial cluster of a simulation, and the default placement of replicas."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from backends.base.simulated_clusters import simulated_id
from backends.simulator.broker.replica_log import Log
from backends.simulator.config import Config
from backends.simulator.network import NetworkConditions
from recovery.controller.registration import Registration
from recovery.controller.rules import UncleanRecoveryStrategy


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """``log_dirs`` is the number of entries in ``log.dirs``; ``kraft_versions`` the range that its software
    supports. ``min_isr`` is min.insync.replicas in its own file; None: as in the file of every other node.
    ``fenced``: the controller counts it as down at time 0, and ``running`` says whether its process runs then.
    ``failed_log_dirs`` (counted from 0) had failed before.
    """

    id: int
    rack: str | None = None
    log_dirs: int = 1
    kraft_versions: tuple[int, int] = (0, 1)
    min_isr: int | None = None
    fenced: bool = False
    running: bool = True
    failed_log_dirs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """A partition at time 0: what the controller holds of it, and the log of each broker that has one."""

    registration: Registration
    logs: Mapping[int, Log]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """Partition i has the replicas ``assignments[i % len(assignments)]``, all in sync, and ``records`` committed
    and flushed records; or each is as ``start`` says, in the order of their numbers.
    """

    name: str
    partitions: int
    assignments: tuple[tuple[int, ...], ...]
    min_isr: int | None = None
    strategy: UncleanRecoveryStrategy | None = None
    records: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)
    start: tuple[PartitionStart, ...] = ()


@dataclass(frozen=True, slots=True)
class ProducerSpec:
    """A batch of ``records`` to each partition every ``interval`` µs, from ``start`` to ``stop``.

    ``keeps_leader``: it sends to the leader that it knows until that refuses or does not answer, as clients do
    whose metadata is old. Without it each batch goes to the leader of the newest metadata.
    """

    topic: str
    partitions: tuple[int, ...]
    acks: int
    records: int
    interval: int
    start: int = 0
    stop: int | None = None
    keeps_leader: bool = False


@dataclass(frozen=True, slots=True)
class TransactionSpec:
    """One transaction after another: ``batches`` of ``records`` to each partition, one every ``interval`` µs.

    Of ten transactions six are committed and two aborted; two are left open by their producer until ``timeout``
    (``transaction.timeout.ms``, in µs) aborts them.
    """

    topic: str
    partitions: tuple[int, ...]
    batches: int
    records: int
    interval: int
    timeout: int


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """Reads each partition every ``interval`` µs, from its initial end on."""

    topic: str
    partitions: tuple[int, ...]
    interval: int


@dataclass(frozen=True, slots=True)
class Topology:
    """A cluster at time 0: every broker is registered, and caught up if it runs.

    ``controllers`` are the voters; the first leads. ``spare_controllers`` do not run yet, and are formatted
    without initial controllers.
    """

    name: str
    brokers: tuple[BrokerSpec, ...]
    topics: tuple[TopicSpec, ...]
    controllers: tuple[int, ...] = (100, 101, 102)
    min_isr: int = 1
    config: Config = field(default_factory=Config)
    weather: NetworkConditions = field(default_factory=NetworkConditions)
    producers: tuple[ProducerSpec, ...] = ()
    spare_controllers: tuple[int, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()
    transactions: tuple[TransactionSpec, ...] = ()

    @property
    def every_controller(self) -> tuple[int, ...]:
        return (*self.controllers, *self.spare_controllers)


def cluster_id(name: str, seed: int) -> str:
    """Unique per name."""
    plain = PurePath(name).stem
    safe = "".join(char if char.isalnum() or char == "-" else "-" for char in plain)
    if safe != name:
        safe += f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return simulated_id(safe, seed)


def directory_id(broker: int, index: int, generation: int = 0) -> str:
    """The id of a log dir as Kafka prints it: 22 characters of URL-safe base64. A replaced disk has another."""
    digest = hashlib.sha256(f"dir {broker} {index} {generation}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def spread(brokers: tuple[BrokerSpec, ...], replication_factor: int) -> tuple[tuple[int, ...], ...]:
    """Assignments to use in turn.

    Leaders are spread evenly. Followers shift from round to round, so that no two brokers share all partitions.
    Replicas are in different racks as far as possible, as with Kafka's own placement.
    """
    ordered = _by_rack(brokers)
    count = len(ordered)
    racks = {spec.id: spec.rack for spec in brokers}
    assignments = []
    for shift in range(max(count - 1, 1)):
        for first in range(count):
            ring = [ordered[first]]
            ring += [ordered[(first + 1 + (shift + step) % (count - 1)) % count] for step in range(count - 1)]
            assignments.append(_pick(ring, racks, replication_factor))
    return tuple(assignments)


def _by_rack(brokers: tuple[BrokerSpec, ...]) -> list[int]:
    """The brokers, one of each rack in turn."""
    racks: dict[str | None, list[int]] = {}
    for spec in brokers:
        racks.setdefault(spec.rack, []).append(spec.id)
    longest = max(map(len, racks.values()))
    return [members[turn] for turn in range(longest) for members in racks.values() if turn < len(members)]


def _pick(ring: list[int], racks: dict[int, str | None], replication_factor: int) -> tuple[int, ...]:
    chosen = [ring[0]]
    for again in (False, True):
        for broker in ring[1:]:
            used = {racks[taken] for taken in chosen}
            if (
                len(chosen) < replication_factor
                and broker not in chosen
                and (again or racks[broker] not in used)
            ):
                chosen.append(broker)
    return tuple(chosen)
