"""Requests that change something: sent once, and what the controller's answer says of each partition."""

# ruff: noqa: ARG002  # the signatures are the connection's

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kio.schema.alter_partition_reassignments.v1 import response as reassignments
from kio.schema.elect_leaders.v2 import response as elections
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta

from backends.base.answers import Depth, SurveyRequest
from backends.base.errors import BackendError
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.partition_errors import LEFT_OUT, refusal
from backends.live.calls.reassignments import write_assignments
from backends.live.codec.apis import USES, Api
from backends.live.connections.connection import BrokerConnection
from backends.live.elections import kafka_elections
from backends.live.elections.kafka_elections import hold_elections
from backends.live.elections.live_election_api import LiveElectionApi
from backends.live.elections.native_election import elect_designated
from backends.live.errors import BrokerError, ConnectionProblem
from backends.live.nodes.brokers import BrokerAnswer, BrokerFleet
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from tests.unit.live.one_partition import Journal

ONE, OTHER, NOT_ASKED = (TopicPartition("orders", number) for number in range(3))
NOW = i32Timedelta.parse(timedelta(0))
Codes = Mapping[TopicPartition, ErrorCode]


class Connection:
    """Answers each change with these error codes, by partition; ``features`` and ``highest`` as a broker's."""

    request_timeout = 30.0
    where = "broker 1"

    def __init__(self, codes: Codes | None = None, *, elr: int = 1, alter: int | None = 1) -> None:
        self._codes = codes or {}
        self.features = {"eligible.leader.replicas.version": elr}
        self._alter = alter

    def highest(self, api: Api) -> int | None:
        return self._alter if api == Api.AlterPartitionReassignments else max(USES[api].sent)

    def require(self, api: Api) -> int:
        return max(USES[api].sent)

    async def send(
        self, request: object, response_type: type, *, timeout: float | None = None, ahead: bool = False
    ) -> Any:
        if response_type is reassignments.AlterPartitionReassignmentsResponse:
            return self._reassignments()
        rows = tuple(
            elections.PartitionResult(partition_id=i32(tp.partition), error_code=code, error_message=None)
            for tp, code in self._codes.items()
        )
        topic = elections.ReplicaElectionResult(topic=TopicName("orders"), partition_result=rows)
        return elections.ElectLeadersResponse(
            throttle_time=NOW, error_code=ErrorCode.none, replica_election_results=(topic,)
        )

    async def send_exactly(
        self, request: object, response_type: type, *, timeout: float | None = None
    ) -> Any:
        return await self.send(request, response_type)

    def _reassignments(self) -> reassignments.AlterPartitionReassignmentsResponse:
        rows = tuple(
            reassignments.ReassignablePartitionResponse(
                partition_index=i32(tp.partition), error_code=code, error_message=None
            )
            for tp, code in self._codes.items()
        )
        topic = reassignments.ReassignableTopicResponse(name=TopicName("orders"), partitions=rows)
        return reassignments.AlterPartitionReassignmentsResponse(
            throttle_time=NOW, error_code=ErrorCode.none, error_message=None, responses=(topic,)
        )


