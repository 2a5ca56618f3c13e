"""What a network and a peer can do to the live adapter: each costs its own rows and one clear line.

Broker 2 holds a replica of each of the six offline partitions, and is the only one that is tampered with. What
brokers 1 and 4 say must come through as if nothing were wrong, and nothing that broker 2 did not really say may
be taken for its word.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from struct import pack, unpack_from

import pytest

from backends.base.answers import Contact, Outcome, SurveyResult
from backends.live.client.addresses import parse_address
from backends.live.codec.apis import Api
from backends.simulator.network import broker as node
from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import hidden
from backends.simulator.served.frames import Change
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.model import Lineage, ReplicaLog, Unknown, Why
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from tests.wire import response_faults
from tests.wire.response_faults import (
    FIRST_CALLS,
    HIDDEN,
    SCENARIO,
    besides,
    only,
    served_backend,
    slow,
    spoilt,
)

BAD = 2
LOGS = (Api.ListOffsets, Api.Fetch, Api.GetReplicaLogInfo)
NATIVE = "GetReplicaLogInfo (native), epochs by Fetch"
ALL_THE_TIME = {
    "it hangs": response_faults.hangs,
    "it answers after the deadline": slow(60.0),
    "the connection is reset": response_faults.resets,
    "frames are cut": response_faults.cut,
    "half a frame, and silence": response_faults.half_and_silence,
    "a frame of two gigabytes is announced": response_faults.oversized,
    "a frame of a negative length is announced": response_faults.negative,
    "answers are garbage": response_faults.garbage,
    "answers are empty": response_faults.empty,
    "answers have another correlation id": response_faults.other_correlation,
}


def logs_of(result: SurveyResult, broker: int) -> list[ReplicaLog | Unknown]:
    return [
        replica.log for survey in result.surveys for replica in survey.replicas if replica.broker == broker
    ]


def whole(result: SurveyResult, broker: int) -> bool:
    """Whether everything is known of that broker's replicas."""
    return all(
        isinstance(log, ReplicaLog) and isinstance(log.lineage, Lineage) for log in logs_of(result, broker)
    )


def one_clear_line(contact: Contact | None) -> str:
    assert contact is not None and contact.problem is not None
    line = contact.problem.detail
    assert "\n" not in line and f"broker {BAD}" in line and len(line) < 300
    # A cluster id, which is random, may hold 0x too.
    assert not re.search(r"struct|\b0x|tagged field|exhausted", line), line
    return line


def elected(result: SurveyResult, strategy: Strategy) -> list[int]:
    """Whom the strategy would elect."""
    told = [decide(survey, Ranking.LAST_RECORD, strategy) for survey in result.surveys]
    return [decision.leader for decision in told if decision.verdict is DecisionKind.ELECT]


def truth(log: ReplicaLog | Unknown) -> tuple[int, int] | None:
    if isinstance(log, Unknown) or not isinstance(log.lineage, Lineage):
        return None
    return log.lineage.last_epoch, log.log_end_offset


async def each(try_one: Callable[[Change], Awaitable[None]]) -> None:
    """Every fault, all at the same time, each at a cluster of its own; they do little but wait."""
    ended = await asyncio.gather(*map(try_one, ALL_THE_TIME.values()), return_exceptions=True)
    failed = {name: error for name, error in zip(ALL_THE_TIME, ended, strict=True) if error is not None}
    assert not failed


@pytest.mark.parametrize("without", ["", HIDDEN], ids=["native", "emulated"])
async def test_a_broker_that_misbehaves_costs_its_own_rows_and_one_line(without: str) -> None:
    async def survey_with(fault: Change) -> None:
        async with served_backend(without) as on:
            states = await on.offline()
            on.tamper(BAD, only(LOGS, fault))
            result = await on.survey(states, duration=8.0)
            assert whole(result, 1)
            logs = logs_of(result, BAD)
            assert all(isinstance(log, Unknown) and log.why is not Why.NOT_ALLOWED for log in logs)
            one_clear_line(result.contact(BAD))
            assert not elected(result, Strategy.COMPLETE)

    await each(survey_with)


