"""A metadata log with one designated leader: what the controllers run on where no quorum is simulated.

It commits after one round trip while the leader reaches a majority of the controllers; it elects nobody by
itself. A failover loses what was not committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from backends.base.answers import Quorum, QuorumReplica
from backends.simulator.loop import MILLISECOND, Loop
from backends.simulator.metadata_log import Committed, Listener
from backends.simulator.network import Network, Node
from backends.simulator.network import controller as node
from backends.simulator.rpc import Answer, Endpoint
from recovery.model import Unknown, Why

RETRY = 100 * MILLISECOND
KEPT = 64
"""Committed entries that are held: every payload is a whole state, so older ones are a snapshot's."""


class _Waiting(NamedTuple):
    payload: Any
    done: Callable[[bool], None]


class SoloLog:
    """Implements :class:`backends.simulator.metadata_log.MetadataLog`."""

    def __init__(self, loop: Loop, network: Network, controllers: Sequence[int], first: Any) -> None:
        self._loop = loop
        self._network = network
        self._controllers = tuple(controllers)
        self._entries = [Committed(0, first)]
        self._waiting: list[_Waiting] = []
        self._running: dict[int, Listener] = {}
        self._leader: int | None = None
        self._epoch = 0
        self._observers: dict[int, tuple[int, int]] = {}
        self._committing = False

    def start(self, controller: int, endpoint: Endpoint, listener: Listener) -> None:  # noqa: ARG002
        self._running[controller] = listener
        if self._leader is None:
            self.failover(controller)

    def stop(self, controller: int) -> None:
        self._running.pop(controller, None)
        if self._leader == controller:
            self._lose()

    def receive(self, controller: int, source: Node, body: Any, answer: Answer) -> bool:  # noqa: ARG002
        return False

    def leads(self, controller: int) -> bool:
        return self._leader == controller

    def leader_known_to(self, controller: int) -> int | None:  # noqa: ARG002
        return self._leader

    def failover(self, to: int) -> None:
        """``to``, a running controller, leads from now on. Raises ValueError where it does not run."""
        if to not in self._running:
            raise ValueError(f"controller {to} does not run")
        previous = self._leader
        self._lose()
        if previous is not None and previous in self._running:
            self._running[previous].resign()
        self._leader = to
        self._epoch += 1
        self._running[to].lead(self._epoch, self._entries[-1].payload)

    def _lose(self) -> None:
        self._leader = None
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            entry.done(False)

    def append(self, controller: int, payload: Any, done: Callable[[bool], None]) -> None:
        if self._leader != controller:
            done(False)
            return
        self._waiting.append(_Waiting(payload, done))
        self._schedule(2 * self._network.weather.latency)

    def _schedule(self, delay: int) -> None:
        if not self._committing:
            self._committing = True
            self._loop.call_later(delay, self._commit, self._epoch)

    def _commit(self, epoch: int) -> None:
        self._committing = False
        if not self._waiting:
            return
        if epoch == self._epoch and not self._majority():
            self._schedule(RETRY)
            return
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            self._entries.append(Committed(self._entries[-1].offset + 1, entry.payload))
        del self._entries[:-KEPT]
        for entry in waiting:
            entry.done(True)

    def _majority(self) -> bool:
        leader = self._leader
        assert leader is not None
        reached = sum(
            other in self._running and (other == leader or self._network.connected(node(leader), node(other)))
            for other in self._controllers
        )
        return 2 * reached > len(self._controllers)

    def committed(self, controller: int, after: int, limit: int) -> Sequence[Committed]:  # noqa: ARG002
        return [entry for entry in self._entries if entry.offset > after][:limit]

    def observed(self, controller: int, observer: int, offset: int) -> None:  # noqa: ARG002
        self._observers[observer] = (offset, self._loop.now)

    def describe(self, controller: int) -> Quorum | Unknown:
        if self._leader != controller:
            return Unknown(Why.FAILED, f"controller {controller} does not lead")
        end = self._entries[-1].offset + 1
        now = self._loop.now // MILLISECOND
        voters = tuple(
            QuorumReplica(voter, None, end, now if voter in self._running else -1, -1)
            for voter in self._controllers
        )
        observers = tuple(
            QuorumReplica(observer, None, offset + 1, time // MILLISECOND, -1)
            for observer, (offset, time) in sorted(self._observers.items())
        )
        return Quorum(controller, self._epoch, end, voters, observers, ())
