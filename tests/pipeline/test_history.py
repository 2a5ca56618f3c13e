"""What happened, told from snapshots: a gap is never taken for a recovery.

Each story is a cluster of its own, and one run of the job tells of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from pipeline.history import history_job
from pipeline.history.history_sources import find_history
from pipeline.results import JobResult, RunTarget
from pipeline.snapshot.observation import SnapshotKind
from pipeline.storage import storage_path
from pipeline.tables.history_schemas import EVENTS, INCIDENTS
from pipeline.tables.schemas import OBSERVATIONS
from recovery.model import Survey, Unknown, Why
from tests.pipeline.partition_histories import (
    Diary,
    broker_row,
    file_of,
    forget,
    minute_of,
    partition,
    quorum_row,
    rot_pages,
)
from tests.pipeline.survey_strategies import NOON

CHANGES = SnapshotKind.CHANGES


class Stories(dict[str, Callable[[Diary], Any]]):
    """Functions that write the snapshots of a cluster with their name, and may return what a test asks for."""

    def __call__(self, story: Callable[[Diary], Any]) -> Callable[[Diary], Any]:
        self[story.__name__] = story
        return story


story, damaged_story = Stories(), Stories()
"""Damaged files are a run of their own: where there is one, Spark reads each table without its log."""

ACTS = [
    ("seen_from_both_sides", "orders", number, minute_of(at), "ann@ops", "elect")
    for number, at in ((0, 2.5), (1, 5))
]


class Told(NamedTuple):
    """A run about some stories; ``written`` is what they returned."""

    result: JobResult
    written: dict[str, Any]

    def incidents(self, story: Callable[[Diary], Any]) -> list[dict[str, Any]]:
        found = [
            row
            for table in self.result.rows(INCIDENTS)
            for row in table.to_pylist()
            if row["cluster_id"] == story.__name__
        ]
        return sorted(found, key=lambda row: (row["topic"], row["partition"], row["kind"], row["began_at"]))

    def summed_up(self, name: str, story: Callable[[Diary], Any]) -> list[dict[str, Any]]:
        """The rows of that list of the summary."""
        return [row for row in self.result.summary[name] if row["cluster_id"] == story.__name__]

    def number(self, name: str, story: Callable[[Diary], Any]) -> int:
        """What the summary counts of it by cluster."""
        return int(self.result.summary[name].get(story.__name__, 0))


def _told(spark: Any, root: str, stories: Stories) -> Told:
    lake = storage_path(root)
    written = {name: write(Diary(lake, name)) for name, write in stories.items()}
    target = RunTarget(lake / "out", "run")
    done = history_job.outcome(spark, find_history([lake]), ACTS, target)
    return Told(JobResult(target, "history", NOON, "test", done.asked, done.summary), written)


@pytest.fixture(scope="module")
def told(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Of the stories without a damaged file."""
    return _told(spark, str(tmp_path_factory.mktemp("stories")), story)


