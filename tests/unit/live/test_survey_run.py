"""How a survey goes on when brokers die, hang and come back between any two of its questions.

Brokers are stood in for by whole logs: which broker answers when cannot be commanded on a real cluster. What a
real one answers, and single such moments, are in tests/live.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.base.answers import ClusterInfo, Depth, LikelyEpochs, SurveyRequest
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem
from backends.live.survey import log_queries
from backends.live.survey import survey_run as module
from backends.live.survey.log_queries import LogQueryError, ReplicaLogEnd
from backends.live.survey.survey_answer import LiveSurveys, SurveyedReplicas
from backends.live.survey.survey_run import LiveSurvey
from backends.live.survey.topic_batch import LogEndColumns, TopicBatch
from recovery.epoch_probe import EarliestOffset, EpochAnswer, OutOfRange
from recovery.model import (
    Broker,
    EpochSpan,
    Lineage,
    PartitionState,
    ReplicaLog,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.survey_columns import (
    MergedSurveys,
    SurveyRows,
    leaderless,
    totals,
    troubled,
    unknown_values,
)
from tests.repetitions import repetitions
from tests.unit.recovery.logs import WholeLog, cluster_logs

BROKERS = (0, 1, 2)
LEADER_EPOCH = 60


@dataclass
class Player:
    """One broker: it answers after ``delays`` turns of the loop, and is dead from its ``dies`` th request on.

    ``shy`` are the partitions that it answers with a retryable error, and how often; ``odd`` those about which it
    contradicts itself, as a log does that changes meanwhile.

    The controller fences it after it has been looked at ``fenced_after`` times; if it ``returns``, it answers
    again after so many attempts to connect instead. For ``lags`` questions for its log ends it knows an older
    leader epoch, and leads in it.
    """

    logs: Mapping[TopicPartition, WholeLog]
    delays: Iterator[int]
    dies: int | None = None
    returns: int | None = None
    asked: int = 0
    dialled: int = 0
    garbled: bool = False
    shy: dict[TopicPartition, int] = field(default_factory=dict)
    odd: dict[TopicPartition, int] = field(default_factory=dict)
    lags: int = 0
    lead_questions: int = 0

    @property
    def dead(self) -> bool:
        if self.dies is None or self.asked < self.dies:
            return False
        return self.returns is None or self.dialled < self.returns

    @property
    def api_keys(self) -> Mapping[int, tuple[int, int]]:
        return {}

    def highest(self, _api: int) -> int | None:
        """It offers no native call."""
        return None

    async def request(self) -> None:
        self.asked += 1
        for _ in range(next(self.delays)):
            await asyncio.sleep(0)
        if self.garbled:
            raise BrokerError(ConnectionProblem.UNDECODABLE, "broker", "answer not understood", sent=True)
        if self.dead:
            raise BrokerError(ConnectionProblem.CLOSED, "broker", "connection closed by peer", sent=True)

    def end(self, tp: TopicPartition) -> ReplicaLogEnd | LogQueryError:
        if self.shy.get(tp):
            self.shy[tp] -= 1
            return LogQueryError(Unknown(Why.FAILED, "the broker has no such replica"), retryable=True)
        return ReplicaLogEnd(LEADER_EPOCH - bool(self.lags), self.logs[tp].end)

    def epoch(self, tp: TopicPartition, epoch: int) -> EpochAnswer | OutOfRange | EarliestOffset:
        if self.odd.get(tp):
            self.odd[tp] -= 1
            return EpochAnswer((LEADER_EPOCH + 1, 0), 0, 0)
        return self.logs[tp].fetch(epoch)


@dataclass
class Cast:
    """The brokers, and what the controller thinks of them."""

    players: tuple[Player, ...]
    fenced_after: int = 3
    looks: int = 0
    beside: list[int] = field(default_factory=list)

    async def connection(self, broker: int) -> BrokerConnection:
        player = self.players[broker]
        await asyncio.sleep(0)
        if player.dead:
            player.dialled += 1
            raise BrokerError(ConnectionProblem.REFUSED, "broker", "connection refused")
        return cast("BrokerConnection", player)

    def address(self, broker: int) -> str:
        return f"broker-{broker}"

    def cluster(self) -> ClusterInfo:
        gone = self.looks >= self.fenced_after
        brokers = tuple(
            Broker(number, "", 0, None, gone and player.dead and player.returns is None)
            for number, player in enumerate(self.players)
        )
        return ClusterInfo("id", brokers, 0, True)

    async def look_again(self) -> ClusterInfo:
        await asyncio.sleep(0)
        self.looks += 1
        return self.cluster()

    async def note_log_dirs(self, broker: int, connection: BrokerConnection) -> None:
        await cast("Player", connection).request()
        self.beside.append(broker)


async def log_ends(
    connection: Any, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, ReplicaLogEnd | LogQueryError]:
    player: Player = connection
    await player.request()
    found = {tp: player.end(tp) for tp in partitions}
    player.lags = max(0, player.lags - 1)
    return found


async def probe_epochs(
    connection: Any, questions: Mapping[TopicPartition, tuple[int, int]], timeout: float
) -> dict[TopicPartition, EpochAnswer | OutOfRange | EarliestOffset]:
    player: Player = connection
    await player.request()
    for tp, (log_end, _) in questions.items():
        assert log_end == player.logs[tp].end
    return {tp: player.epoch(tp, epoch) for tp, (_, epoch) in questions.items()}


async def log_ends_of(
    connection: Any, batches: Sequence[TopicBatch], timeout: float
) -> list[LogEndColumns | dict[TopicPartition, ReplicaLogEnd | LogQueryError]]:
    """As the real one: columns where nothing is in error, and row by row otherwise."""
    rows = await log_ends(connection, [tp for batch in batches for tp in batch.tps()], timeout)
    if any(isinstance(row, LogQueryError) for row in rows.values()):
        return [rows] * len(batches)
    ends = [[cast("ReplicaLogEnd", rows[tp]) for tp in batch.tps()] for batch in batches]
    return [
        LogEndColumns([end.offset for end in several], [end.leader_epoch for end in several])
        for several in ends
    ]


async def leading(
    connection: Any, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, bool]:
    player: Player = connection
    await player.request()
    player.lead_questions += 1
    return dict.fromkeys(partitions, bool(player.lags))


async def probe_epochs_of(
    connection: Any, batches: Sequence[TopicBatch], timeout: float
) -> list[list[EpochAnswer | OutOfRange | EarliestOffset]]:
    questions = {
        TopicPartition(batch.topic, number): (log_end, epoch)
        for batch in batches
        for number, log_end, epoch in zip(*batch.questions(), strict=True)
    }
    answers = await probe_epochs(connection, questions, timeout)
    return [
        [answers[TopicPartition(batch.topic, number)] for number in batch.questions()[0]] for batch in batches
    ]


@contextmanager
def on_stage() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_queries, "log_ends", log_ends)
        patch.setattr(log_queries, "probe_epochs", probe_epochs)
        patch.setattr(log_queries, "log_ends_of", log_ends_of)
        patch.setattr(log_queries, "probe_epochs_of", probe_epochs_of)
        patch.setattr(log_queries, "leading", leading)
        patch.setattr(module, "PAUSES", (0.0,))
        patch.setattr(module, "CATCH_UP_PAUSES", (0.0, 0.0))
        yield


def play(
    cast_of: Cast, depth: Depth, likely: LikelyEpochs | None = None, picture_wait: float | None = None
) -> LiveSurvey:
    """A survey that comes to its end by itself: its duration is an hour."""
    tps = sorted(cast_of.players[0].logs)
    states = [
        PartitionState(tp.topic, tp.partition, "id", -1, LEADER_EPOCH, BROKERS, (), (), (), ()) for tp in tps
    ]

    async def run() -> LiveSurvey:
        survey = LiveSurvey(
            cast_of,
            SurveyRequest(
                tuple(states), 3600.0, depth, likely_epochs=likely or {}, picture_wait=picture_wait
            ),
            cast_of.cluster(),
            read_cluster_again=cast_of.look_again,
            note_log_dirs=cast_of.note_log_dirs,
        )
        async with asyncio.timeout(20):
            await survey.run()
        return survey

    with on_stage():
        return asyncio.run(run())


@st.composite
def casts(draw: st.DrawFn) -> Cast:
    partitions = [draw(cluster_logs()) for _ in range(draw(st.integers(1, 3)))]
    players = []
    for broker in BROKERS:
        logs = {TopicPartition("t", n): logs[broker] for n, (logs, _) in enumerate(partitions)}
        delays = draw(st.lists(st.integers(0, 12), min_size=1, max_size=8))
        dies = draw(st.none() | st.integers(1, 8))
        returns = draw(st.none() | st.integers(1, 4)) if dies else None
        shy = draw(st.dictionaries(st.sampled_from(sorted(logs)), st.integers(1, 2)))
        odd = dict.fromkeys(draw(st.sets(st.sampled_from(sorted(logs)))), 1)  # three brokers: CHANGES in all
        players.append(Player(logs, _round_and_round(delays), dies, returns, shy=shy, odd=odd))
    return Cast(tuple(players), draw(st.integers(0, 4)))


def _round_and_round(values: list[int]) -> Iterator[int]:
    while True:
        yield from values


@settings(max_examples=repetitions(80, 300), deadline=None)
@given(casts(), st.sampled_from(Depth))
def test_a_survey_ends_by_itself_and_whoever_lived_told_everything(cast_of: Cast, depth: Depth) -> None:
    survey = play(cast_of, depth)
    reported = SurveyedReplicas(survey, dict(enumerate(cast_of.cluster().brokers)), {})
    told = reported.all()
    assert {state[:2]: reported.one(state) for state in survey.states} == told
    unknown = {tp for tp, several in told.items() if any(_unknown(one.log) for one in several)}
    assert unknown <= reported.incomplete()
    assert told.keys() == cast_of.players[0].logs.keys()
    assert all(row.done for row in survey.rows.values())
    for name, several in told.items():
        tp = TopicPartition(*name)
        for replica in several:
            player = cast_of.players[replica.broker]
            truth = player.logs[tp]
            if player.dies is not None and player.returns is None:
                assert isinstance(replica.log, Unknown) or replica.log.log_end_offset == truth.end
                continue
            assert isinstance(replica.log, ReplicaLog) and isinstance(replica.log.lineage, Lineage)
            assert replica.log.log_end_offset == truth.end
            if truth.start < truth.end:
                assert replica.log.lineage.last_epoch == truth.epochs[-1]
            if depth is Depth.FULL:
                assert replica.log.lineage.spans == truth.spans()


@settings(max_examples=repetitions(30, 60), deadline=None)
@given(casts())
def test_counts_over_columns_are_those_over_rows(cast_of: Cast) -> None:
    survey = play(cast_of, Depth.LAST)
    listed = {broker.id: broker for broker in cast_of.cluster().brokers}
    why = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE_CONFIGS on topic t")
    busy = frozenset({next(iter(cast_of.players[0].logs))})
    columns = LiveSurveys(survey.states, SurveyedReplicas(survey, listed, {}), {"t": why}, busy)
    one_by_one = [columns[index] for index in range(len(columns))]
    led = [state._replace(leader=1, isr=(1, 2), elr=(0,)) for state in survey.states]
    others = SurveyRows([row._replace(state=state) for row, state in zip(one_by_one, led, strict=True)])
    mixed = [state for pair in zip(led, survey.states, strict=True) for state in pair]
    merged = MergedSurveys(mixed, columns, others)
    assert [merged[index] for index in range(len(merged))] == list(merged)
    for counted, rows in ((columns, one_by_one), (merged, list(merged))):
        assert totals(counted) == totals(rows)
        assert unknown_values(counted, BROKERS) == unknown_values(rows, BROKERS)
        assert troubled(counted) == troubled(rows)
        assert leaderless(counted) == leaderless(rows) == tuple(one_by_one)
    assert list(columns) == one_by_one and columns == tuple(one_by_one)
    assert totals(columns).answered == sum(
        isinstance(one.log, ReplicaLog) for row in one_by_one for one in row.replicas
    )


def _unknown(log: ReplicaLog | Unknown) -> bool:
    return isinstance(log, Unknown) or isinstance(log.lineage, Unknown)


@pytest.mark.parametrize("likely", [2, 1, 7])
def test_logs_that_are_as_they_were_read_before_are_asked_for_no_other_epoch(likely: int) -> None:
    """Of a partition that had 60 leaders, right before its election: the plan has its logs' last epochs."""
    tp = TopicPartition("t", 0)
    players = tuple(Player({tp: WholeLog((0, 1, 1, 2))}, _round_and_round([0])) for _ in BROKERS)
    expected = {broker: {tp: likely} for broker in BROKERS}
    survey = play(Cast(players), Depth.LAST, expected)
    (told,) = SurveyedReplicas(survey, {}, {}).all().values()
    lineages = [one.log.lineage for one in told if isinstance(one.log, ReplicaLog)]
    assert [one.last_epoch for one in lineages if isinstance(one, Lineage)] == [2, 2, 2]
    if likely == 2:
        assert {player.asked for player in players} == {4}  # log end, epochs 2 and 1, log dirs


