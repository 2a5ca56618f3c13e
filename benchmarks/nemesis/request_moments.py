"""Moments of a recovery, by the requests that it sends: a proxy stands before each broker and counts them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from random import Random
from typing import NamedTuple, Self

from testbed.kafka import KafkaCluster
from testbed.kafka.config import LOOPBACK
from tests.live.request_proxy import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS, RequestProxy

_NAMES = {ALTER_PARTITION_REASSIGNMENTS: "AlterPartitionReassignments", ELECT_LEADERS: "ElectLeaders"}


class RequestMoment(NamedTuple):
    """Before the ``number``-th request of a kind reaches its broker or, if ``answered``, before its response
    reaches the tool. Numbers begin at 1 and count the requests to all brokers.
    """

    api_key: int
    answered: bool
    number: int

    def __str__(self) -> str:
        what = "the response to" if self.answered else ""
        return " ".join(filter(None, ("before", what, _NAMES[self.api_key], str(self.number))))


def random_moment(random: Random, parts: int) -> RequestMoment:
    """Of a recovery of so many parts: each part writes the orders, elects its leaders, and restores the orders."""
    api_key = random.choice(sorted(_NAMES))
    requests = parts if api_key == ELECT_LEADERS else 2 * parts
    return RequestMoment(api_key, random.random() < 0.5, random.randrange(requests) + 1)


class ProxiedBrokers:
    """One proxy for each broker. The fault of :meth:`strike_at` runs in the middle of a request, which is held back
    until it returns.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        self._proxies = {id: RequestProxy(node.port, self._observe) for id, node in cluster.brokers.items()}
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._counts: Counter[tuple[int, bool]] = Counter()
        self._moment: RequestMoment | None = None
        self._strike: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        for proxy in self._proxies.values():
            self._stack.enter_context(proxy)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def options(self) -> Iterable[str]:
        """The command line that reaches every broker through its proxy."""
        addresses = {id: f"{LOOPBACK}:{proxy.port}" for id, proxy in self._proxies.items()}
        yield from ("--bootstrap-server", ",".join(addresses.values()))
        for id, address in addresses.items():
            yield from ("--broker", f"{id}={address}")

    def strike_at(self, moment: RequestMoment, strike: Callable[[], object]) -> None:
        """Calls ``strike`` once, at that moment."""
        self._moment, self._strike = moment, strike

    def cut(self, broker: int) -> None:
        """The tool and the broker cannot reach each other any more."""
        self._proxies[broker].close()

    def _observe(self, api_key: int, answered: bool) -> None:
        with self._lock:
            self._counts[api_key, answered] += 1
            reached = self._moment == (api_key, answered, self._counts[api_key, answered])
        if reached and self._strike is not None:
            self._strike()
