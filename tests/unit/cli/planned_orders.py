"""A plan for the partitions of the topic orders, made by the command, and how much of it was sent."""

from __future__ import annotations

from recovery.model import TopicPartition
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import MemoryBackend

ANY = ("--bootstrap-server", "kafka:9092")
AGREED = ("--yes", "--reason", "a test")


def tp(partition: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)


def planned(call: Caller, backend: MemoryBackend, name: str = "plan.json") -> str:
    ended = call.on(backend)("ktriage", "plan", *ANY, name)
    assert ended.status in (0, 1), str(ended)
    return name


def sent(backend: MemoryBackend) -> int:
    return sum(len(rows) for rows in backend.designated)
