"""How far the copies of a batch are: bytes of the new replicas, and the time that is left."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.operations.change import Operator
from recovery.heal_plan import ReplicaMove
from recovery.model import Unknown
from recovery.wording.quantity_text import age, human_bytes

SAMPLES = 30
"""The rate is that of the last so many looks."""
EVERY_SECONDS = 3.0
"""A broker lists all its replicas at each look: not more often than this."""


class CopyProgress:
    """Shows the progress of ``moves`` to an operator who watches; nothing else depends on it."""

    def __init__(
        self, cluster: Backend, moves: Sequence[ReplicaMove], title: str, operator: Operator[Any]
    ) -> None:
        self._cluster = cluster
        self._sizes = {(move.tp, broker): max(0, move.size) for move in moves for broker in move.added}
        self._brokers = sorted({broker for _, broker in self._sizes})
        self._moves = len(moves)
        self._title = title
        self._operator = operator
        self._samples: deque[tuple[float, int]] = deque(maxlen=SAMPLES)

    async def show(self, ended: int) -> None:
        """``ended`` moves are done. A broker that does not tell its log dirs makes the number smaller."""
        if self._operator.progress is None or not self._sizes:
            return
        if self._samples and self._now() - self._samples[-1][0] < EVERY_SECONDS:
            return
        try:
            copied = await self._copied()
        except BackendError:
            return
        total = sum(self._sizes.values())
        self._samples.append((self._now(), copied))
        text = (
            f"{self._title}: {human_bytes(copied)} of {human_bytes(total)} copied{self._left(total)}; moved"
        )
        self._operator.progress(text, ended, self._moves)

    async def _copied(self) -> int:
        dirs = await self._cluster.log_dirs(self._brokers)
        bytes_there = {
            (replica.tp, broker): replica.size
            for broker, listed in dirs.items()
            if not isinstance(listed, Unknown)
            for one in listed
            for replica in one.replicas
        }
        return sum(min(size, max(0, bytes_there.get(key, 0))) for key, size in self._sizes.items())

    def _left(self, total: int) -> str:
        (since, before), (now, copied) = self._samples[0], self._samples[-1]
        if now <= since or copied <= before:
            return ""
        return f", about {age((total - copied) * (now - since) / (copied - before))} left"

    def _now(self) -> float:
        virtual = self._cluster.virtual_time
        return time.monotonic() if virtual is None else virtual.virtual_now / 1_000_000
