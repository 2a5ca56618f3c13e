"""Plans for the tests: any plan that can be, and a small one that tells a story."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from recovery.groups.offset_judgement import LastReadPlace
from recovery.loss import Loss
from recovery.model import EpochSpan, Standing, Survey, TopicPartition
from recovery.plan.make import make_plan
from recovery.plan.topic_marks import Mark
from recovery.plan.values import AffectedGroup, Header, NotElected, Plan, PlanCandidate, PlanRow, Silent
from recovery.ranking import Ranking
from recovery.strategy import Decision, DecisionKind, Strategy, decide
from tests.unit.recovery.surveys import SILENT, log, survey

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HEADER = Header("plan-1", "cluster-1", NOON, "ann@ops", "0.1.0", Ranking.LAST_RECORD, Strategy.AGGRESSIVE)

LONG_TAIL = log((0, 0, 1500))
RIGHT = log((0, 0, 1000), (2, 1000, 1300))


def named(survey: Survey, topic: str, partition: int) -> Survey:
    """The same survey under another name."""
    return survey._replace(state=survey.state._replace(topic=topic, partition=partition))


def stale_long_tail(topic: str = "orders", partition: int = 0) -> Survey:
    """Replica 1 has the longest log, 2 and 3 the later epoch; 4 did not answer."""
    return named(survey({1: LONG_TAIL, 2: RIGHT, 3: RIGHT, 4: SILENT}), topic, partition)


def equal_logs(topic: str = "audit", partition: int = 0) -> Survey:
    """Three replicas with the same log: nothing to lose."""
    return named(survey({1: RIGHT, 2: RIGHT, 3: RIGHT}), topic, partition)


def nobody(topic: str = "lost", partition: int = 0) -> Survey:
    """No replica answered."""
    return named(survey({1: SILENT, 2: SILENT}), topic, partition)


def decided(survey: Survey, header: Header = HEADER) -> tuple[Survey, Decision]:
    return survey, decide(survey, header.ranking, header.strategy)


def plan_of(*surveys: Survey, header: Header = HEADER) -> Plan:
    return make_plan(header, [decided(survey, header) for survey in surveys])


def story() -> Plan:
    """One row that loses 500 offsets and maybe more, one that loses nothing, one that nobody can lead."""
    return plan_of(stale_long_tail(), equal_logs(), nobody())


_since = st.none() | st.integers(0, 2**41)
_broker = st.integers(0, (1 << 31) - 1)
_offset = st.integers(0, (1 << 63) - 1)
_epoch = st.integers(-1, (1 << 31) - 1)
_maybe_ms = st.none() | _offset
_printable = st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"], include_characters=" ")
_text = st.text(_printable, max_size=8)
_topic = st.text("aZ0._-", min_size=1, max_size=12).filter(lambda topic: topic not in {".", ".."})
_tp = st.builds(TopicPartition, _topic, st.integers(0, (1 << 31) - 1))


@st.composite
def _spans(draw: st.DrawFn) -> EpochSpan:
    start = draw(st.integers(0, (1 << 63) - 2))
    return EpochSpan(draw(_epoch), start, draw(st.integers(start + 1, (1 << 63) - 1)))


@st.composite
def _losses(draw: st.DrawFn, bounded: bool) -> Loss:
    at_least = draw(_offset)
    above = st.integers(at_least, (1 << 63) - 1)
    spans = st.lists(_spans(), max_size=1).map(tuple)
    return Loss(
        at_least,
        draw(st.none() | above) if bounded else None,
        draw(spans),
        draw(spans),
        draw(st.lists(_broker, max_size=1).map(tuple)),
        draw(_maybe_ms),
        draw(_maybe_ms),
    )


@st.composite
def _rows(draw: st.DrawFn, tp: TopicPartition) -> PlanRow:
    replicas = draw(st.lists(_broker, min_size=1, max_size=3, unique=True))
    order = draw(st.permutations(replicas))
    leader = order[0]
    answered = [leader, *(b for b in order[1:] if draw(st.booleans()))]
    candidates = tuple(
        PlanCandidate(
            broker,
            Standing.ELECTABLE if broker == leader else draw(st.sampled_from(Standing)),
            draw(_epoch),
            draw(st.none() | _epoch),
            draw(_offset),
            draw(st.integers(-1, 100)),
            draw(st.integers(-1, 100)),
            draw(_losses(bounded=len(answered) == len(replicas))),
        )
        for broker in draw(st.permutations(answered))
    )
    return PlanRow(
        tp,
        draw(_text),
        draw(st.integers(0, 100)),
        tuple(replicas),
        tuple(order),
        candidates,
        tuple(Silent(b, draw(st.sampled_from(Standing))) for b in replicas if b not in answered),
        draw(_text),
        tuple(draw(st.lists(st.sampled_from(Mark), unique=True))),
        draw(st.none() | _broker),
        (),
        draw(_since),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan that names a partition."""
    tps = draw(st.lists(_tp, min_size=1, max_size=3, unique=True))
    elected = draw(st.integers(0, len(tps)))
    header = Header(
        draw(_text),
        draw(_text),
        draw(st.datetimes(timezones=st.just(UTC))),
        draw(_text),
        draw(_text),
        draw(st.sampled_from(Ranking)),
        draw(st.sampled_from(Strategy)),
    )
    return Plan(
        header,
        tuple(draw(_rows(tp)) for tp in tps[:elected]),
        tuple(
            NotElected(
                tp,
                draw(st.sampled_from(DecisionKind)),
                tuple(draw(st.lists(_broker, unique=True, max_size=3))),
                draw(_text),
                draw(st.just(-1) | _broker),
                draw(_since),
            )
            for tp in tps[elected:]
        ),
        tuple(draw(st.lists(_affected_groups(st.sampled_from(tps)), max_size=2))),
        tuple(draw(st.lists(_text, max_size=1))),
        tuple(draw(st.lists(_text, max_size=6))),
    )


def _affected_groups(tps: st.SearchStrategy[TopicPartition]) -> st.SearchStrategy[AffectedGroup]:
    return st.builds(
        AffectedGroup,
        tps,
        _text,
        st.integers(0, 2**40),
        st.integers(-1, 9),
        st.sampled_from(LastReadPlace),
        st.none() | st.integers(0, 2**40),
        _broker,
    )


def preconditions(row: PlanRow) -> tuple[object, ...]:
    """What must still be true when the row's election is sent."""
    logs = {c.broker: (c.last_epoch, c.log_end) for c in row.candidates}
    return row.topic_id, row.leader_epoch, row.replicas, logs
