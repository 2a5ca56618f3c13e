"""min.insync.replicas by which each broker would lead, asked of the broker itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from backends.base.errors import BackendError
from backends.base.file_memory import FileAnswers, FileMemory
from backends.live.calls.configs import describe_min_isr
from backends.live.connections.connection import BrokerConnection
from recovery.model import FileAnswer, MinIsrLevels, PartitionState

MinIsrOn = Mapping[str, tuple[MinIsrLevels, ...]]
"""By topic the answer of each broker, in the order of their ids."""

TIMEOUT = 3.0
"""Seconds for the answers of one broker, which has answered this survey before."""

AGAIN = 60.0
"""Seconds after which a broker is asked for its file again while nothing is offline."""


class Connections(Protocol):
    async def connection(self, broker: int) -> BrokerConnection:
        """An open connection to that broker. Raises BrokerError."""
        ...


class MinIsrAnswers:
    """Asks, and keeps what brokers answer about their files. ``clock`` in seconds since 1970."""

    def __init__(
        self, connections: Connections, memory: FileMemory, clock: Callable[[], float] = time.time
    ) -> None:
        self._connections = connections
        self._memory = memory
        self._clock = clock
        self._cluster_id = ""
        self._earlier: FileAnswers = {}
        self._now: dict[int, FileAnswer] = {}

    def open(self, cluster_id: str) -> None:
        """The cluster that is asked from now on."""
        self._cluster_id = cluster_id
        self._earlier = self._memory.recall(cluster_id)

    @property
    def file_answers(self) -> FileAnswers:
        """The answers of earlier, and the latest of this process."""
        found = {broker: list(several) for broker, several in self._earlier.items()}
        for broker, one in self._now.items():
            found.setdefault(broker, []).append(one)
        return found

    async def ask(
        self, states: Iterable[PartitionState], brokers: Iterable[int], early: MinIsrOn | None = None
    ) -> MinIsrOn:
        """Of the topics that are offline, every one of ``brokers``; and of each that was not asked lately its file.
        A broker that does not answer, or refuses, is left out.

        ``early`` are answers of this survey, which may be of more brokers: those are left out, the others not asked
        again.
        """
        topics: dict[int, dict[str, None]] = {}
        for state in states:
            if state.offline:
                for broker in state.replicas:
                    topics.setdefault(broker, {})[state.topic] = None
        brokers = list(brokers)
        found = {
            topic: [one for one in several if one.broker in brokers]
            for topic, several in (early or {}).items()
        }
        known = {one.broker for several in found.values() for one in several}
        now = self._clock()
        asked = [
            (broker, list(topics.get(broker, ())))
            for broker in brokers
            if broker not in known and (broker in topics or self._due(broker, now))
        ]
        for answers in await asyncio.gather(*(self._ask(broker, names) for broker, names in sorted(asked))):
            for topic, answer in answers.items():
                found.setdefault(topic, []).append(answer)
        fresh = [one for one in self._now.values() if one.time_ms >= now * 1000]
        if fresh:
            self._memory.remember(self._cluster_id, fresh)
        return {
            topic: tuple(sorted(several, key=lambda one: one.broker))
            for topic, several in found.items()
            if several
        }

    def _due(self, broker: int, now: float) -> bool:
        last = self._now.get(broker)
        return last is None or last.time_ms < (now - AGAIN) * 1000

    async def _ask(self, broker: int, topics: Sequence[str]) -> Mapping[str, MinIsrLevels]:
        try:
            connection = await self._connections.connection(broker)
            answer = await describe_min_isr(connection, broker, topics, timeout=TIMEOUT)
        except BackendError:
            return {}
        if answer.file is not None:
            self._now[broker] = FileAnswer(broker, answer.file, round(self._clock() * 1000))
        return answer.topics