async def test_whoever_answers_first_of_several_is_not_kept_by_one_that_misbehaves() -> None:
    """Everything that any broker can tell is had from another one."""

    async def look_with(fault: Change) -> None:
        async with served_backend() as on:
            on.tamper(1, besides(FIRST_CALLS, fault))
            async with asyncio.timeout(response_faults.HANG_SECONDS):
                cluster = await on.backend.cluster()
                states = await on.offline()
                quorum = await on.backend.quorum()
            assert {broker.id for broker in cluster.brokers} == {1, 2, 3, 4}
            assert [state.leader for state in states] == [-1] * 6
            assert not isinstance(quorum, Unknown)

    await each(look_with)


async def test_a_slow_answer_is_an_answer() -> None:
    async with served_backend() as on:
        states = await on.offline()
        on.tamper(BAD, only(LOGS, slow(0.5)))
        result = await on.survey(states)
        assert whole(result, 1) and whole(result, BAD)


async def test_a_connection_that_is_half_open_costs_its_own_rows() -> None:
    """The machine lost its power: no connection is closed, and nothing comes back any more."""
    async with served_backend() as on:
        states = await on.offline()
        await on.survey(states)
        on.served.world.power_off([BAD])
        on.served.clock.step(0)
        result = await on.survey(states, duration=4.0)
        assert whole(result, 1) and not whole(result, BAD)
        assert "no answer" in one_clear_line(result.contact(BAD))


async def test_an_answer_that_comes_twice_is_taken_once() -> None:
    async with served_backend() as on:
        states = await on.offline()
        before = await on.survey(states)
        on.tamper(BAD, only(LOGS, response_faults.twice))
        after = await on.survey(states)
        for was, found in zip(logs_of(before, BAD), logs_of(after, BAD), strict=True):
            assert truth(found) in (truth(was), None)


async def test_a_broker_that_falls_silent_in_between_keeps_what_it_said() -> None:
    async with served_backend() as on:
        states = await on.offline()
        before = await on.survey(states)
        on.tamper(BAD, only((Api.Fetch,), response_faults.hangs))
        result = await on.survey(states, duration=4.0)
        assert whole(result, 1)
        for was, log in zip(logs_of(before, BAD), logs_of(result, BAD), strict=True):
            assert isinstance(log, ReplicaLog) and isinstance(was, ReplicaLog)
            assert isinstance(log.lineage, Unknown)
            assert log.log_end_offset == was.log_end_offset
        assert not elected(result, Strategy.COMPLETE)


async def test_where_the_epoch_of_the_last_record_may_not_be_asked_for_last_record_refuses() -> None:
    """GetReplicaLogInfo alone needs no READ, and tells the length only."""
    async with served_backend() as on:
        on.served.world.context.denied.permissions = frozenset({"READ topic orders"})
        result = await on.survey(await on.offline())
        assert {contact.call for contact in result.contacts if contact.problem is None} == {NATIVE}
        for survey in result.surveys:
            assert decide(survey, Ranking.LAST_RECORD, Strategy.AGGRESSIVE).verdict is DecisionKind.REFUSED
            assert decide(survey, Ranking.SPECIFICATION, Strategy.AGGRESSIVE).verdict is DecisionKind.ELECT


async def test_who_may_not_use_the_native_calls_gets_the_same_by_the_others() -> None:
    async with served_backend() as on:
        on.served.world.context.denied.permissions = frozenset({"CLUSTER_ACTION cluster"})
        states = await on.offline()
        result = await on.survey(states)
        assert whole(result, 1) and whole(result, BAD)
        assert NATIVE not in {contact.call for contact in result.contacts}
        rows = response_faults.designations(states, result, leader=2)
        ended = await on.backend.designate(
            rows,
            Ranking.LAST_RECORD,
            response_faults.MemoryRecorder(),
            attempts=1,
            stop=response_faults.NeverStopped(),
        )
        assert [(row.leader, row.reverted) for row in ended] == [(2, True)] * 6


def with_code(frame: bytes, code: int) -> bytes:
    """A GetReplicaLogInfo answer whose first partition has that error."""
    # Throttle, broker epoch, more data; one topic: its array, id, and the array of rows of 19 bytes.
    at = 4 + 8 + 1 + 1 + 16 + 1
    return frame[: at + 16] + pack(">h", code) + frame[at + 18 :]


