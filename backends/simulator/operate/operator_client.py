"""The operator's requests, in virtual time: the cluster goes on while an answer is awaited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from backends.base.answers import LogPosition, RawBatches
from backends.base.errors import NotAllowed, Unreachable
from backends.simulator.loop import SECOND
from backends.simulator.messages import Error
from backends.simulator.network import OPERATOR, NetworkNode, broker
from backends.simulator.operator_messages import (
    ClusterDescribed,
    DescribeCluster,
    DescribeTopicPartitions,
    TopicPartitionsDescribed,
)
from backends.simulator.simulation import Simulation
from recovery.model import PartitionState, TopicPartition, Unknown, Why

# The native calls of the recovery tool's specification, as a rehearsal names them. Every simulated cluster offers
# them, whatever the release of its scenario; Kafka releases up to 4.3 do not.
NATIVE_LOGS = "GetReplicaLogInfo (native), simulator only"
NATIVE_ELECTIONS = "ElectLeaders v3 (native), simulator only"

TIMEOUT = 3 * SECOND
"""Longest wait for an answer, in virtual µs."""


class ConnectionRefused(NamedTuple):
    """No process listens there; known at once, like a refused connection."""

    node: NetworkNode


class OperatorClient:
    """The operator of one simulation. Its questions change nothing but the time."""

    def __init__(self, simulation: Simulation) -> None:
        self._world = simulation.world
        self._simulation = simulation

    @property
    def now(self) -> int:
        return self._world.loop.now

    def all(self, questions: Sequence[tuple[NetworkNode, Any]], timeout: int = TIMEOUT) -> list[Any]:
        """Send all requests at once. One answer per request, in order: None without an answer,
        ConnectionRefused if no process listens.
        """
        answers: list[Any] = [None] * len(questions)
        waiting: dict[int, None] = {}
        for index, (node, body) in enumerate(questions):
            reachable = self._world.network.connected(OPERATOR, node)
            if not reachable and not self._world.network.up(node):
                answers[index] = ConnectionRefused(node)
                continue
            waiting[index] = None
            self._world.operator.ask(node, body, timeout, self._answered(index, answers, waiting))
        self._world.loop.run_while(lambda: bool(waiting), timeout + 1)
        self.settle()
        return answers

    @staticmethod
    def _answered(index: int, answers: list[Any], waiting: dict[int, None]) -> Callable[[Any], None]:
        def then(reply: Any) -> None:
            answers[index] = reply
            del waiting[index]

        return then

    def one(self, node: NetworkNode, body: Any, timeout: int = TIMEOUT) -> Any:
        return self.all([(node, body)], timeout)[0]

    def wait(self, duration: int) -> None:
        """Let virtual time pass."""
        self._simulation.advance_to(self.now + duration)

    def settle(self) -> None:
        """Run everything that is due now, so that a replay of the run reaches the same state."""
        self._simulation.advance_to(self.now)

    def caught_up(self) -> tuple[int, ClusterDescribed]:
        """The broker with the newest metadata among those that answer, and its answer. Raises Unreachable."""
        brokers = sorted(self._world.specs)
        answers = self.all([(broker(number), DescribeCluster()) for number in brokers])
        reported = [
            (number, answer)
            for number, answer in zip(brokers, answers, strict=True)
            if isinstance(answer, ClusterDescribed)
        ]
        known = [pair for pair in reported if pair[1].brokers]
        if not known:
            raise Unreachable(f"no broker of {self._simulation.scenario.name} answers the operator")
        return max(known, key=lambda pair: (pair[1].offset, -pair[0]))

    def describe(
        self, topics: Sequence[str] | None
    ) -> tuple[tuple[PartitionState, ...], Mapping[str, Error], int]:
        """All pages of DescribeTopicPartitions from a caught-up broker: states, refused topics, the broker's
        id.
        """
        asked, _ = self.caught_up()
        states: list[PartitionState] = []
        refused: dict[str, Error] = {}
        cursor: TopicPartition | None = None
        while True:
            body = DescribeTopicPartitions(None if topics is None else tuple(topics), cursor, 2000)
            page = self.one(broker(asked), body)
            if not isinstance(page, TopicPartitionsDescribed):
                raise Unreachable(f"broker {asked} stopped answering while partitions were described")
            states.extend(page.states)
            refused.update(page.refused)
            cursor = page.cursor
            if cursor is None:
                return tuple(states), refused, asked


def silence(answer: Any, timeout: int = TIMEOUT) -> Unknown:
    """Why there is no answer; ``timeout`` is how long it was waited for."""
    if isinstance(answer, ConnectionRefused):
        return Unknown(Why.NOT_ANSWERED, f"{answer.node}: connection refused")
    return Unknown(Why.NOT_ANSWERED, f"no answer within {timeout / SECOND:g} s")


def denied(error: Error, operation: str, resource: str, doing: str) -> Unknown:
    """A broker's error as an Unknown."""
    if error in (Error.CLUSTER_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED):
        return Unknown(Why.NOT_ALLOWED, f"{doing} needs {operation} on {resource}")
    return Unknown(Why.FAILED, error.value)


def check(answer: Any, operation: str, doing: str) -> Any:
    """The answer itself. Raises NotAllowed or Unreachable."""
    if answer is Error.CLUSTER_AUTHORIZATION_FAILED:
        raise NotAllowed(operation, "the cluster", doing)
    if answer is None or isinstance(answer, (ConnectionRefused, Error)):
        raise Unreachable(f"the active controller did not answer: {doing} may or may not have happened")
    return answer


def topic_denied(topic: str, error: Error) -> Unknown:
    """Why DescribeTopicPartitions does not tell of a topic."""
    if error is Error.UNKNOWN_TOPIC_OR_PARTITION:
        return Unknown(Why.FAILED, f"topic {topic} does not exist")
    return denied(error, "DESCRIBE", f"topic {topic}", "DescribeTopicPartitions")


def batches_fetched(position: LogPosition, row: RawBatches | Error | None) -> RawBatches | Unknown:
    """The batches, or why they are not known; ``row`` is None where the log does not hold the offset."""
    if row is None:
        return Unknown(Why.FAILED, f"the log does not hold offset {position.offset}")
    if isinstance(row, Error):
        return denied(row, "READ", f"topic {position.tp.topic}", "Fetch")
    return row
