"""What the cluster says about itself, and waiting for it: the testbed's own eyes, independent of the product's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from backends.testbed.node import Node
from backends.testbed.waits import wait_until

_ANSWER_SECONDS = 3.0
T = TypeVar("T")


class PartitionState(NamedTuple):
    """One partition as metadata shows it; ``leader`` is -1 when there is none, ``replicas`` in assignment order."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Observer:
    """Reads the state back through any live broker, and waits for states with a deadline in seconds.

    A wait ends early with NodeDied when a node that should run has ended, else with TimedOut.
    """

    def __init__(self, nodes: Mapping[int, Node], client_config: Mapping[str, str | int]) -> None:
        self._nodes = nodes
        self._admin = AdminClient(dict(client_config))

    @property
    def admin(self) -> AdminClient:
        """confluent-kafka's AdminClient as superuser, on the internal listener."""
        return self._admin

    def live_brokers(self) -> frozenset[int]:
        """Ids of the registered brokers that are not fenced. Raises KafkaException when nobody answers."""
        return frozenset(self._admin.list_topics(timeout=_ANSWER_SECONDS).brokers)

    def partitions(self, topic: str) -> dict[int, PartitionState]:
        """The topic's partitions by number; empty while the topic is not known."""
        metadata = self._admin.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic]
        return {
            number: PartitionState(found.leader, tuple(found.replicas), tuple(found.isrs))
            for number, found in sorted(metadata.partitions.items())
        }

    def partition(self, topic: str, partition: int) -> PartitionState:
        """One partition. Raises KeyError while it is not known."""
        return self.partitions(topic)[partition]

    def wait_live(self, brokers: Iterable[int], timeout: float = 60.0) -> None:
        """Until every one of the brokers is unfenced."""
        wanted = frozenset(brokers)
        self._wait(
            lambda: wanted <= self.live_brokers(),
            f"brokers {_ids(wanted)} to be unfenced",
            timeout,
            self._show_live,
            alive=wanted,
        )

    def wait_fenced(self, *brokers: int, timeout: float = 30.0) -> None:
        """Until none of the brokers is unfenced, as a remaining live broker sees it."""
        wanted = frozenset(brokers)
        self._wait(
            lambda: not wanted & self.live_brokers(),
            f"brokers {_ids(wanted)} to be fenced",
            timeout,
            self._show_live,
        )

    def wait_partition(
        self,
        topic: str,
        partition: int,
        condition: Callable[[PartitionState], bool],
        what: str,
        timeout: float = 30.0,
    ) -> PartitionState:
        """Until the partition's state fulfils the condition; returns that state."""

        def fulfilled() -> PartitionState | None:
            state = self.partition(topic, partition)
            return state if condition(state) else None

        return self._wait(
            fulfilled, f"{topic}-{partition} {what}", timeout, lambda: self.partition(topic, partition)
        )

    def wait_leader(self, topic: str, partition: int, leader: int, timeout: float = 30.0) -> PartitionState:
        return self.wait_partition(
            topic, partition, lambda state: state.leader == leader, f"to be led by {leader}", timeout
        )

    def wait_offline(self, topic: str, partition: int, timeout: float = 30.0) -> PartitionState:
        return self.wait_partition(
            topic, partition, lambda state: state.leader == -1, "to be offline", timeout
        )

    def wait_isr(
        self, topic: str, partition: int, isr: Iterable[int], timeout: float = 60.0
    ) -> PartitionState:
        """Until the ISR is exactly that set."""
        wanted = set(isr)
        return self.wait_partition(
            topic,
            partition,
            lambda state: set(state.isr) == wanted,
            f"to have the ISR {_ids(wanted)}",
            timeout,
        )

    def wait_topic(
        self,
        topic: str,
        count: int,
        timeout: float = 60.0,
        *,
        each: Callable[[PartitionState], bool] = lambda state: state.leader != -1,
        what: str = "with a leader",
    ) -> dict[int, PartitionState]:
        """Until the topic has ``count`` partitions and each fulfils the condition (by default: has a leader)."""

        def fulfilled() -> dict[int, PartitionState] | None:
            states = self.partitions(topic)
            return states if len(states) == count and all(map(each, states.values())) else None

        return self._wait(
            fulfilled,
            f"{count} partitions of {topic} {what}",
            timeout,
            lambda: f"{sum(map(each, self.partitions(topic).values()))} of them",
        )

    def _wait(
        self,
        condition: Callable[[], T | None],
        what: str,
        timeout: float,
        seen: Callable[[], object],
        alive: Iterable[int] = (),
    ) -> T:
        def checked() -> T | None:
            for node in alive:
                self._nodes[node].check_alive()
            return condition()

        def described() -> object:
            try:
                return seen()
            except (KafkaException, KeyError) as error:
                return error

        return wait_until(checked, what, timeout, passing=(KafkaException, KeyError), seen=described)

    def _show_live(self) -> str:
        return f"unfenced are {_ids(self.live_brokers())}"


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(ids))) or "none"