async def test_an_error_code_that_nobody_knows_costs_its_row() -> None:
    async with served_backend() as on:
        states = await on.offline()
        on.tamper(BAD, only((Api.GetReplicaLogInfo,), spoilt(lambda body: with_code(body, 31_999))))
        result = await on.survey(states)
        assert whole(result, 1)
        strange, *rest = sorted(logs_of(result, BAD), key=lambda log: isinstance(log, ReplicaLog))
        assert isinstance(strange, Unknown) and "31999" in strange.detail
        assert all(truth(log) for log in rest)


async def test_an_error_code_that_nobody_knows_in_an_emulated_answer_costs_its_row() -> None:
    def spoil(body: bytes) -> bytes:
        # ListOffsets: throttle, topics; name, partitions of 4 + 2 + 8 + 8 + 4 + 1 bytes.
        at = 4 + 1 + 1 + len("orders") + 1 + 4
        assert unpack_from(">h", body, at) == (0,)
        return body[:at] + pack(">h", 31_999) + body[at + 2 :]

    async with served_backend(HIDDEN) as on:
        states = await on.offline()
        on.tamper(BAD, only((Api.ListOffsets,), spoilt(spoil)))
        result = await on.survey(states)
        assert whole(result, 1)
        assert sum(isinstance(log, Unknown) for log in logs_of(result, BAD)) == 1


async def test_a_cursor_that_does_not_move_is_not_followed_for_ever() -> None:
    """It is another broker's listing that is shown, or one line; never the same page again and again."""

    def stuck(body: bytes) -> bytes:
        cursor = b"\x01" + b"\x07orders" + pack(">i", 0) + b"\0"
        return body[: -len(b"\xff\0")] + cursor + b"\0"

    async with served_backend() as on:
        for broker in (1, 2, 4):
            on.tamper(broker, only((Api.DescribeTopicPartitions,), spoilt(stuck)))
        with pytest.raises(Exception, match="does not get beyond orders"):
            async with asyncio.timeout(response_faults.HANG_SECONDS):
                await on.backend.partitions(["orders"])
        on.tamper(4, None)
        async with asyncio.timeout(response_faults.HANG_SECONDS):
            assert len(await on.offline()) == 6


async def test_a_broker_of_another_cluster_is_told_by_its_cluster_id() -> None:
    async with ServedCluster(read(str(SCENARIO)), ServedClusterOptions(seed=2)) as other:
        address = parse_address(f"127.0.0.1:{other.ports[node(BAD)]}")
        async with served_backend(overrides={BAD: address}) as on:
            result = await on.survey(await on.offline())
            assert whole(result, 1) and not whole(result, BAD)
            assert f"belongs to cluster {other.cluster_id}" in one_clear_line(result.contact(BAD))


async def test_another_broker_behind_the_address_is_told_by_its_id() -> None:
    async with served_backend() as first:
        wrong = parse_address(f"127.0.0.1:{first.served.ports[node(4)]}")
        # A connection that is being opened already goes to the right address.
        await first.backend._fleet.connection(BAD)
        first.backend._fleet.overrides[BAD] = wrong
        result = await first.survey(await first.offline())
        assert whole(result, 1) and not whole(result, BAD)
        one_clear_line(result.contact(BAD))


async def test_a_throttled_answer_is_waited_out_and_one_for_an_hour_is_not() -> None:
    def throttled(milliseconds: int) -> Change:
        return only((Api.ListOffsets,), spoilt(lambda body: pack(">i", milliseconds) + body[4:]))

    async with served_backend(HIDDEN) as on:
        states = await on.offline()
        on.tamper(BAD, throttled(400))
        result = await on.survey(states)
        assert whole(result, 1) and whole(result, BAD)
        on.tamper(BAD, throttled(3_600_000))
        result = await on.survey(states, duration=4.0)
        assert whole(result, 1) and not whole(result, BAD)
        assert "throttled" in one_clear_line(result.contact(BAD))


# Apis that are not what ApiVersions says.