CALLS: Mapping[str, Callable[[Any], Awaitable[Mapping[TopicPartition, object]]]] = {
    "order": lambda conn: write_assignments(conn, {ONE: (2, 1), OTHER: (2, 1)}),
    "election": lambda conn: elect_leaders(conn, (ONE, OTHER), preferred=False),
    "designated": lambda conn: elect_designated(conn, {ONE: 2, OTHER: 2}),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_partition_that_the_answer_leaves_out_may_or_may_not_be_done(call: str) -> None:
    found = await CALLS[call](Connection({ONE: ErrorCode.none}))
    assert found == {ONE: None, OTHER: LEFT_OUT}
    assert LEFT_OUT.doubtful


async def test_a_designated_election_of_a_partition_that_was_not_asked_for_is_not_taken() -> None:
    found = await CALLS["designated"](Connection(dict.fromkeys((ONE, OTHER, NOT_ASKED), ErrorCode.none)))
    assert found == {ONE: None, OTHER: None}


def test_what_timed_out_at_the_controller_may_still_be_carried_out() -> None:
    found = refusal(ErrorCode.request_timed_out, None)
    assert found is not None and found.doubtful and found.retryable


# Sent once.


class Fleet(BrokerFleet):
    """Two brokers; the first takes a request and breaks the connection, or does not answer at all."""

    def __init__(self, *, sent: bool) -> None:
        self.asked: list[int] = []
        self._sent = sent

    async def any(
        self,
        ask: Callable[[BrokerConnection], Awaitable[Any]],
        *,
        again: bool = True,
        forwarded: bool = False,
    ) -> BrokerAnswer[Any]:
        pools = SimpleNamespace(_order=lambda *_: [1, 2], _ask=self._asking(ask), _leftovers=set())
        pools.quorum, pools._forwarding, pools._common = _no_quorum, None, None
        pools._quorum = SimpleNamespace(forget=lambda: None)
        pools._any = partial(BrokerFleet._any, cast("BrokerFleet", pools))
        return await BrokerFleet.any(cast("BrokerFleet", pools), ask, again=again, forwarded=forwarded)

    def _asking(self, ask: Callable[[BrokerConnection], Awaitable[Any]]) -> Callable[..., Any]:
        def asking(_pool: object, broker: int, *_: object) -> Callable[[], Awaitable[BrokerAnswer[Any]]]:
            async def run() -> BrokerAnswer[Any]:
                self.asked.append(broker)
                if broker == 1:
                    raise BrokerError(ConnectionProblem.CLOSED, "broker 1", "closed", sent=self._sent)
                conn = cast("BrokerConnection", Connection({ONE: ErrorCode.none}))
                return BrokerAnswer(await ask(conn), broker, True)

            return run

        return asking


async def _no_quorum() -> Unknown:
    return Unknown(Why.NOT_ANSWERED, "not asked")


async def _no_logs(request: SurveyRequest, cluster: object) -> Any:
    raise AssertionError(Depth.LAST)


CHANGES: Mapping[str, Callable[[LiveElectionApi], Awaitable[Mapping[TopicPartition, object]]]] = {
    "order": lambda api: api.write_orders({ONE: (2, 1)}),
    "election": lambda api: api.elect([ONE], preferred=False),
    "designated": lambda api: api.designate({ONE: 2}),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_that_the_first_broker_may_still_carry_out_is_sent_to_no_second(change: str) -> None:
    fleet = Fleet(sent=True)
    with pytest.raises(BrokerError) as caught:
        await CHANGES[change](LiveElectionApi(fleet, _no_logs))
    assert caught.value.sent
    assert fleet.asked == [1]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_that_was_not_sent_goes_to_the_next_broker(change: str) -> None:
    fleet = Fleet(sent=False)
    assert await CHANGES[change](LiveElectionApi(fleet, _no_logs)) == {ONE: None}
    assert fleet.asked == [1, 2]


@pytest.mark.parametrize(
    ("elr", "alter", "blocks"), [(1, None, True), (1, 1, False), (0, None, False)], ids=str
)
async def test_only_controllers_before_4_1_with_the_elr_on_are_blocked_by_a_dead_last_known_leader(
    elr: int, alter: int | None, blocks: bool
) -> None:
    class OneBroker:
        async def any(self, ask: Callable[[Any], Awaitable[bool]]) -> BrokerAnswer[bool]:
            return BrokerAnswer(await ask(Connection(elr=elr, alter=alter)), 1, True)

    api = LiveElectionApi(cast("BrokerFleet", OneBroker()), _no_logs)
    assert await api.blocks_on_dead_last_known_leader() is blocks


# Elections as Kafka's own tool asks for them.


class Preferred:
    """One partition whose preferred leader is 1; a broker shows its election at the third reading only."""

    def __init__(self, refused: ErrorCode = ErrorCode.none) -> None:
        self.readings = 0
        self._refused = refused

    async def elect(self, partitions: object, *, preferred: bool) -> Mapping[TopicPartition, object]:
        return {ONE: refusal(self._refused, None)}

    async def states(self, partitions: object) -> Mapping[TopicPartition, PartitionState]:
        self.readings += 1
        leader = 1 if self.readings >= 3 else 2
        return {ONE: PartitionState(*ONE, "id", leader, 5, (1, 2), (1, 2), (), (), ())}


async def test_a_preferred_election_is_told_once_the_preferred_replica_is_seen_to_lead() -> None:
    cluster = Preferred()
    (found,) = await hold_elections(cast("Any", cluster), True, [ONE], Journal())
    assert (found.outcome, found.leader, cluster.readings) == ("elected", 1, 3)


async def test_an_election_that_timed_out_at_the_controller_is_not_written_down_as_refused() -> None:
    journal = Journal()
    await hold_elections(cast("Any", Preferred(ErrorCode.request_timed_out)), True, [ONE], journal)
    ((_, ended),) = journal.ended
    assert list(cast("Mapping[TopicPartition, str]", ended["unknown"])) == [ONE]
    assert not ended["refused"]


class Unanswered(Preferred):
    """The connection is cut between the request and its answer, or before the request."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__()
        self._sent = sent

    async def elect(self, *_: object, **__: object) -> Mapping[TopicPartition, None]:
        raise BrokerError(ConnectionProblem.CLOSED, "broker 1", "", sent=self._sent)


@pytest.mark.parametrize("sent", [True, False])
async def test_an_election_without_an_answer_is_not_told_as_one_that_was_not_held(sent: bool) -> None:
    with pytest.raises(BackendError) as failed:
        await hold_elections(cast("Any", Unanswered(sent=sent)), False, [ONE], Journal())
    assert ("may still be carried out for up to 150 s" in str(failed.value)) is sent


@pytest.mark.parametrize(("sent", "recorded"), [(True, "unknown"), (False, "refused")])
async def test_an_election_that_was_not_sent_is_recorded_as_refused(sent: bool, recorded: str) -> None:
    journal = Journal()
    with pytest.raises(BackendError):
        await hold_elections(cast("Any", Unanswered(sent=sent)), False, [ONE], journal)
    ((_, ended),) = journal.ended
    assert ended.keys() == {recorded, "error"}


async def test_an_election_that_timed_out_at_the_controller_is_in_doubt_until_its_leader_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = Preferred(ErrorCode.request_timed_out)
    (found,) = await hold_elections(cast("Any", slow), True, [ONE], Journal())
    assert (found.outcome, found.in_doubt, slow.readings) == ("elected", False, 3)
    monkeypatch.setattr(kafka_elections, "READ_BACK_FOR", 0.0)
    (found,) = await hold_elections(
        cast("Any", Preferred(ErrorCode.request_timed_out)), True, [ONE], Journal()
    )
    assert (found.outcome, found.in_doubt) == ("failed", True)
    assert "may still be carried out for up to 150 s" in found.detail