def test_a_broker_that_answers_garbage_is_not_asked_until_the_time_is_over() -> None:
    logs = {TopicPartition("t", 0): WholeLog((0, 1, 2))}
    players = tuple(Player(logs, _round_and_round([0]), garbled=broker == 1) for broker in BROKERS)
    survey = play(Cast(players), Depth.LAST)
    ((one, garbling, other),) = SurveyedReplicas(survey, {}, {}).all().values()
    assert isinstance(garbling.log, Unknown) and "not understood" in garbling.log.detail
    assert isinstance(one.log, ReplicaLog) and isinstance(other.log, ReplicaLog)
    assert players[1].asked <= 5


def test_a_broker_that_is_down_for_the_controller_is_not_asked_until_the_time_is_over() -> None:
    """It answers, and knows no such replica; a broker that is up may know it a moment later."""
    tp = TopicPartition("t", 0)

    class Fenced(Cast):
        def cluster(self) -> ClusterInfo:
            brokers = tuple(Broker(number, "", 0, None, number == 1) for number in BROKERS)
            return ClusterInfo("id", brokers, 0, True)

    players = tuple(
        Player({tp: WholeLog((0, 1, 2))}, _round_and_round([0]), shy={tp: 10_000 * (broker == 1)})
        for broker in BROKERS
    )
    survey = play(Fenced(players), Depth.FULL)
    ((one, fenced, other),) = SurveyedReplicas(survey, {}, {}).all().values()
    assert isinstance(fenced.log, Unknown) and "no such replica" in fenced.log.detail
    assert isinstance(one.log, ReplicaLog) and isinstance(other.log, ReplicaLog)