def claims(*calls: tuple[int, int, int]) -> Change:
    """ApiVersions v4 and v0 with these (key, lowest, highest) in place of that key's own row, or besides."""

    async def change(_: int, frame: bytes) -> bytes:
        head, body = frame[4:8], frame[8:]
        old = body[2:4] == b"\0\0"  # v0: an array with a length of four bytes, and rows without tags
        start, size, tags = (6, 6, b"") if old else (3, 7, b"\0")
        count = unpack_from(">i", body, 2)[0] if old else body[2] - 1
        end = start + count * size
        served = {row[0]: row for row in (unpack_from(">hhh", body, at) for at in range(start, end, size))}
        served |= {call[0]: call for call in calls}
        length = pack(">i", len(served)) if old else bytes((len(served) + 1,))
        rows = b"".join(pack(">hhh", *row) + tags for row in served.values())
        body = body[:2] + length + rows + body[end:]
        return pack(">i", len(head + body)) + head + body

    return only((Api.ApiVersions,), change)


async def test_native_calls_that_are_promised_and_not_served_are_done_the_other_way() -> None:
    async with ServedCluster(read(str(SCENARIO)), ServedClusterOptions(without=hidden(HIDDEN))) as served:
        for broker in (1, 2, 4):
            served.listener(node(broker)).frame_faults.change = claims(
                (Api.GetReplicaLogInfo, 0, 0), (Api.ElectLeaders, 0, 3)
            )
        async with response_faults.operator(served) as on:
            assert "native" in (await on.backend.capabilities()).replica_logs
            states = await on.offline()
            result = await on.survey(states)
            assert whole(result, 1) and whole(result, BAD)
            assert {contact.call for contact in result.contacts if contact.problem is None} == {
                "ListOffsets+Fetch (emulated)"
            }
            rows = response_faults.designations(states, result, leader=1)
            async with asyncio.timeout(response_faults.HANG_SECONDS):
                ended = await on.backend.designate(
                    rows,
                    Ranking.LAST_RECORD,
                    response_faults.MemoryRecorder(),
                    attempts=2,
                    stop=response_faults.NeverStopped(),
                )
            assert [(row.leader, row.reverted) for row in ended] == [(1, True)] * 6


async def test_a_native_answer_with_other_fields_is_none() -> None:
    """The api key has carried other fields in a draft: one more field, and the answer is not taken for one."""
    async with served_backend() as on:
        states = await on.offline()
        before = await on.survey(states)
        on.tamper(BAD, only((Api.GetReplicaLogInfo,), spoilt(lambda body: body[:-1] + pack(">i", 7) + b"\0")))
        async with response_faults.operator(on.served) as fresh:
            result = await fresh.survey(states)
        assert [truth(log) for log in logs_of(result, BAD)] == [truth(log) for log in logs_of(before, BAD)]
        contact = result.contact(BAD)
        assert contact is not None and contact.call == "ListOffsets+Fetch (emulated)"


async def test_an_election_whose_answer_is_not_understood_is_looked_for_and_found() -> None:
    """It was held; nobody holds it twice, and nobody says that it was not."""
    async with served_backend() as on:
        states = await on.offline()
        result = await on.survey(states)
        for broker in (1, 2, 4):
            on.tamper(broker, only((Api.ElectLeaders,), spoilt(lambda body: body + b"\0\0")))
        rows = response_faults.designations(states, result, leader=2)
        notes = response_faults.MemoryRecorder()
        async with asyncio.timeout(response_faults.HANG_SECONDS):
            ended = await on.backend.designate(
                rows, Ranking.LAST_RECORD, notes, attempts=1, stop=response_faults.NeverStopped()
            )
        assert [(row.outcome, row.leader) for row in ended] == [(Outcome.ELECTED, 2)] * 6
        assert [name for name, _ in notes.entries] == ["elect", "elect"]


async def test_an_election_that_hangs_is_told_and_every_order_is_put_back() -> None:
    async with served_backend(HIDDEN) as on:
        states = await on.offline()
        result = await on.survey(states)
        for broker in (1, 2, 4):
            on.tamper(broker, only((Api.ElectLeaders,), response_faults.hangs))
        rows = response_faults.designations(states, result, leader=2)
        async with asyncio.timeout(response_faults.HANG_SECONDS):
            ended = await on.backend.designate(
                rows,
                Ranking.LAST_RECORD,
                response_faults.MemoryRecorder(),
                attempts=0,
                stop=response_faults.NeverStopped(),
            )
        assert all(row.reverted for row in ended)
        for state in states:
            assert on.served.world.image.partitions[state.tp].replicas == state.replicas
        assert {(row.outcome, row.leader) for row in ended} == {(Outcome.ELECTED, 2)}
