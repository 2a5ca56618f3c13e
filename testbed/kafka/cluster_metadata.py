"""The cluster's metadata as its brokers show it, and waits on it; independent of the product's adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, Self, TypeVar

from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.schema.describe_client_quotas.v1.response import DescribeClientQuotasResponse
from kio.schema.describe_topic_partitions.v0.request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kio.schema.describe_topic_partitions.v0.response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
)
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName
from kio.static.protocol import RequestPayload, ResponsePayload

from testbed.kafka import metadata_barrier
from testbed.kafka.connection import Connection, NoAnswer
from testbed.kafka.node import Node
from testbed.kafka.wait import wait_until

_ANSWER_SECONDS = 3.0
T = TypeVar("T")
R = TypeVar("R", bound=ResponsePayload)


class DescribedPartition(NamedTuple):
    """One partition as DescribeTopicPartitions shows it; ``leader`` is -1 when there is none.

    ``replicas`` are in assignment order; ``offline`` are those whose broker is fenced or whose log dir failed.
    """

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    offline: tuple[int, ...]


class ClusterMetadata:
    """Asks the brokers that run and are not paused; waits for states with a deadline in seconds.

    A wait that fails raises TimedOut with the state at the end. ``ports`` are those of the internal listener;
    ``credentials`` are a user and a password for PLAIN, if the listener needs them. One connection to each broker
    is kept between the requests: a wait asks ten times a second, and a new connection costs a broker more CPU than
    the answer. ``cut_off`` are brokers that run, hear nothing of the controller and would show an old state: they
    are not asked.
    """

    def __init__(
        self,
        nodes: Mapping[int, Node],
        ports: Mapping[int, int],
        credentials: tuple[str, str] | None,
    ) -> None:
        self._nodes = nodes
        self._ports = ports
        self._credentials = credentials
        self._connections: dict[int, Connection] = {}
        self._barrier = 0
        self.cut_off: set[int] = set()

    def live_brokers(self) -> frozenset[int]:
        """Ids of the brokers that all answering brokers see unfenced. Raises NoAnswer if no broker answers."""
        return frozenset.intersection(*self._views().values())

    def partitions(self, topic: str) -> dict[int, DescribedPartition]:
        """The topic's partitions by number; empty while the topic is not known. Raises NoAnswer."""
        return self.partitions_of([topic])[topic]

    def partitions_of(self, topics: Iterable[str]) -> dict[str, dict[int, DescribedPartition]]:
        """The partitions of each topic by number; empty for one that is not known. Raises NoAnswer."""
        states: dict[str, dict[int, DescribedPartition]] = {topic: {} for topic in topics}
        asked = tuple(TopicRequest(name=TopicName(topic)) for topic in sorted(states))
        cursor: Cursor | None = None
        while True:
            request = DescribeTopicPartitionsRequest(topics=asked, cursor=cursor)
            page = self.ask(request, DescribeTopicPartitionsResponse)
            for part in page.topics:
                for found in part.partitions:
                    states[str(part.name)][found.partition_index] = _state(found)
            if page.next_cursor is None:
                return states
            cursor = Cursor(
                topic_name=page.next_cursor.topic_name, partition_index=page.next_cursor.partition_index
            )

    def partition(self, topic: str, partition: int) -> DescribedPartition:
        """One partition. Raises KeyError while it is not known."""
        return self.partitions(topic)[partition]

    def wait_caught_up(self, timeout: float = 30.0) -> Self:
        """Waits until every answering broker has applied all earlier metadata changes; returns itself.

        Call it before an assertion about a state that another client reached: the controller has confirmed the
        change to that client, but a broker may not have applied it yet. If no broker runs, it returns at once.
        """
        if not any(self._can_answer(broker) for broker in self._ports):
            return self
        self._barrier += 1
        number = float(self._barrier)

        def barrier_set() -> bool:
            metadata_barrier.check_set(
                self.ask(metadata_barrier.set_request(self._barrier), AlterClientQuotasResponse)
            )
            return True

        def applied_numbers() -> dict[int, float]:
            answers = self.ask_all(metadata_barrier.read_request(), DescribeClientQuotasResponse)
            return {broker: metadata_barrier.last_applied(answer) for broker, answer in answers.items()}

        self._wait(barrier_set, "the metadata barrier to be set", timeout, applied_numbers)
        self._wait(
            lambda: all(applied >= number for applied in applied_numbers().values()),
            f"all brokers to apply metadata barrier {self._barrier}",
            timeout,
            applied_numbers,
        )
        return self

    def wait_live(
        self, brokers: Iterable[int], timeout: float = 120.0, *, started: Iterable[int] = ()
    ) -> None:
        """Until each of the brokers answers and all answering brokers see all of them unfenced.

        So a broker that was killed and started again counts only after its restart, not before anybody noticed the
        kill. Raises NodeDied if one of them, one of the ``started`` nodes, or another running node, ends or has
        ended.
        """
        expected = frozenset(brokers)
        watched = expected.union(started)
        running = [node for node in self._nodes.values() if node.is_running or node.id in watched]

        def all_live() -> bool:
            for node in running:
                node.check_alive()
            views = self._views()
            return expected <= views.keys() and all(expected <= view for view in views.values())

        self._wait(all_live, f"brokers {_ids(expected)} to be unfenced", timeout, self._describe_live)

    @property
    def live(self) -> frozenset[int]:
        """The brokers that every broker which answers sees unfenced, and that answer; none where nobody does."""
        try:
            views = self._views()
        except NoAnswer:
            return frozenset()
        return frozenset(views).intersection(*views.values())

    def wait_fenced(self, *brokers: int, timeout: float = 30.0) -> None:
        """Until no other broker that answers sees any of the brokers unfenced."""
        expected = frozenset(brokers)
        self._wait(
            lambda: not any(expected & view for view in self._views(without=expected).values()),
            f"brokers {_ids(expected)} to be fenced",
            timeout,
            self._describe_live,
        )

    def distinct_states(self, topic: str, partition: int) -> frozenset[DescribedPartition]:
        """The states that the answering brokers show: a single one when all have applied the last change."""
        request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name=TopicName(topic)),), cursor=None)
        answers = self.ask_all(request, DescribeTopicPartitionsResponse).values()
        partitions = (found for page in answers for part in page.topics for found in part.partitions)
        return frozenset(_state(found) for found in partitions if found.partition_index == partition)

    def wait_partition(
        self,
        topic: str,
        partition: int,
        condition: Callable[[DescribedPartition], bool],
        what: str,
        timeout: float = 30.0,
    ) -> DescribedPartition:
        """Until the partition's state fulfils the condition; returns that state."""

        def fulfilled() -> DescribedPartition | None:
            state = self.partition(topic, partition)
            return state if condition(state) else None

        return self._wait(
            fulfilled, f"{topic}-{partition} {what}", timeout, lambda: self.partition(topic, partition)
        )

    def wait_leader(
        self, topic: str, partition: int, leader: int, timeout: float = 30.0
    ) -> DescribedPartition:
        return self.wait_partition(
            topic, partition, lambda state: state.leader == leader, f"to be led by {leader}", timeout
        )

    def wait_offline(self, topic: str, partition: int, timeout: float = 30.0) -> DescribedPartition:
        return self.wait_partition(
            topic, partition, lambda state: state.leader == -1, "to be offline", timeout
        )

    def wait_isr(
        self, topic: str, partition: int, isr: Iterable[int], timeout: float = 60.0
    ) -> DescribedPartition:
        """Until the ISR is exactly that set."""
        expected = set(isr)
        return self.wait_partition(
            topic,
            partition,
            lambda state: set(state.isr) == expected,
            f"to have the ISR {_ids(expected)}",
            timeout,
        )

    def wait_topic(
        self,
        topic: str,
        count: int,
        timeout: float = 60.0,
        *,
        each: Callable[[DescribedPartition], bool] = lambda state: state.leader != -1,
        what: str = "with a leader",
    ) -> dict[int, DescribedPartition]:
        """Until the topic has ``count`` partitions and each fulfils the condition (by default: has a leader)."""

        def fulfilled() -> dict[int, DescribedPartition] | None:
            states = self.partitions(topic)
            return states if len(states) == count and all(map(each, states.values())) else None

        return self._wait(
            fulfilled,
            f"{count} partitions of {topic} {what}",
            timeout,
            lambda: f"{sum(map(each, self.partitions(topic).values()))} of them",
        )

    def wait_on_disk(self, topic: str, timeout: float = 60.0) -> None:
        """Until every running broker has created the logs of its replicas, some time after the controller's answer.

        A log exists when it has a segment: a broker that is killed after it created the directory leaves none.
        """
        states = self.partitions(topic)

        def missing() -> int:
            made = {broker: self._logs_of(broker, topic) for broker in self._nodes}
            return sum(
                f"{topic}-{number}" not in made[broker]
                for number, state in states.items()
                for broker in state.replicas
                if self._nodes[broker].is_running
            )

        self._wait(
            lambda: not missing(),
            f"all logs of {topic} to be created",
            timeout,
            lambda: f"{missing()} missing",
        )

    def _logs_of(self, broker: int, topic: str) -> frozenset[str]:
        log_dirs = self._nodes[broker].log_dirs
        segments = (segment for log_dir in log_dirs for segment in log_dir.glob(f"{topic}-*/*.log"))
        return frozenset(segment.parent.name for segment in segments)

    def _wait(
        self,
        condition: Callable[[], T | None],
        what: str,
        timeout: float,
        describe_state: Callable[[], object],
    ) -> T:
        def described() -> object:
            try:
                return describe_state()
            except (NoAnswer, KeyError) as error:
                return error

        return wait_until(condition, what, timeout, passing=(NoAnswer, KeyError), describe_state=described)

    def _views(self, without: frozenset[int] = frozenset()) -> dict[int, frozenset[int]]:
        """Which brokers each broker sees unfenced."""
        request = MetadataRequest(
            topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        views: dict[int, frozenset[int]] = {}
        for broker, answer in self._answers(request, MetadataResponse, without):
            views[broker] = frozenset(alive.node_id for alive in answer.brokers)
        if not views:
            raise NoAnswer("no broker answers")
        return views

    def ask(self, request: RequestPayload, answer: type[R]) -> R:
        """The first answer, in the order of the broker ids. Raises NoAnswer if no broker answers.

        A broker that does not answer may still have done what was asked; the next one is asked too.
        """
        for _, first in self._answers(request, answer):
            return first
        raise NoAnswer("no broker answers")

    def ask_all(self, request: RequestPayload, answer: type[R]) -> dict[int, R]:
        """The answers of all brokers that answer."""
        return dict(self._answers(request, answer))

    def _answers(
        self, request: RequestPayload, answer: type[R], without: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, R]]:
        for broker in self._ports:
            if broker not in without and self._can_answer(broker):
                with suppress(NoAnswer):
                    yield broker, self._answer_of(broker, request, answer)

    def _answer_of(self, broker: int, request: RequestPayload, answer: type[R]) -> R:
        """By the kept connection, unless it has ended or another thread has it. Raises NoAnswer."""
        connection = self._connections.pop(broker, None)
        if connection is not None:
            with suppress(NoAnswer):
                return self._asked(broker, connection, request, answer)
        return self._asked(
            broker, Connection(self._ports[broker], self._credentials, _ANSWER_SECONDS), request, answer
        )

    def _asked(self, broker: int, connection: Connection, request: RequestPayload, answer: type[R]) -> R:
        found = connection.ask(request, answer)
        self._connections[broker] = connection
        return found

    def _can_answer(self, broker: int) -> bool:
        node = self._nodes[broker]
        return node.is_running and not node.is_paused and broker not in self.cut_off

    def _describe_live(self) -> str:
        return f"unfenced are {_ids(self.live_brokers())}"


def _state(found: DescribeTopicPartitionsResponsePartition) -> DescribedPartition:
    return DescribedPartition(
        found.leader_id,
        found.leader_epoch,
        tuple(found.replica_nodes),
        tuple(found.isr_nodes),
        tuple(found.eligible_leader_replicas or ()),
        tuple(found.last_known_elr or ()),
        tuple(found.offline_replicas),
    )


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(ids))) or "none"
