"""Hanging transactions of the served simulator, as the live adapter and read_committed consumers see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as Where

from backends.base.answers import Outcome
from backends.base.transactions import Marker
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.codec.apis import Api
from backends.simulator.network import broker
from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from console.jobs.consumers.hanging_transactions import read_transactions
from recovery.model import TopicPartition, Unknown
from recovery.ranking import Ranking
from recovery.transactions.transaction_judgement import (
    EndingEvidence,
    TransactionEnding,
    TransactionJudgement,
)
from tests.contract.backend_requests import MemoryRecorder, StopFlag, choices
from tests.wire.raw_request import send_request

PAYMENTS, REFUNDS, TRANSFERS = (TopicPartition(name, 0) for name in ("payments", "refunds", "transfers"))
ALL = (PAYMENTS, REFUNDS, TRANSFERS)
PLAIN, IN_TRANSACTION, SINCE = 50, 100, 20


@pytest.fixture
async def served() -> AsyncIterator[ServedCluster]:
    async with ServedCluster(read("hanging-transactions"), ServedClusterOptions()) as found:
        yield found


@pytest.fixture
async def backend(served: ServedCluster) -> AsyncIterator[LiveBackend]:
    """After broker 2 was elected everywhere."""
    found = LiveBackend(ClientSettings(parse_addresses(served.bootstrap)))
    await found.open()
    try:
        rows = [row for tp in ALL for row in await choices(found, tp.topic, 2)]
        recorder, stop = MemoryRecorder(), StopFlag()
        ended = await found.designate(rows, Ranking.LAST_RECORD, recorder, attempts=3, stop=stop)
        assert {one.outcome for one in ended} == {Outcome.ELECTED}, ended
        yield found
    finally:
        await found.close()


async def readable(served: ServedCluster, tp: TopicPartition, end: int) -> int:
    """How many records a read_committed consumer gets up to offset ``end``."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=served.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    await consumer.start()
    where = Where(*tp)
    count = 0
    try:
        consumer.assign([where])
        while await consumer.position(where) < end:
            batches = await consumer.getmany(timeout_ms=100)
            count += sum(len(records) for records in batches.values())
        return count
    finally:
        await consumer.stop()


async def judged(backend: LiveBackend) -> dict[str, tuple[str, TransactionJudgement | Unknown]]:
    found = await read_transactions(backend, ALL)
    assert found.complete, found.not_asked
    return {
        row.transaction.tp.topic: (row.coordinated.transactional_id if row.coordinated else "", row.judgement)
        for row in found.rows
    }


async def test_what_their_coordinator_decided_is_in_its_log(backend: LiveBackend) -> None:
    proof = EndingEvidence.DECISION_RECORD
    assert await judged(backend) == {
        "payments": ("payments-app", TransactionJudgement(TransactionEnding.COMMITTED, proof)),
        "refunds": ("refunds-app", TransactionJudgement(TransactionEnding.ABORTED, proof)),
        "transfers": (
            "transfers-app",
            TransactionJudgement(TransactionEnding.OPEN, EndingEvidence.COORDINATOR_HAS_IT),
        ),
    }
    found = await read_transactions(backend, ALL)
    assert found.waiting == {PAYMENTS: ("auditor",)}


async def test_markers_make_the_committed_records_visible_and_the_aborted_ones_not(
    served: ServedCluster, backend: LiveBackend
) -> None:
    assert await readable(served, PAYMENTS, PLAIN) == PLAIN
    found = await read_transactions(backend, ALL)
    markers = [
        Marker(tp, row.transaction.producer_id, row.transaction.epoch, tp == PAYMENTS, 0)
        for row in found.hanging
        for tp in (row.transaction.tp,)
    ]
    stale = markers[0]._replace(epoch=markers[0].epoch - 1)
    (refused,) = (await backend.marker_writer().write(2, [stale])).values()
    assert "INVALID_PRODUCER_EPOCH" in str(refused)
    (elsewhere,) = (await backend.marker_writer().write(4, markers[:1])).values()
    assert "NOT_LEADER_OR_FOLLOWER" in str(elsewhere)
    assert await backend.marker_writer().write(2, markers) == dict.fromkeys(markers)
    assert list(await judged(backend)) == ["transfers"]
    end = PLAIN + IN_TRANSACTION + SINCE + 1
    assert await readable(served, PAYMENTS, end) == end - 1
    assert await readable(served, REFUNDS, end) == PLAIN + SINCE


async def test_a_coordinator_that_is_gone_is_said_to_be(served: ServedCluster, backend: LiveBackend) -> None:
    served.world.kill_broker(4)
    found = await read_transactions(backend, ALL)
    assert not found.complete and all(isinstance(row.judgement, Unknown) for row in found.rows), found


async def test_a_coordinator_is_found_by_the_id_and_others_do_not_know_it(served: ServedCluster) -> None:
    asked: dict[str, Any] = {"key_type": 1, "coordinator_keys": ("payments-app",)}
    told = await send_request(served.ports[broker(1)], Api.FindCoordinator, 4, asked)
    assert [row.node_id for row in told.coordinators] == [4]
    for number, error in ((4, 0), (1, 16)):
        port = served.ports[broker(number)]
        asked = {"transactional_ids": ("payments-app",)}
        told = await send_request(port, Api.DescribeTransactions, 0, asked)
        assert [int(row.error_code) for row in told.transaction_states] == [error]
