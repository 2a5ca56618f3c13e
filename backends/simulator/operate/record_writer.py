"""Records of the operator on a simulated cluster: kept in the saved state, and read back as they were sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.errors import BackendError, Unreachable
from backends.base.record_writer import AppendResult, BatchToAppend, ProducerIdentity
from backends.simulator.messages import CreateTopic, Done, Error, ProduceReply
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import OperatorClient, check, silence
from backends.simulator.operate.session_store import SessionStore
from backends.simulator.operator_messages import AppendBatch
from backends.simulator.simulation import Simulation
from backends.simulator.topology import spread
from recovery.controller.rules import MIN_ISR
from recovery.model import TopicPartition

_FINAL = (Error.TOPIC_AUTHORIZATION_FAILED, Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.CORRUPT_MESSAGE)


class SimulatedRecordWriter:
    """Implements :class:`backends.base.record_writer.RecordWriter`."""

    def __init__(self, simulation: Simulation, client: OperatorClient, session_store: SessionStore) -> None:
        self._simulation = simulation
        self._client = client
        self._session_store = session_store

    async def new_identity(self) -> ProducerIdentity:
        """The virtual time, at which nobody else has asked: ids of the scenario's producers are far below it."""
        self._client.wait(1)
        return ProducerIdentity(self._simulation.now, 0)

    async def append(
        self, broker: int, batches: Sequence[BatchToAppend]
    ) -> Mapping[TopicPartition, AppendResult]:
        questions = [(node(broker), AppendBatch(*batch)) for batch in batches]
        for to, body in questions:
            self._session_store.sent(to, body)
        answers = self._client.all(questions)
        self._session_store.save()
        found: dict[TopicPartition, AppendResult] = {}
        for batch, answer in zip(batches, answers, strict=True):
            if not isinstance(answer, ProduceReply):
                raise Unreachable(f"broker {broker}: {silence(answer).detail}")
            if answer.error is None:
                found[batch.tp] = AppendResult(answer.offset)
            else:
                found[batch.tp] = AppendResult(-1, str(answer.error), answer.error not in _FINAL)
        return found

    async def create_topic(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """Of the configurations only min.insync.replicas has an effect here."""
        asked, reported = self._client.caught_up()
        alive = [number for number, fenced in reported.brokers if not fenced]
        ids = alive if len(alive) >= replicas else [number for number, _ in reported.brokers]
        specs = self._simulation.world.specs
        rows = spread(tuple(specs[number] for number in ids), max(replicas, 1))
        minimum = configs.get(MIN_ISR)
        body = CreateTopic(
            topic,
            tuple(rows[number % len(rows)] for number in range(partitions)),
            int(minimum) if minimum else None,
        )
        self._session_store.sent(node(asked), body)
        reply = check(self._client.one(node(asked), body), "CREATE", f"create topic {topic}")
        self._session_store.save()
        if isinstance(reply, Done) and reply.refusal is not None:
            raise BackendError(f"topic {topic} was not created: {reply.refusal}")
