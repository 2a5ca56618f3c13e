"""Which min.insync.replicas was in force when: a value that is too high would prove what never was acknowledged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from recovery.acknowledged.broker_restarts import BrokerRestart, LastStop
from recovery.acknowledged.min_isr_over_time import (
    APPLIED_LATE_MS,
    CLOCKS_APART_MS,
    LowestMinIsr,
    MinIsrOverTime,
    min_isr_over_time,
)
from recovery.controller.rules import MIN_ISR
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, DecodedRecord, TopicSubject
from recovery.metadata_log.records import (
    ConfigRecord,
    MetadataRecord,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
)
from recovery.model import FileAnswer, MinIsrLevels

TOPIC, CLUSTER, BROKER_1, BROKER_2 = (
    (ResourceType.TOPIC, "t"),
    (ResourceType.BROKER, ""),
    (ResourceType.BROKER, "1"),
    (ResourceType.BROKER, "2"),
)
CREATED, REMOVED = TopicRecord("t", "id"), RemoveTopicRecord("old")
OLD = TopicRecord("t", "old")
LATEST, LATEST_MS = 100, 1_000_000_000
"""Long after every record of these logs."""

Step = MetadataRecord | tuple[tuple[int, str], str | None]


def over_time(
    *steps: Step,
    now: int = 2,
    snapshot: int = 0,
    restarts: Sequence[tuple[int, int]] = (),
    answers: Sequence[MinIsrLevels] = (),
    file_answers: Mapping[int, Sequence[FileAnswer]] | None = None,
) -> MinIsrOverTime:
    """The steps in the order of the log, one a second and each a batch, the first of them at offset 10; the first
    ``snapshot`` steps are in a snapshot. Brokers 1 and 2 may lead, and ``restarts`` are those of 1: (offset, ms).
    """
    history = MetadataHistory()
    for at, step in enumerate(steps, 10):
        record = step if not isinstance(step[0], tuple) else ConfigRecord(*step[0], MIN_ISR, step[1])
        batch = IN_SNAPSHOT if at - 10 < snapshot else at
        history.extend_decoded([DecodedRecord(at, at * 1000, batch, record)])
    started = [BrokerRestart(at, ms, LastStop.SHUT_DOWN, frozenset(), frozenset()) for at, ms in restarts]
    return min_isr_over_time(
        history,
        TopicSubject("id"),
        {1: started, 2: ()},
        now,
        answers=answers,
        file_answers=file_answers or {},
    )


def lowest(told: MinIsrOverTime, leader: int = 1) -> LowestMinIsr:
    """In a leader epoch that began long after the last change."""
    return told.lowest(leader, LATEST, LATEST_MS, LATEST)


@pytest.mark.parametrize(
    ("steps", "now", "of_1", "of_2"),
    [
        ([CREATED], 2, (2, True), (2, True)),
        ([CREATED], 1, (1, False), (1, False)),
        ([CREATED, (CLUSTER, "2")], 2, (2, False), (2, False)),
        # The topic's own value counts, whatever its brokers are set to.
        ([CREATED, (CLUSTER, "1"), (BROKER_1, "1"), (TOPIC, "3")], 3, (3, False), (3, False)),
        # Each leader has its own.
        ([CREATED, (BROKER_1, "3"), (BROKER_2, "2")], 3, (3, False), (2, False)),
        ([CREATED, (CLUSTER, "3"), (BROKER_2, "1")], 3, (3, False), (1, False)),
        # A broker without a value of its own has its file's, whatever is set for others.
        ([CREATED, (BROKER_1, "3")], 3, (3, False), (1, False)),
        # A value that is removed counts no more.
        ([CREATED, (TOPIC, "3"), (CLUSTER, "2"), (TOPIC, None)], 2, (2, False), (2, False)),
        # A value that is no number cannot be in force, and none is lower than 1.
        ([CREATED, (TOPIC, "many")], 2, (1, False), (1, False)),
    ],
)
def test_the_value_in_force_is_that_of_the_broker_that_leads(
    steps: list[Step], now: int, of_1: LowestMinIsr, of_2: LowestMinIsr
) -> None:
    told = over_time(*steps, now=now)
    assert (lowest(told, 1), lowest(told, 2)) == (of_1, of_2)


OLD_2 = (OLD, (TOPIC, "2"), REMOVED)
OLD_1 = (OLD, (TOPIC, "1"), REMOVED)


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        # A topic that was made again has none of the old value, which some broker may have kept: the lower counts.
        ([(CLUSTER, "1"), *OLD_2, CREATED], 1),
        ([(CLUSTER, "2"), *OLD_1, CREATED], 1),
        ([(CLUSTER, "3"), *OLD_2, CREATED], 2),
        # Its own value, from the creation on or later, is the same on all of them.
        ([(CLUSTER, "1"), *OLD_1, CREATED, (TOPIC, "2")], 2),
        # The value was removed in the old life already.
        ([(CLUSTER, "2"), OLD, (TOPIC, "1"), (TOPIC, None), REMOVED, CREATED], 2),
        # Kafka 3.9 writes the values of a creation before the topic.
        ([(CLUSTER, "1"), *OLD_1, (TOPIC, "2"), CREATED], 2),
    ],
)
def test_a_value_belongs_to_the_topic_in_whose_life_it_was_set(steps: list[Step], value: int) -> None:
    assert lowest(over_time(*steps, now=value)) == (value, False)


def test_a_value_of_a_deleted_topic_in_a_snapshot_is_not_that_of_its_successor() -> None:
    assert lowest(over_time(OLD, (TOPIC, "2"), (CLUSTER, "1"), REMOVED, CREATED, snapshot=3)) == (1, False)


def test_the_value_of_a_creation_was_in_force_from_the_first_epoch_on() -> None:
    told = over_time((CLUSTER, "1"), (TOPIC, "2"), CREATED)
    assert told.lowest(1, 13, 13_000, LATEST) == (2, False)


def test_a_value_of_a_snapshot_was_in_force_before_the_log_began() -> None:
    assert over_time(CREATED, (TOPIC, "3"), now=3, snapshot=2).lowest(1, 0, 0, LATEST) == (3, False)


# A value that was raised: 1 from offset 11 on, 2 from offset 12 on, at 12 s.
RAISED: tuple[Step, ...] = (CREATED, (TOPIC, "1"), (TOPIC, "2"))
RAISED_MS = 12_000


@pytest.mark.parametrize(
    ("elected_ms", "restarts", "value"),
    [
        (RAISED_MS, (), 1),
        (RAISED_MS + APPLIED_LATE_MS - 1, (), 1),
        # Long ago: every broker has applied it.
        (RAISED_MS + APPLIED_LATE_MS, (), 2),
        # The leader started after it: it was unfenced only when it had applied it.
        (RAISED_MS + 1, ((13, 12_500),), 2),
        (RAISED_MS + 1, ((11, 11_500),), 1),
    ],
)
def test_a_new_leader_may_apply_a_raised_value_late(
    elected_ms: int, restarts: tuple[tuple[int, int], ...], value: int
) -> None:
    told = over_time(*RAISED, restarts=restarts)
    assert told.lowest(1, 14, elected_ms, LATEST) == (value, False)


def test_a_lower_value_that_was_in_force_during_the_epoch_counts() -> None:
    told = over_time(CREATED, (TOPIC, "3"), (TOPIC, "1"), (TOPIC, "3"), now=3)
    assert told.lowest(1, 11, LATEST_MS, 13) == (1, False)
    assert told.lowest(1, 13, LATEST_MS, LATEST) == (3, False)
    assert told.lowest(1, 11, LATEST_MS, 11) == (3, False)


def answer(broker: int, *, topic: int | None = None, file: int = 1) -> MinIsrLevels:
    return MinIsrLevels(broker, topic, None, None, file)


def test_a_file_is_known_from_its_own_broker_only_and_while_that_process_lives() -> None:
    told = over_time(CREATED, answers=[answer(1, file=3), answer(2, file=2)], restarts=((20, 20_000),))
    assert (lowest(told, 1), lowest(told, 2)) == ((3, False), (2, False))
    # 1 started again since: another file may have been in force, and the other's value stands for it.
    assert told.lowest(1, 15, 15_000, 19) == (2, True)


def test_who_did_not_answer_is_not_taken_for_the_others() -> None:
    """The lowest of the known files is assumed, and said; where that is 1 nothing is left to assume."""
    assert lowest(over_time(CREATED, answers=[answer(2, file=2)]), 1) == (2, True)
    assert lowest(over_time(CREATED, answers=[answer(2, file=1)], now=2), 1) == (1, False)
    # Nobody answered, and what the cluster reports is the topic's own value of today.
    assert over_time(CREATED, (TOPIC, "2")).lowest(1, 10, 10_000, 10) == (1, False)


@pytest.mark.parametrize(
    ("seen_ms", "known"),
    [
        (20_000 - CLOCKS_APART_MS, True),
        # Too near to a restart: the clocks may differ.
        (20_000 - CLOCKS_APART_MS + 1, False),
        (20_000 + CLOCKS_APART_MS, False),
    ],
)
def test_an_earlier_answer_tells_the_file_of_the_process_that_gave_it(seen_ms: int, known: bool) -> None:
    told = over_time(CREATED, restarts=((20, 20_000),), file_answers={1: [FileAnswer(1, 3, seen_ms)]})
    found = told.lowest(1, 15, 15_000, 19)
    assert found == ((3, False) if known else (2, True))
    assert told.lowest(1, 21, 21_000, LATEST) == ((2, True) if seen_ms < 20_000 else (3, False))


def test_where_a_broker_has_another_value_of_the_topic_than_the_log_nobodys_is_certain() -> None:
    told = over_time(CREATED, (TOPIC, "3"), now=3, snapshot=2, answers=[answer(1, topic=3), answer(2)])
    assert (lowest(told, 1), lowest(told, 2)) == ((1, False), (1, False))
    # A value of the topic's earlier life is one that the log explains.
    again = over_time((CLUSTER, "2"), *OLD_1, CREATED, answers=[MinIsrLevels(2, 1, None, 2, 1)])
    assert lowest(again, 2) == (1, False)
