"""The initial cluster of a simulation."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from backends.base.simulated_clusters import simulated_id
from backends.simulator.config import Config
from backends.simulator.network import NetworkConditions
from recovery.controller.rules import UncleanRecoveryStrategy


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """``log_dirs`` is the number of entries in ``log.dirs``; ``kraft_versions`` the range that its software
    supports.
    """

    id: int
    rack: str | None = None
    log_dirs: int = 1
    kraft_versions: tuple[int, int] = (0, 1)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """Partition i has the replicas ``assignments[i % len(assignments)]``, all in sync, and ``records`` committed
    and flushed records.
    """

    name: str
    partitions: int
    assignments: tuple[tuple[int, ...], ...]
    min_isr: int | None = None
    strategy: UncleanRecoveryStrategy | None = None
    records: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProducerSpec:
    """A batch of ``records`` to each partition every ``interval`` µs, from ``start`` to ``stop``."""

    topic: str
    partitions: tuple[int, ...]
    acks: int
    records: int
    interval: int
    start: int = 0
    stop: int | None = None


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
    """A running cluster: every broker registered, unfenced and caught up at time 0.

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
