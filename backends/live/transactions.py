"""Transactions of a running cluster: partition leaders tell what is open, coordinators what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from backends.base.answers import Partitions
from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from backends.base.errors import BackendError
from backends.base.transactions import (
    LEADERLESS,
    CoordinatorAnswers,
    Marker,
    no_coordinator,
    silent_coordinator,
)
from backends.live.calls.transactions import (
    COMMITTED,
    UNCOMMITTED,
    DescribedProducers,
    describe_producers,
    describe_transactions,
    latest_offsets,
    list_transactions,
    write_markers,
)
from backends.live.consumer_groups import COORDINATOR_SECONDS, described_topic, no_answer
from backends.live.errors import as_unknown
from backends.live.nodes.brokers import BrokerFleet
from recovery.model import NO_LEADER, TopicPartition, Unknown, Why
from recovery.transactions.transaction_values import CoordinatedTransaction, PartitionTransactions

PARTITIONS_A_REQUEST = 500
LEADER_SECONDS = 10.0
"""For one request's partitions: a leader that hangs must not keep the others waiting."""


class LiveTransactions:
    """Implements :class:`backends.base.transactions.Transactions`."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet

    async def open_in(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionTransactions | Unknown]:
        by_leader: dict[int, list[TopicPartition]] = {}
        for tp, leader in leaders.items():
            by_leader.setdefault(leader, []).append(tp)
        found: dict[TopicPartition, PartitionTransactions | Unknown] = {}
        led = [(leader, tps) for leader, tps in by_leader.items() if leader != NO_LEADER]
        answers = await asyncio.gather(*(self._on_leader(leader, tps) for leader, tps in led))
        for tp in by_leader.get(NO_LEADER, ()):
            found[tp] = LEADERLESS
        for answer in answers:
            found.update(answer)
        return found

    async def _on_leader(
        self, leader: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, PartitionTransactions | Unknown]:
        found: dict[TopicPartition, PartitionTransactions | Unknown] = {}
        for start in range(0, len(partitions), PARTITIONS_A_REQUEST):
            part = partitions[start : start + PARTITIONS_A_REQUEST]
            try:
                async with asyncio.timeout(LEADER_SECONDS):
                    found.update(await self._part(leader, part))
            except TimeoutError:
                why = f"broker {leader}: no answer within {LEADER_SECONDS:g} s"
                found.update(dict.fromkeys(part, Unknown(Why.NOT_ANSWERED, why)))
            except BackendError as error:
                found.update(dict.fromkeys(part, as_unknown(error)))
        return found

    async def _part(
        self, leader: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, PartitionTransactions | Unknown]:
        conn = await self._fleet.connection(leader)
        described = await describe_producers(conn, partitions)
        stable = await latest_offsets(conn, partitions, COMMITTED)
        marks = await latest_offsets(conn, partitions, UNCOMMITTED)
        unreported = Unknown(Why.NOT_ANSWERED, f"broker {leader} left the partition out")
        found: dict[TopicPartition, PartitionTransactions | Unknown] = {}
        for tp in partitions:
            reported = (described.get(tp, unreported), stable.get(tp, unreported), marks.get(tp, unreported))
            match reported:
                case (DescribedProducers() as rows, int() as last_stable, int() as mark):
                    found[tp] = PartitionTransactions(leader, rows.open, last_stable, mark, rows.producers)
                case _:
                    found[tp] = next(one for one in reported if isinstance(one, Unknown))
        return found

    async def coordinated(self, producers: Sequence[int]) -> CoordinatorAnswers:
        brokers = self._fleet.coordinators
        answers, topic = await asyncio.gather(
            asyncio.gather(*(self._on_coordinator(broker, producers) for broker in brokers)),
            described_topic(self._fleet, TRANSACTIONS_TOPIC),
        )
        known: dict[int, CoordinatedTransaction] = {}
        failed: dict[int, Unknown] = {}
        unknown: list[Unknown] = []
        for broker, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, Unknown):
                failed[broker] = answer
                continue
            for one in answer:
                if isinstance(one, Unknown):
                    unknown.append(one)
                else:
                    known[one.producer_id] = one
        return CoordinatorAnswers(known, (*_not_asked(failed, topic), *unknown))

    async def _on_coordinator(
        self, broker: int, producers: Sequence[int]
    ) -> list[CoordinatedTransaction | Unknown] | Unknown:
        try:
            async with asyncio.timeout(COORDINATOR_SECONDS):
                conn = await self._fleet.connection(broker)
                ids = await list_transactions(conn, producers)
                return list((await describe_transactions(conn, ids)).values()) if ids else []
        except TimeoutError:
            return no_answer(broker)
        except BackendError as error:
            return as_unknown(error)


class LiveMarkerWriter:
    """Implements :class:`backends.base.transactions.MarkerWriter`."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet

    async def write(self, broker: int, markers: Sequence[Marker]) -> Mapping[Marker, str | None]:
        return await write_markers(await self._fleet.connection(broker), markers)


def _not_asked(failed: Mapping[int, Unknown], topic: Partitions | Unknown) -> list[Unknown]:
    """Why a coordinator may know more than the answers show."""
    if isinstance(topic, Unknown) or TRANSACTIONS_TOPIC in topic.hidden:
        detail = f"needs DESCRIBE on Topic:{TRANSACTIONS_TOPIC} to tell whether a part of it is offline"
        why = topic if isinstance(topic, Unknown) else Unknown(Why.NOT_ALLOWED, detail)
        return [why, *failed.values()]
    leaders = {state.leader for state in topic.states}
    silent = [silent_coordinator(broker, why) for broker, why in failed.items() if broker in leaders]
    return [*no_coordinator(topic.states), *silent]