def _refusing(**broker_1: Any) -> Cast:
    tp = TopicPartition("t", 0)
    players = [Player({tp: WholeLog((0, 1, 1, 2))}, _round_and_round([0])) for _ in BROKERS]
    return Cast((players[0], replace(players[1], **broker_1), players[2]), fenced_after=10**9)


def _log_of_1(survey: LiveSurvey) -> ReplicaLog | Unknown:
    (told,) = SurveyedReplicas(survey, {}, {}).all().values()
    return next(one.log for one in told if one.broker == 1)


def test_an_election_goes_on_asking_a_broker_that_refuses_and_a_picture_does_not() -> None:
    """The controller lists it as up; it takes connections again after 12 attempts."""
    assert isinstance(_log_of_1(play(_refusing(dies=0, returns=12), Depth.LAST)), ReplicaLog)
    drawn = play(_refusing(dies=0, returns=12), Depth.LAST, picture_wait=15.0)
    assert (
        _log_of_1(drawn)
        == drawn.contacts[1].problem
        == Unknown(Why.NOT_ANSWERED, "broker: connection refused")
    )
    assert [contact.problem for broker, contact in drawn.contacts.items() if broker != 1] == [None, None]


def test_a_picture_gives_a_broker_that_refuses_a_moment_to_come_back() -> None:
    assert isinstance(
        _log_of_1(play(_refusing(dies=0, returns=3), Depth.LAST, picture_wait=15.0)), ReplicaLog
    )


