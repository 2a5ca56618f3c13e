"""Logs that compaction tells apart, although their epochs and their ends are the same."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from recovery.compacted_logs import NOT_READ, CompactedBatch, CompactedLogs, compacted_logs, lacking
from recovery.loss import compacted_away, loss
from recovery.model import EpochSpan, Survey, Unknown, Why
from recovery.plan.make import make_plan
from recovery.plan.read import from_json
from recovery.plan.topic_marks import Mark
from recovery.plan.values import Header, Plan, PlanRow
from recovery.plan.write import to_json
from recovery.ranking import Ranking, rank
from recovery.strategy import Strategy, decide
from recovery.wording.loss_text import harm_text, lost_ranges, short_loss
from tests.pipeline.survey_strategies import NOON
from tests.unit.recovery.surveys import log, survey

FIRST = CompactedBatch(0, 39, 40, 11)
"""The first values of k0 to k39."""
LAST = CompactedBatch(40, 41, 2, 22)
WITH_HOLES = log((0, 0, 42))._replace(size=200)
WHOLE = log((0, 0, 42))._replace(size=900)


def compacted(logs: CompactedLogs) -> Survey:
    """1 compacted the first values in favour of newer ones, which an election has cut off since."""
    return survey({1: WITH_HOLES, 2: WHOLE, 3: WHOLE})._replace(compacted=logs)


READ = compacted(CompactedLogs({1: (LAST,), 2: (FIRST, LAST), 3: (FIRST, LAST)}, {}))


def planned(what: Survey) -> PlanRow:
    return plan_of(what).rows[0]


def plan_of(what: Survey) -> Plan:
    header = Header("p", "c", NOON, "me", "1", Ranking.LAST_RECORD, Strategy.COMPLETE)
    choice = decide(what, Ranking.LAST_RECORD, Strategy.COMPLETE)
    return make_plan(header, [(what, choice)], {"t": (Mark.COMPACTED,)})


def test_a_log_with_holes_is_not_told_to_lose_nothing() -> None:
    """A fuller log is not preferred: it may have missed deletions that were cleaned away elsewhere."""
    row = planned(READ)
    assert row.leader == 1 and row.order == (1, 2, 3)
    assert {c.broker: (c.loss.at_least, c.loss.at_most) for c in row.candidates} == {
        1: (0, 40),
        2: (0, 0),
        3: (0, 0),
    }


def test_the_plan_says_it_in_words_and_in_its_file() -> None:
    row = planned(READ)
    holes = row.candidate(1)
    assert holes is not None
    assert harm_text(holes.loss, 0) == "0 to 40 (up to 40 compacted away in its log)"
    assert lost_ranges(holes.loss) == "up to 40 records compacted away in its log alone"
    assert short_loss(holes.loss, 0) == "0 to 40"
    text = to_json(plan_of(READ))
    assert '"compacted": 40' in text
    again = from_json(text)
    assert isinstance(again, Plan) and again.rows == (row,)


def test_logs_that_were_not_read_and_differ_in_size_have_no_upper_limit() -> None:
    row = planned(compacted(NOT_READ))
    assert row.leader == 1, "a larger log is no better"
    by_broker = {c.broker: c.loss for c in row.candidates}
    assert by_broker[1].at_most is None and by_broker[2].at_most is None
    assert harm_text(by_broker[1], 0).startswith(
        "an unknown number (compacted: whether its log lacks records"
    )
    assert '"compacted": null' in to_json(plan_of(compacted(NOT_READ)))


def test_logs_of_one_size_that_were_not_read_are_taken_for_equal() -> None:
    same = survey({1: WHOLE, 2: WHOLE, 3: WHOLE})._replace(compacted=NOT_READ)
    row = planned(same)
    assert row.leader == 1 and row.loss.none


def test_logs_of_one_size_that_were_read_are_compared_all_the_same() -> None:
    other = CompactedBatch(0, 39, 30, 33)
    read = CompactedLogs({1: (other, LAST), 2: (CompactedBatch(0, 39, 30, 44), LAST)}, {3: "late"})
    told = survey({1: WHOLE, 2: WHOLE, 3: Unknown(Why.NOT_ANSWERED, "")})._replace(compacted=read)
    assert loss(told, 1).compacted == loss(told, 2).compacted == 10


def test_one_log_that_was_not_read_leaves_it_unknown() -> None:
    read = CompactedLogs({1: (LAST,), 2: (FIRST, LAST)}, {3: "not read within 10 s"})
    other = WHOLE._replace(size=901)
    told = survey({1: WITH_HOLES, 2: WHOLE, 3: other})._replace(compacted=read)
    assert loss(told, 1).at_most is None
    assert loss(told, 2).compacted is None


def test_a_tail_of_its_own_is_counted_once_and_not_as_compacted_away() -> None:
    longer = log((0, 0, 42), (1, 42, 50))._replace(size=990)
    tail = CompactedBatch(42, 49, 8, 55)
    read = CompactedLogs({1: (FIRST, LAST), 2: (FIRST, LAST, tail)}, {})
    told = survey({1: WHOLE, 2: longer})._replace(compacted=read)
    lost = loss(told, 1)
    assert (lost.at_least, lost.at_most, lost.compacted) == (8, 8, 0)
    assert lost.tail == (EpochSpan(1, 42, 50),)


def test_a_configuration_that_is_not_known_may_be_a_compacted_topic() -> None:
    assert compacted_logs({"cleanup.policy": "delete"}) is None
    assert compacted_logs({"cleanup.policy": "delete,compact"}) is NOT_READ
    assert compacted_logs(Unknown(Why.NOT_ALLOWED, "")) is NOT_READ


@given(st.dictionaries(st.integers(0, 9), st.tuples(*[st.sets(st.integers(0, 4))] * 3), min_size=1))
def test_no_bound_is_smaller_than_what_is_missing(kept: Mapping[int, tuple[set[int], ...]]) -> None:
    """Each replica holds of each batch of five records what its own compaction left."""
    logs: list[list[CompactedBatch]] = [[], [], []]
    for number, replicas in sorted(kept.items()):
        for broker, records in enumerate(replicas):
            if records:
                crc = hash(frozenset(records))
                logs[broker].append(CompactedBatch(number * 5, number * 5 + 4, len(records), crc))
    missing = sum(len((two | three) - one) for one, two, three in kept.values())
    assert missing <= lacking(logs[0], logs[1:], 0, 50)
    held = sum(len(two) + len(three) for _, two, three in kept.values())
    assert lacking(logs[0], logs[1:], 0, 50) <= held


def test_a_batch_that_begins_below_the_log_start_is_compared_by_what_may_be_above_it() -> None:
    assert lacking((), [(FIRST,)], 30, 42) == 40
    assert lacking((), [(FIRST,)], 40, 42) == 0


def test_logs_that_share_nothing_are_not_compared() -> None:
    """The log of 2 begins behind the end of what it has in common with 1: its head is counted as lost elsewhere."""
    apart = survey({1: log((0, 0, 42)), 2: log((0, 100, 120), start=100)})._replace(
        compacted=CompactedLogs({}, {})
    )
    assert compacted_away(apart, 1) == 0


def test_an_unknown_size_is_no_empty_log() -> None:
    nameless = WHOLE._replace(size=-1)
    for one, other in ((WITH_HOLES, nameless), (nameless, nameless)):
        what = survey({1: one, 2: other})._replace(compacted=NOT_READ)
        assert compacted_away(what, 1) is None


def test_of_logs_that_end_alike_the_one_that_stayed_in_the_isr_comes_first() -> None:
    for steady, first in (((3, 1), [3, 1, 2]), ((2,), [2, 1, 3]), ((), [1, 2, 3])):
        ranked = rank(READ, Ranking.LAST_RECORD, steady)
        assert not isinstance(ranked, Unknown)
        assert [candidate.broker for candidate in ranked] == first
