"""What a simulated cluster is made of, before anything happens to it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from backends.simulator.config import Config
from backends.simulator.network import Weather
from recovery.controller.rules import UncleanRecoveryStrategy


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """``log_dirs`` is how many entries ``log.dirs`` has; ``kraft_versions`` what its software supports."""

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
class ConsumerSpec:
    """Somebody who reads each partition every ``interval`` µs, from the end of what is there at first."""

    topic: str
    partitions: tuple[int, ...]
    interval: int


@dataclass(frozen=True, slots=True)
class Topology:
    """A cluster that runs: everybody registered, unfenced and caught up at time 0.

    ``controllers`` are the voters, the first of which leads; ``spare_controllers`` are machines that do not run
    yet, formatted without initial controllers.
    """

    name: str
    brokers: tuple[BrokerSpec, ...]
    topics: tuple[TopicSpec, ...]
    controllers: tuple[int, ...] = (100, 101, 102)
    min_isr: int = 1
    config: Config = field(default_factory=Config)
    weather: Weather = field(default_factory=Weather)
    producers: tuple[ProducerSpec, ...] = ()
    spare_controllers: tuple[int, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()

    @property
    def every_controller(self) -> tuple[int, ...]:
        return (*self.controllers, *self.spare_controllers)


def cluster_id(name: str, seed: int) -> str:
    """No live cluster has such an id: theirs are 22 characters without dots. No two names have the same."""
    plain = PurePath(name).stem
    safe = "".join(char if char.isalnum() or char == "-" else "-" for char in plain)
    if safe != name:
        safe += f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"simulated.{safe}.{seed}"


def directory_id(broker: int, index: int, generation: int = 0) -> str:
    """A log dir's id as Kafka prints it: 22 characters of URL-safe base64. A replaced disk has another."""
    digest = hashlib.sha256(f"dir {broker} {index} {generation}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