def test_the_first_other_node_that_answers_settles_a_broker_for_a_picture() -> None:
    class Elsewhere(Cast):
        async def connection(self, broker: int) -> BrokerConnection:
            if broker != 1:
                return await super().connection(broker)
            self.players[1].dialled += 1
            raise BrokerError(ConnectionProblem.WRONG_NODE, "broker", "another broker than 1 answers there")

    cast_of = Elsewhere(*vars(_refusing()).values())
    drawn = play(cast_of, Depth.LAST, picture_wait=15.0)
    assert _log_of_1(drawn) == Unknown(Why.FAILED, "broker: another broker than 1 answers there")
    assert cast_of.players[1].dialled == 1


def test_a_picture_does_not_wait_for_a_broker_that_says_again_and_again_that_it_has_no_such_replica() -> None:
    """Another broker answers at its address, and does not say which it is."""
    drawn = play(_refusing(shy={TopicPartition("t", 0): 10**9}), Depth.LAST, picture_wait=0.0)
    assert _log_of_1(drawn) == Unknown(Why.FAILED, "the broker has no such replica")


def test_a_log_that_changes_all_the_time_is_given_up_with_the_reason() -> None:
    tp = TopicPartition("t", 0)
    players = tuple(
        Player({tp: WholeLog((0, 1, 2))}, _round_and_round([0]), odd={tp: 10_000_000 * (broker == 1)})
        for broker in BROKERS
    )
    survey = play(Cast(players), Depth.FULL)
    ((_, changing, _),) = SurveyedReplicas(survey, {}, {}).all().values()
    assert isinstance(changing.log, ReplicaLog) and isinstance(changing.log.lineage, Unknown)
    assert "got epoch" in changing.log.lineage.detail
    assert players[1].asked < 20


