"""Requests and answers over the network, with deadlines. An answer is delivered once; late answers are dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.simulator.loop import Loop, Timer
from backends.simulator.network import Network, NetworkNode

Message = tuple[bool, int, Any]
"""(Whether it is an answer, the caller's correlation id, the body). A plain tuple, because a run creates many."""

Answer = Callable[[Any], None]
"""Sends the answer to one request; may be called later than the handler, and at most once."""

Handler = Callable[[NetworkNode, Any, Answer], None]
"""Called with (who asks, the request's body, how to answer)."""


class RpcEndpoint:
    """One node's end of the network: serves requests with ``handle``, and sends requests.

    It lives as long as the process: ``close`` it on a crash, and create a new one on a restart. A closed
    endpoint neither sends nor receives, and calls no callback.
    """

    def __init__(self, loop: Loop, network: Network, node: NetworkNode, handle: Handler) -> None:
        self.node = node
        self._loop = loop
        self._network = network
        self._handle = handle
        self._pending: dict[int, tuple[Callable[[Any], None], Timer]] = {}
        self.closed = False
        # Correlation ids differ between incarnations, so an answer to an earlier process is dropped.
        self.incarnation = network.attach(node, self._receive)
        self._correlation = self.incarnation << 32

    @property
    def waiting(self) -> bool:
        """Whether a request of this node may still be answered."""
        return bool(self._pending)

    def close(self) -> None:
        """The process has ended; may be called twice."""
        if self.closed:
            return
        self.closed = True
        self._network.detach(self.node)
        for _, timer in self._pending.values():
            timer.cancel()
        self._pending.clear()

    def ask(
        self, target: NetworkNode, body: Any, timeout: int, then: Callable[[Any], None], channel: str = ""
    ) -> None:
        """Send a request. ``then`` is called once: with the answer's body, or with None after ``timeout``."""
        if self.closed:
            return
        self._correlation += 1
        correlation = self._correlation
        timer = self._loop.call_later(timeout, self._expire, correlation)
        self._pending[correlation] = (then, timer)
        self._network.send(self.node, target, (False, correlation, body), channel)

    def send_one_way(self, target: NetworkNode, body: Any) -> None:
        """Send a request without waiting for an answer."""
        if not self.closed:
            self._network.send(self.node, target, (False, 0, body))

    def _expire(self, correlation: int) -> None:
        then, _ = self._pending.pop(correlation)
        then(None)

    def _receive(self, source: NetworkNode, message: Message) -> None:
        answered, correlation, body = message
        if answered:
            waiting = self._pending.pop(correlation, None)
            if waiting is not None:
                then, timer = waiting
                timer.cancel()
                then(body)
            return
        self._handle(source, body, self._answering(source, correlation))

    def _answering(self, source: NetworkNode, correlation: int) -> Answer:
        def answer(body: Any) -> None:
            if correlation and not self.closed:
                self._network.send(self.node, source, (True, correlation, body))

        return answer
