"""The network between brokers, controllers and the operator: latency, loss, cuts and delays.

Messages of one channel between two nodes arrive in order, as over one TCP connection. A broker has several
channels to a controller (heartbeats, AlterPartition, the rest). A lost message never arrives, nor does one that
is cut off or sent to a node that is down or restarts: callers have deadlines (:mod:`backends.simulator.rpc`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from backends.simulator.loop import MILLISECOND, Loop


class NetworkRole(StrEnum):
    """The kind of a node."""

    BROKER = "broker"
    CONTROLLER = "controller"
    OPERATOR = "operator"
    CLIENT = "client"


class NetworkNode(NamedTuple):
    """A node of the network; prints as ``broker-1``."""

    role: NetworkRole
    id: int

    def __str__(self) -> str:
        return "operator" if self.role is NetworkRole.OPERATOR else f"{self.role.value}-{self.id}"


OPERATOR = NetworkNode(NetworkRole.OPERATOR, 0)


def broker(node_id: int) -> NetworkNode:
    return NetworkNode(NetworkRole.BROKER, node_id)


def controller(node_id: int) -> NetworkNode:
    return NetworkNode(NetworkRole.CONTROLLER, node_id)


@dataclass(frozen=True, slots=True)
class NetworkConditions:
    """The conditions of the whole network: each message takes ``latency`` plus up to ``jitter`` µs, and is lost
    with probability ``loss``.
    """

    latency: int = MILLISECOND // 2
    jitter: int = MILLISECOND // 2
    loss: float = 0.0


Receive = Callable[[NetworkNode, Any], None]


class _Attached(NamedTuple):
    receive: Receive
    incarnation: int


class _Stream:
    """One channel between two nodes. ``last`` is when its newest message arrives.

    A ``fixed`` one (to or from the operator) uses no randomness: the operator's questions must not change the
    run.
    """

    __slots__ = ("fixed", "last", "link")

    def __init__(self, link: tuple[NetworkNode, NetworkNode]) -> None:
        self.link = link
        self.last = 0
        self.fixed = OPERATOR in link


class Network:
    """Carries messages between attached nodes. Links are directed; ``cut`` and ``heal`` take both directions."""

    def __init__(self, loop: Loop, weather: NetworkConditions | None = None) -> None:
        self.loop = loop
        self.weather = weather or NetworkConditions()
        self._attached: dict[NetworkNode, _Attached] = {}
        self._incarnations = 0
        self._cut: set[tuple[NetworkNode, NetworkNode]] = set()
        self._delay: dict[tuple[NetworkNode, NetworkNode, str], int] = {}
        self._streams: dict[tuple[NetworkNode, NetworkNode, str], _Stream] = {}

    def attach(self, node: NetworkNode, receive: Receive) -> int:
        """``node`` is up; messages to its earlier incarnation are lost. Returns the number of this incarnation."""
        self._incarnations += 1
        self._attached[node] = _Attached(receive, self._incarnations)
        return self._incarnations

    def detach(self, node: NetworkNode) -> None:
        """``node`` is down; may be called in any state."""
        self._attached.pop(node, None)

    def up(self, node: NetworkNode) -> bool:
        return node in self._attached

    def send(self, source: NetworkNode, target: NetworkNode, message: Any, channel: str = "") -> None:
        """Send one message, without notice whether it arrives."""
        key = (source, target, channel)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream((source, target))
        attached = self._attached.get(target)
        if attached is None or (self._cut and stream.link in self._cut):
            return
        weather, loop = self.weather, self.loop
        arrival = loop.now + weather.latency
        if not stream.fixed:
            if weather.loss > 0 and loop.random.random() < weather.loss:
                return
            if weather.jitter:
                arrival += loop.draw(weather.jitter)
        if self._delay:
            arrival += self._delay.get(key, 0)
        arrival = max(arrival, stream.last)
        stream.last = arrival
        loop.call_at(arrival, self._deliver, stream.link, attached.incarnation, message)

    def _deliver(self, link: tuple[NetworkNode, NetworkNode], incarnation: int, message: Any) -> None:
        source, target = link
        attached = self._attached.get(target)
        if attached is None or attached.incarnation != incarnation or (self._cut and link in self._cut):
            return
        attached.receive(source, message)

    def cut(
        self, left: Iterable[NetworkNode], right: Iterable[NetworkNode], *, one_way: bool = False
    ) -> None:
        """Cut every link between ``left`` and ``right``; messages in flight are lost too.

        With ``one_way`` only the links from left to right are cut.
        """
        self._cut.update(self._links(left, right, one_way))

    def heal(
        self, left: Iterable[NetworkNode], right: Iterable[NetworkNode], *, one_way: bool = False
    ) -> None:
        """Undo cuts between these nodes."""
        self._cut.difference_update(self._links(left, right, one_way))

    def heal_all(self) -> None:
        self._cut.clear()
        self._delay.clear()

    def delay(self, source: NetworkNode, target: NetworkNode, extra: int, channel: str = "") -> None:
        """Messages from ``source`` to ``target`` on ``channel`` take ``extra`` µs longer from now on; 0 ends
        it.

        They still arrive in order, after messages sent before.
        """
        if extra:
            self._delay[source, target, channel] = extra
        else:
            self._delay.pop((source, target, channel), None)

    def connected(self, source: NetworkNode, target: NetworkNode) -> bool:
        """Whether both are up, and no link between them is cut in either direction."""
        whole = (source, target) not in self._cut and (target, source) not in self._cut
        return whole and self.up(source) and self.up(target)

    @staticmethod
    def _links(
        left: Iterable[NetworkNode], right: Iterable[NetworkNode], one_way: bool
    ) -> list[tuple[NetworkNode, NetworkNode]]:
        pairs = [(one, other) for one in left for other in right if one != other]
        return pairs if one_way else [*pairs, *((other, one) for one, other in pairs)]
