"""Transactions of a simulated cluster, as an operator's client sees and ends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from backends.base.errors import Unreachable
from backends.base.transactions import (
    LEADERLESS,
    CoordinatorAnswers,
    Marker,
    no_coordinator,
    silent_coordinator,
)
from backends.simulator.messages import Error
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import OperatorClient, denied, silence
from backends.simulator.operate.session_store import SessionStore
from backends.simulator.operator_messages import (
    DescribeProducers,
    ListTransactions,
    ProducersDescribed,
    TransactionsListed,
    TxnMarkersWritten,
    WriteTxnMarkers,
)
from backends.simulator.transaction_logs import NO_TRANSACTION, LedPartition
from recovery.model import NO_LEADER, TopicPartition, Unknown
from recovery.transactions.producer_sequences import ProducerSequence
from recovery.transactions.transaction_values import (
    CoordinatedTransaction,
    OpenTransaction,
    PartitionTransactions,
)


class SimulatedTransactions:
    """Implements :class:`backends.base.transactions.Transactions`."""

    def __init__(self, client: OperatorClient) -> None:
        self._client = client

    async def open_in(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionTransactions | Unknown]:
        by_leader: dict[int, list[TopicPartition]] = {}
        for tp, leader in leaders.items():
            by_leader.setdefault(leader, []).append(tp)
        found: dict[TopicPartition, PartitionTransactions | Unknown] = dict.fromkeys(
            by_leader.pop(NO_LEADER, ()), LEADERLESS
        )
        questions = [(node(leader), DescribeProducers(tuple(tps))) for leader, tps in by_leader.items()]
        answers = self._client.all(questions)
        for (leader, tps), answer in zip(by_leader.items(), answers, strict=True):
            if isinstance(answer, ProducersDescribed):
                found.update((row.tp, _reported(leader, row)) for row in answer.partitions)
            else:
                found.update(dict.fromkeys(tps, silence(answer)))
        return found

    async def coordinated(self, producers: Sequence[int]) -> CoordinatorAnswers:
        states, _, _ = self._client.describe((TRANSACTIONS_TOPIC,))
        not_asked = list(no_coordinator(states))
        brokers = sorted({state.leader for state in states if not state.offline})
        answers = self._client.all([(node(broker), ListTransactions()) for broker in brokers])
        known: dict[int, CoordinatedTransaction] = {}
        for broker, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, TransactionsListed):
                known.update(
                    (one.producer_id, one) for one in answer.transactions if one.producer_id in producers
                )
            else:
                not_asked.append(silent_coordinator(broker, silence(answer)))
        return CoordinatorAnswers(known, tuple(not_asked))


def _reported(leader: int, row: LedPartition) -> PartitionTransactions | Unknown:
    if row.error is not None:
        return denied(row.error, "READ", f"topic {row.tp.topic}", "DescribeProducers")
    open_ones = tuple(
        OpenTransaction(
            row.tp, one.producer_id, one.epoch, one.start_offset, one.last_ms, one.coordinator_epoch
        )
        for one in row.producers
        if one.start_offset != NO_TRANSACTION
    )
    producers = tuple(
        ProducerSequence(one.producer_id, one.epoch, one.last_sequence) for one in row.producers
    )
    return PartitionTransactions(leader, open_ones, row.last_stable, row.high_watermark, producers)


class SimulatedMarkerWriter:
    """Implements :class:`backends.base.transactions.MarkerWriter`."""

    def __init__(self, client: OperatorClient, store: SessionStore) -> None:
        self._client = client
        self._store = store

    async def write(self, broker: int, markers: Sequence[Marker]) -> Mapping[Marker, str | None]:
        to, body = node(broker), WriteTxnMarkers(tuple(markers))
        self._store.sent(to, body)
        answer = self._client.one(to, body)
        self._store.save()
        if not isinstance(answer, TxnMarkersWritten):
            raise Unreachable(f"broker {broker}: {silence(answer).detail}")
        return {
            marker: None if error is None else _refusal(error)
            for marker, error in zip(markers, answer.errors, strict=True)
        }


def _refusal(error: Error) -> str:
    return str(denied(error, "ALTER", "the cluster", "WriteTxnMarkers"))
