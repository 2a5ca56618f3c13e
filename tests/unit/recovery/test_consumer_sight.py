"""Where a consumer contradicts what was read of the leader's log before, and where the two only grew apart."""

from __future__ import annotations

import pytest

from recovery.consumer_sight import ConsumerSight, Expected, ReadThrough, disagreements
from recovery.model import ReplicaLog, Unknown, Why

LOG = ReplicaLog(3, 100, log_start_offset=10, high_watermark=90)
ALL = ConsumerSight(10, 90, 90, 10, ReadThrough(80, 90), ReadThrough(80, 90))


@pytest.mark.parametrize(
    ("sight", "said"),
    [
        (ALL, None),
        (ALL._replace(high=95, plain=ReadThrough(85, 95), stable=95, committed=ReadThrough(85, 95)), None),
        (ALL._replace(low=20), None),
        (ALL._replace(stable=30, committed=ReadThrough(20, 30)), None),
        (ALL._replace(plain=ReadThrough(7, None)), None),
        (
            ALL._replace(high=80, stable=80, plain=ReadThrough(70, 80), committed=ReadThrough(70, 80)),
            "up to 80, and the leader's high watermark was 90",
        ),
        (ALL._replace(low=0), "from 0, and the leader's log began at 10"),
        (ALL._replace(plain=ReadThrough(40, 50)), "comes to the end at 50, before the high watermark 90"),
        (
            ALL._replace(committed=ReadThrough(40, 50)),
            "of committed records comes to the end at 50, before 90",
        ),
        (Unknown(Why.FAILED, "librdkafka: Broker: Offset out of range"), "a consumer cannot read it"),
        (Unknown(Why.NOT_ANSWERED, "timed out"), None),
        (Unknown(Why.NOT_ALLOWED, "not authorized"), None),
    ],
)
def test_only_less_than_was_there_before_is_a_contradiction(
    sight: ConsumerSight | Unknown, said: str | None
) -> None:
    found = list(disagreements(sight, LOG))
    assert (not found) if said is None else len(found) == 1 and said in found[0]


def test_offsets_that_are_not_known_contradict_nothing() -> None:
    assert not list(disagreements(ALL, ReplicaLog(3, 100)))


def test_a_partition_that_only_the_consumer_can_read_is_said() -> None:
    assert list(disagreements(ALL, Unknown(Why.FAILED, "answer not understood")))
    assert list(disagreements(ALL, None))
    # Nobody answered, or nobody was allowed to ask: that says nothing about the log.
    assert not list(disagreements(ALL, Unknown(Why.NOT_ANSWERED, "no answer")))
    assert not list(disagreements(ALL, Unknown(Why.NOT_ALLOWED, "no READ")))
    assert not list(disagreements(Unknown(Why.NOT_ANSWERED, "no answer"), None))


def test_consumers_of_committed_records_wait_where_they_stop_before_the_others() -> None:
    assert ALL.waits_at is None and ALL.finished
    assert ALL._replace(stable=30, committed=ReadThrough(20, 30)).waits_at == 30
    late = ALL._replace(committed=ReadThrough(20, None))
    assert late.waits_at is None and not late.finished


@pytest.mark.parametrize(
    ("sight", "expected", "said"),
    [
        (ALL, Expected(start=10, records=80), None),
        (ALL, Expected(start=10, records=81), "is given 80 records from offset 10 on, and 81 were written"),
        # Retention deleted the first ones, or the time was over: how many there were cannot be said.
        (ALL._replace(start=12), Expected(start=10, records=81), None),
        (ALL._replace(plain=ReadThrough(5, None)), Expected(start=10, records=80), None),
        (ALL._replace(stable=40, committed=ReadThrough(30, 40)), Expected(ended=30), None),
        (
            ALL._replace(stable=30, committed=ReadThrough(20, 30)),
            Expected(ended=30),
            "still wait at offset 30, and the transaction at 30 was read here as ended",
        ),
    ],
)
def test_what_a_change_has_brought_about_is_what_consumers_are_given(
    sight: ConsumerSight, expected: Expected, said: str | None
) -> None:
    found = list(disagreements(sight, LOG, expected))
    assert (not found) if said is None else len(found) == 1 and said in found[0]