@pytest.fixture(scope="module")
def told_of_damage(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Of the stories with damaged files."""
    return _told(spark, str(tmp_path_factory.mktemp("damage")), damaged_story)


def offline(number: int) -> Survey:
    return partition(number, leader=-1, isr=(), elr=(2,))


@story
def seen_from_both_sides(diary: Diary) -> None:
    diary.write(0, [partition(0), partition(1), partition(2)])
    diary.write(1, [offline(0)], kind=CHANGES)
    diary.write(2, [], kind=CHANGES)
    diary.write(3, [partition(0, leader=2, isr=(2,))], kind=CHANGES)
    diary.write(4, [partition(0), partition(1, leader=-1, isr=()), partition(2)])


def test_incidents_are_bounded_from_both_sides_and_say_how_they_ended(told: Told) -> None:
    first, under, second = told.incidents(seen_from_both_sides)
    assert (first["kind"], first["outcome"], first["how"]) == ("offline", "recovered", "elected from the ELR")
    assert (first["at_least_s"], first["at_most_s"], first["who"]) == (60.0, 180.0, "ann@ops")
    assert (under["kind"], under["outcome"]) == ("under min ISR", "recovered")
    assert (second["partition"], second["outcome"], second["at_most_s"]) == (1, "ongoing", None)
    # What was done after the last look is of no incident that anybody saw end.
    assert second["who"] is None


@story
def a_snapshot_is_missing(diary: Diary) -> None:
    diary.write(0, [offline(0)])
    lost = diary.write(1, [], kind=CHANGES)
    diary.write(2, [partition(0)], kind=CHANGES)
    diary.write(3, [partition(0)])
    forget(diary.root, lost)


def test_what_a_missing_snapshot_hides_is_unknown_and_not_recovered(told: Told) -> None:
    (only,) = told.incidents(a_snapshot_is_missing)
    assert (only["outcome"], only["ended_at"], only["at_most_s"]) == ("unknown", None, None)


@story
def lost_in_a_series(diary: Diary) -> str:
    diary.write(0, [offline(0), offline(1), partition(2), offline(3)])
    for minute in range(1, 50):
        changed = {3: [partition(0)], 20: [offline(2)], 25: [offline(3)], 30: [partition(2)]}
        found = diary.write(minute, changed.get(minute, []), kind=CHANGES)
        if minute == 2:
            lost = found
    forget(diary.root, lost)
    return lost.snapshot


def test_a_snapshot_that_is_lost_in_a_series_leaves_unknown_only_what_did_not_change_after_it(
    told: Told,
) -> None:
    (refused,) = told.summed_up("refused", lost_in_a_series)
    assert f"it builds on {told.written['lost_in_a_series']}, which is missing" in refused["reason"]
    assert told.number("gaps", lost_in_a_series) == 1
    assert told.result.asked["clusters"]["lost_in_a_series"] == 49
    found = told.incidents(lost_in_a_series)
    assert [(row["partition"], row["outcome"], row["at_least_s"]) for row in found] == [
        (0, "unknown", 60.0),
        (1, "unknown", 60.0),
        (2, "recovered", 540.0),
        (3, "unknown", 60.0),
        (3, "ongoing", 1440.0),
    ]
    # The snapshot before may have shown it too: what changed in minute 20 or 25 may be something else.
    assert [row["at_most_s"] for row in found] == [None] * 5


@damaged_story
def newest_snapshot_torn(diary: Diary) -> None:
    diary.write(0, [offline(0)])
    torn = diary.write(1, [partition(0)], kind=CHANGES)
    file_of(diary.root, torn).write_bytes(b"PAR1")


def test_after_an_unreadable_newest_snapshot_nothing_is_said_to_be_ongoing(told_of_damage: Told) -> None:
    counts = told_of_damage.summed_up("counts", newest_snapshot_torn)
    assert [row["outcome"] for row in counts] == ["unknown"]
    assert told_of_damage.number("gaps", newest_snapshot_torn) == 1


@damaged_story
def newest_observation_torn(diary: Diary) -> str:
    diary.write(0, [offline(0)], quorum=quorum_row(100))
    torn = diary.write(1, [partition(0)], kind=CHANGES, quorum=quorum_row(101))
    name = file_of(diary.root, torn, OBSERVATIONS)
    name.write_bytes(b"PAR1")
    return name.name


def test_after_an_unreadable_newest_observation_nothing_is_said_to_be_ongoing(told_of_damage: Told) -> None:
    counts = told_of_damage.summed_up("counts", newest_observation_torn)
    assert [row["outcome"] for row in counts] == ["unknown"]
    name = told_of_damage.written["newest_observation_torn"]
    refused = told_of_damage.summed_up("refused", newest_observation_torn)
    assert [name in row["reason"] for row in refused] == [True]


@story
def it_did_not_answer(diary: Diary) -> None:
    diary = diary.another(series="s")
    diary.write(0, [offline(0)])
    diary.write(1, [], kind=CHANGES)
    diary.fail(2)


def test_after_the_cluster_did_not_answer_nothing_is_said_to_be_ongoing(told: Told) -> None:
    assert [row["outcome"] for row in told.incidents(it_did_not_answer)] == ["unknown"]
    assert told.number("gaps", it_did_not_answer) == 1


@story
def it_did_not_answer_another_collector(diary: Diary) -> None:
    died, goes_on = diary.another(series="first"), diary.another(series="second")
    died.write(0, [offline(0)])
    died.write(1, [], kind=CHANGES)
    for minute in (2, 3, 4):
        goes_on.fail(minute)


def test_after_another_collector_asked_in_vain_nothing_is_said_to_be_ongoing(told: Told) -> None:
    found = told.incidents(it_did_not_answer_another_collector)
    assert [row["outcome"] for row in found] == ["unknown"]


def _not_shown(diary: Diary, after: list[Survey]) -> None:
    diary.write(0, [offline(0), partition(1)])
    diary.write(1, [], kind=CHANGES)
    diary.write(2, [partition(1)])
    diary.write(3, [*after, partition(1)])


@story
def not_shown_for_good(diary: Diary) -> None:
    _not_shown(diary, [])


@story
def not_shown_and_comes_back(diary: Diary) -> None:
    _not_shown(diary, [partition(0)])


@pytest.mark.parametrize("which", [not_shown_for_good, not_shown_and_comes_back])
def test_a_partition_that_a_later_full_snapshot_does_not_show_ended_as_nobody_knows(
    told: Told, which: Callable[[Diary], Any]
) -> None:
    """Deleted, or hidden from the collector: it is not offline still, and nobody saw it recover."""
    (only,) = told.incidents(which)
    assert (only["outcome"], only["at_least_s"], only["ended_at"]) == ("unknown", 60.0, None)


@story
def two_collectors(diary: Diary) -> None:
    other = diary.another()
    diary.write(0, [offline(0)])
    other.write(0.5, [offline(0)])
    for minute in range(1, 30):
        diary.write(minute, [partition(0)] if minute == 3 else [], kind=CHANGES)
        other.write(minute + 0.5, [partition(0)] if minute == 3 else [], kind=CHANGES)


def test_a_second_collector_of_the_cluster_hides_no_recovery(told: Told) -> None:
    (only,) = told.incidents(two_collectors)
    assert (only["outcome"], only["at_least_s"]) == ("recovered", 120.0)
    # The first collector's series, then the newest snapshot, which is of the second.
    assert told.result.asked["clusters"]["two_collectors"] == 31
    assert told.number("other_chains", two_collectors) == 29
    assert told.summed_up("refused", two_collectors) == []


@story
def a_full_one_by_hand(diary: Diary) -> None:
    hand = diary.another()
    diary.write(0, [offline(0)])
    diary.write(1, [], kind=CHANGES)
    hand.write(1.5, [offline(0)])
    diary.write(2, [partition(0)], kind=CHANGES)
    diary.write(3, [], kind=CHANGES)


def test_a_full_snapshot_by_hand_does_not_interrupt_a_running_series(told: Told) -> None:
    (only,) = told.incidents(a_full_one_by_hand)
    assert (only["outcome"], only["at_least_s"], only["ended_at"]) == ("recovered", 60.0, minute_of(2))
    assert told.number("other_chains", a_full_one_by_hand) == 1


@damaged_story
def rotten_pages(diary: Diary) -> str:
    for minute, rows in enumerate(([offline(0)], [offline(0)], [partition(0)], [partition(0)])):
        rotten = diary.write(minute, [*rows, *(partition(n) for n in range(1, 50))])
        if minute == 2:
            name = rot_pages(file_of(diary.root, rotten), "leader")
    return name


def test_a_snapshot_that_cannot_be_decoded_is_a_gap_and_is_named(told_of_damage: Told) -> None:
    name = told_of_damage.written["rotten_pages"]
    refused = told_of_damage.summed_up("refused", rotten_pages)
    assert [name in row["reason"] for row in refused] == [True]
    counts = told_of_damage.summed_up("counts", rotten_pages)
    assert [(row["kind"], row["outcome"]) for row in counts] == [("offline", "unknown")]


@story
def a_long_silence(diary: Diary) -> None:
    for minute in range(4):
        diary.write(minute, [offline(0)])
    diary.write(60, [partition(0)])


def test_a_long_silence_is_a_gap_too(told: Told) -> None:
    (only,) = told.incidents(a_long_silence)
    assert (only["outcome"], only["at_least_s"]) == ("unknown", 180.0)


@story
def a_look_that_could_not_tell(diary: Diary) -> None:
    under = partition(0, isr=(1,))
    diary.write(0, [under])
    diary.write(1, [under._replace(min_isr=Unknown(Why.NOT_ANSWERED, "refused"))], kind=CHANGES)
    diary.write(2, [under], kind=CHANGES)
    diary.write(3, [partition(0)], kind=CHANGES)


def test_a_look_that_could_not_tell_is_unknown_and_not_recovered(told: Told) -> None:
    first, second = told.incidents(a_look_that_could_not_tell)
    assert (first["outcome"], first["ended_at"], first["at_most_s"]) == ("unknown", None, None)
    # Since when it was so the second time is not known either.
    assert (second["outcome"], second["at_least_s"], second["at_most_s"]) == ("recovered", 0.0, None)


@story
def broken_rows(diary: Diary) -> None:
    diary.write(0, [offline(0), offline(1), partition(2)])
    nameless = partition(3)._replace(state=partition(3).state._replace(topic=""))
    diary.write(1, [partition(0), partition(0), offline(1), partition(2), nameless])
    diary.write(2, [partition(0), offline(1), partition(2)])


def test_rows_that_are_broken_are_counted_and_tell_nothing(told: Told) -> None:
    counts = {row["reason"]: row["rows"] for row in told.summed_up("quarantined", broken_rows)}
    assert counts == {"the partition stands in its snapshot 2 times": 2, "no topic or partition": 1}
    assert [(row["partition"], row["outcome"]) for row in told.incidents(broken_rows)] == [
        (0, "unknown"),
        (1, "ongoing"),
    ]


@story
def more_than_partitions(diary: Diary) -> None:
    diary.write(0, [partition()], brokers=[broker_row(1), broker_row(2)], quorum=quorum_row(100))
    diary.write(
        1,
        [],
        kind=CHANGES,
        brokers=[broker_row(1, error="EIO"), broker_row(2, fenced=True)],
        quorum=quorum_row(101, (100, 101, 103)),
    )


def test_the_quorum_brokers_and_log_dirs_stand_on_the_same_timeline(told: Told) -> None:
    rows = [row for table in told.result.rows(EVENTS) for row in table.to_pylist()]
    found = {
        (row["subject"], row["was"], row["now"])
        for row in rows
        if row["cluster_id"] == more_than_partitions.__name__
    }
    assert found == {
        ("broker 2", "up", "fenced"),
        ("log dir /kafka of broker 1", "online", "failed: EIO"),
        ("quorum leader", "100", "101"),
        ("quorum voters", "100, 101, 102", "100, 101, 103"),
    }