def test_what_a_broker_forgot_of_a_logs_epochs_is_told_by_another() -> None:
    """1 has deleted 0 to 142, 2 has them again but forgot their epochs, 0 has all."""
    tp = TopicPartition("t", 0)
    whole = WholeLog((0,) * 35 + (1,) * 153)
    logs = (whole, replace(whole, start=143), replace(whole, forgotten=143))
    survey = play(Cast(tuple(Player({tp: log}, _round_and_round([0])) for log in logs)), Depth.DIVERGENCE)
    ((all_of_it, _, forgot),) = SurveyedReplicas(survey, {}, {}).all().values()
    assert isinstance(all_of_it.log, ReplicaLog) and isinstance(forgot.log, ReplicaLog)
    assert forgot.log.lineage == all_of_it.log.lineage == Lineage(1, whole.spans(), 0)


def test_an_epoch_0_below_epoch_1_is_confirmed_before_it_counts() -> None:
    """Broker 0 forgot epoch 1 below 5 of t-0, and answers for epoch 0 there. Of t-1 it really holds epoch 0."""
    made_up, real = TopicPartition("t", 0), TopicPartition("t", 1)
    stale = WholeLog((0,) * 5)
    first = {made_up: WholeLog((1,) * 10, forgotten=5), real: WholeLog((0,) * 4 + (1,) * 3)}
    logs = (first, {made_up: stale, real: stale}, {made_up: stale, real: stale})
    for depth in (Depth.DIVERGENCE, Depth.FULL):
        survey = play(Cast(tuple(Player(held, _round_and_round([0])) for held in logs)), depth)
        told = [several[0].log for several in SurveyedReplicas(survey, {}, {}).all().values()]
        assert [log.lineage for log in told if isinstance(log, ReplicaLog)] == [
            Lineage(1, (EpochSpan(1, 5, 10),), 5),
            Lineage(1, (EpochSpan(0, 0, 4), EpochSpan(1, 4, 7)), 0),
        ]


def test_what_another_log_asks_of_a_broker_that_is_gone_is_not_waited_for() -> None:
    """0 has told of t-0 and dies over t-1; only then 1 tells of t-0, which asks 0 to go further down."""
    parted, long = TopicPartition("t", 0), TopicPartition("t", 1)
    common = (1,) * 5 + (2,) * 5
    first = {parted: WholeLog((*common, 40, 50, 58)), long: WholeLog((0, 1, 2))}
    second = {parted: WholeLog((*common, 30)), long: first[long]}
    players = (
        Player(first, _round_and_round([0]), dies=6),
        Player(second, _round_and_round([0, 400])),
        Player(first, _round_and_round([0])),
    )
    row = play(Cast(players, fenced_after=0), Depth.DIVERGENCE).rows[parted]
    assert row.done
    assert row.settled().keys() == {0, 1, 2}


def three_logs(lags: int) -> Cast:
    whole = WholeLog((LEADER_EPOCH - 2,) * 5)
    players = tuple(
        Player({TopicPartition("t", 0): whole}, _round_and_round([0]), lags=lags if broker == 1 else 0)
        for broker in BROKERS
    )
    return Cast(players)


@pytest.mark.parametrize("depth", Depth)
def test_a_broker_that_stays_behind_is_asked_whether_it_leads(depth: Depth) -> None:
    cast_of = three_logs(lags=100)
    survey = play(cast_of, depth)
    ((one, behind, other),) = SurveyedReplicas(survey, {}, {}).all().values()
    assert isinstance(behind.log, ReplicaLog)
    assert (behind.log.leads, behind.log.leader_epoch) == (True, LEADER_EPOCH - 1)
    assert all(isinstance(r.log, ReplicaLog) and r.log.leads is None for r in (one, other))
    assert [player.lead_questions for player in cast_of.players] == [0, 1, 0], "nobody else is asked"


@pytest.mark.parametrize("depth", Depth)
def test_a_broker_that_catches_up_is_asked_for_its_log_anew_and_is_no_old_leader(depth: Depth) -> None:
    """As one that hung and continues."""
    cast_of = three_logs(lags=2)
    survey = play(cast_of, depth)
    ((_, behind, _),) = SurveyedReplicas(survey, {}, {}).all().values()
    assert isinstance(behind.log, ReplicaLog) and isinstance(behind.log.lineage, Lineage)
    assert (behind.log.leads, behind.log.leader_epoch) == (None, LEADER_EPOCH)
    assert cast_of.players[1].lead_questions == 0
