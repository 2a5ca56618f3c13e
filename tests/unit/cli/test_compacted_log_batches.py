"""What is read of compacted logs before a plan is made, and what is said where it cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from backends.base.answers import LogPosition, RawBatches
from backends.base.errors import Unreachable
from backends.base.protocol import Backend
from backends.log_segments.batch_header import HEADER
from console.reading.compacted_log_batches import LOG_BYTES, with_batches_read
from recovery.compacted_logs import NOT_READ, CompactedBatch, CompactedLogs
from recovery.model import ReplicaLog, Survey, TopicPartition, Unknown, Why
from tests.unit.recovery.surveys import log, survey

BODY = b"x" * 39
FIRST, LAST = CompactedBatch(0, 39, 40, 11), CompactedBatch(40, 41, 2, 22)
LOG = log((0, 0, 42))._replace(size=900)


def batch(kept: CompactedBatch, *, magic: int = 2) -> bytes:
    delta = kept.last - kept.base
    fields = (kept.base, 49 + len(BODY), 0, magic, kept.crc, 0, delta, 5, 5, -1, -1, -1, kept.records)
    return HEADER.pack(*fields) + BODY


class Brokers:
    """``held`` are the batches of each broker's log; it sends at most ``at_once`` of them, and cuts the last."""

    simulated = False

    def __init__(self, held: Mapping[int, Sequence[bytes]], at_once: int = 9) -> None:
        self.held = held
        self.at_once = at_once
        self.asked: list[tuple[int, int]] = []
        self.answer: Callable[[], RawBatches | Unknown] | None = None

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        ((tp, offset),) = positions
        assert 0 < max_bytes <= LOG_BYTES
        self.asked.append((broker, offset))
        if self.answer is not None:
            return {tp: self.answer()}
        if broker not in self.held:
            raise Unreachable(f"broker {broker} is gone")
        ends = [one for one in self.held[broker] if _last(one) >= offset][: self.at_once]
        return {tp: RawBatches(b"".join(ends)[: -len(BODY) // 2] if len(ends) > 1 else b"".join(ends))}


def _last(data: bytes) -> int:
    base, _, _, _, _, _, delta, *_ = HEADER.unpack_from(data)
    return int(base) + int(delta)


def read(brokers: Brokers, what: Survey, progress: list[tuple[str, int, int]] | None = None) -> CompactedLogs:
    def tell(doing: str, done: int, of: int) -> None:
        if progress is not None:
            progress.append((doing, done, of))

    (found,) = asyncio.run(with_batches_read(cast("Backend", brokers), [what], tell))
    assert found.compacted is not None
    return found.compacted


def compacted(logs: dict[int, ReplicaLog | Unknown]) -> Survey:
    return survey(logs)._replace(compacted=NOT_READ)


WHOLE = (batch(FIRST), batch(LAST))


def test_every_batch_is_read_in_as_many_answers_as_it_takes_and_it_is_told_how_far_it_is() -> None:
    for at_once in (1, 2):
        brokers = Brokers({1: (batch(LAST),), 2: WHOLE}, at_once)
        told: list[tuple[str, int, int]] = []
        found = read(brokers, compacted({1: LOG, 2: LOG}), told)
        assert found == CompactedLogs({1: (LAST,), 2: (FIRST, LAST)}, {})
        assert told[-1] == ("comparing compacted logs", 2, 2)


def test_nothing_is_read_of_a_topic_that_is_not_compacted_or_has_a_leader_or_one_log() -> None:
    brokers = Brokers({})
    plain, alone = survey({1: LOG, 2: LOG}), compacted({1: LOG, 2: Unknown(Why.NOT_ANSWERED, "")})
    led = survey({1: LOG, 2: LOG}, leader=1)._replace(compacted=NOT_READ)
    asked = [plain, alone, led]
    assert asyncio.run(with_batches_read(cast("Backend", brokers), asked)) == tuple(asked)
    assert brokers.asked == []


def test_a_log_that_cannot_be_read_is_told_with_the_reason_and_the_others_are_read() -> None:
    found = read(Brokers({1: WHOLE}), compacted({1: LOG, 2: LOG}))
    assert found.batches == {1: (FIRST, LAST)}
    assert "broker 2 is gone" in found.unread[2]
    brokers = Brokers({})
    for answer, why in (
        (Unknown(Why.NOT_ALLOWED, "needs READ on topic t"), "needs READ on topic t"),
        (RawBatches(batch(FIRST, magic=1)), "its magic is 1"),
        (RawBatches(b"x" * 20), "20 bytes, which hold no batch"),
    ):
        brokers.answer = lambda answer=answer: answer
        found = read(brokers, compacted({1: LOG, 2: LOG}))
        assert not found.batches and all(why in one for one in found.unread.values()), found


def test_a_large_log_is_not_read() -> None:
    brokers = Brokers({1: WHOLE, 2: WHOLE})
    found = read(brokers, compacted({1: LOG, 2: LOG._replace(size=LOG_BYTES + 1)}))
    assert found.unread == {2: "its log is larger than 16 MiB"}
    assert {broker for broker, _ in brokers.asked} == {1}
    brokers.answer = lambda: RawBatches(batch(CompactedBatch(0, 0, 1, 1)) + b"x" * LOG_BYTES)
    assert "larger" in read(brokers, compacted({1: LOG, 2: LOG._replace(size=-1)})).unread[2]


def test_a_broker_that_never_answers_does_not_hold_up_the_plan() -> None:
    class Hanging(Brokers):
        async def read_batches(
            self, broker: int, positions: Sequence[LogPosition], max_bytes: int
        ) -> Mapping[TopicPartition, RawBatches | Unknown]:
            if broker == 2:
                await asyncio.Event().wait()
            return await super().read_batches(broker, positions, max_bytes)

    async def asked() -> CompactedLogs | None:
        what = compacted({1: LOG, 2: LOG})
        backend = cast("Backend", Hanging({1: WHOLE}))
        (found,) = await with_batches_read(backend, [what], seconds=0.05)
        return found.compacted

    found = asyncio.run(asked())
    assert found == CompactedLogs({1: (FIRST, LAST)}, {2: "not read within 0.05 s"})


def test_logs_of_one_size_are_read_last() -> None:
    alike, apart = compacted({1: LOG, 2: LOG}), compacted({1: LOG, 2: LOG._replace(size=5)})
    apart = apart._replace(state=apart.state._replace(topic="u"))
    brokers = Brokers({1: WHOLE, 2: WHOLE})
    order: list[str] = []

    class Noting(Brokers):
        async def read_batches(
            self, broker: int, positions: Sequence[LogPosition], max_bytes: int
        ) -> Mapping[TopicPartition, RawBatches | Unknown]:
            order.append(positions[0].tp.topic)
            return await super().read_batches(broker, positions, max_bytes)

    noting = Noting(brokers.held)
    asyncio.run(with_batches_read(cast("Backend", noting), [alike, apart]))
    assert order[0] == "u" and order[-1] == "t"
