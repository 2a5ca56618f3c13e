"""The bench of random histories sees a promise that is not true, and only those."""

from __future__ import annotations

import pytest

from benchmarks.ground_truth.disk_records import DiskRecord, DiskReplica
from benchmarks.ground_truth.promises import (
    ProducedRecord,
    PromiseCounts,
    TopicHistory,
    broken_promises,
    excused,
    unread_promises,
)
from recovery.acknowledged.verdict import Condition, ConditionKind, PartitionVerdicts, Verdict, VerdictKind
from recovery.model import (
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    Unknown,
    Why,
)

SILENT = Unknown(Why.NOT_ANSWERED, "no answer")


def disk(*epochs: int, start: int = 0) -> DiskReplica:
    """A log with one record at each offset, of these epochs; the value names the place."""
    places = {(epoch, offset) for offset, epoch in enumerate(epochs) if offset >= start}
    records = {place: DiskRecord(f"k{place[1]}", "{}:{}".format(*place)) for place in places}
    return DiskReplica(start, frozenset(places), records)


def told(end: int, *spans: EpochSpan, start: int = 0) -> ReplicaLog:
    return ReplicaLog(9, end, start, 0, Lineage(spans[-1].epoch, spans, spans[0].start))


def survey(*logs: ReplicaLog | Unknown) -> Survey:
    state = PartitionState("t", 0, "id", -1, 9, tuple(range(len(logs))), (), (), (), ())
    return Survey(state, tuple(Replica(i, Standing.ELECTABLE, log) for i, log in enumerate(logs)), 2)


WHOLE, SHORT = disk(0, 0, 0, 1, 1), disk(0, 0, 0)
TOLD_WHOLE = told(5, EpochSpan(0, 0, 3), EpochSpan(1, 3, 5))
TOLD_SHORT = told(3, EpochSpan(0, 0, 3))


def broken(
    found: Survey, disks: dict[int, DiskReplica], topic: TopicHistory, verdict: Verdict | None = None
) -> list[str]:
    judged = PartitionVerdicts({}) if verdict is None else PartitionVerdicts({1: verdict})
    return list(broken_promises(topic, found, judged, disks, PromiseCounts()))


def test_what_is_true_breaks_no_promise() -> None:
    topic = TopicHistory("t", acknowledged={"0:2"})
    none = Verdict(VerdictKind.NONE, at_most=0)
    assert not broken(survey(TOLD_WHOLE, TOLD_SHORT), {0: WHOLE, 1: SHORT}, topic, none)


def test_a_bound_that_is_smaller_than_what_is_lost_is_seen() -> None:
    both_short = survey(TOLD_SHORT, TOLD_SHORT)
    [line] = broken(both_short, {0: WHOLE, 1: SHORT}, TopicHistory("t"))
    assert "choice 1: loses 2 records, at most 0 promised" in line


def test_a_loss_that_no_disk_holds_is_seen() -> None:
    lines = broken(survey(TOLD_WHOLE, TOLD_SHORT), {0: SHORT, 1: SHORT}, TopicHistory("t"))
    assert any("loses 0 offsets of the disks that answered, at least 2 told" in line for line in lines)


def test_what_the_disk_of_a_silent_broker_holds_is_no_broken_promise_but_breaks_a_verdict() -> None:
    topic = TopicHistory("t", acknowledged={"1:3"})
    found, disks = survey(SILENT, TOLD_SHORT), {0: WHOLE, 1: SHORT}
    assert not broken(found, disks, topic)
    [line] = broken(found, disks, topic, Verdict(VerdictKind.NONE, at_most=0))
    assert "verdict none, and 1 acknowledged records are lost" in line


def test_a_verdict_whose_bound_is_too_small_is_seen() -> None:
    topic = TopicHistory("t", acknowledged={"1:3", "1:4"})
    verdict = Verdict(VerdictKind.OPEN, at_most=1)
    [line] = broken(survey(TOLD_WHOLE, TOLD_SHORT), {0: WHOLE, 1: SHORT}, topic, verdict)
    assert "2 acknowledged records are lost, the verdict allows 1" in line


@pytest.mark.parametrize("emptied", [False, True])
def test_a_false_verdict_is_excused_by_a_condition_that_it_named_and_that_did_not_hold(emptied: bool) -> None:
    topic = TopicHistory("t", acknowledged={"1:3"}, emptied={1} if emptied else set())
    kept = Condition(ConditionKind.RECORDS_KEPT, (1,))
    verdict = Verdict(VerdictKind.NONE, at_most=0, conditions=(kept,))
    lines = broken(survey(TOLD_WHOLE, TOLD_SHORT), {0: WHOLE, 1: SHORT}, topic, verdict)
    assert bool(lines) is not emptied


def test_what_was_deleted_or_replaced_by_a_newer_value_is_not_lost() -> None:
    found, disks = survey(TOLD_SHORT, TOLD_SHORT), {0: WHOLE, 1: SHORT}
    assert not broken(found, disks, TopicHistory("t", deleted={"1:3", "1:4"}))
    older = DiskReplica(0, SHORT.places, {(0, 0): DiskRecord("k", "old"), (0, 2): DiskRecord("k", "new")})
    newer = DiskReplica(0, SHORT.places, {(0, 2): DiskRecord("k", "new")})
    compacted = TopicHistory("t", compacted=True)
    assert not broken(found, {0: older, 1: newer}, compacted)
    assert broken(found, {0: newer, 1: DiskReplica(0, SHORT.places, {})}, compacted)


NONE = Verdict(VerdictKind.NONE, at_most=0)


def test_a_false_verdict_is_not_excused_by_a_condition_that_it_did_not_name() -> None:
    topic = TopicHistory("t", acknowledged={"1:3"}, emptied={1}, unclean=True, moved=True, lowest=1)
    lines = broken(survey(TOLD_WHOLE, TOLD_SHORT), {0: WHOLE, 1: SHORT}, topic, NONE)
    assert any("verdict none" in line for line in lines)


@pytest.mark.parametrize(("lowest", "kept"), [(1, False), (2, True), (None, True)])
def test_min_isr_was_never_lower_is_held_against_what_the_cluster_told(
    lowest: int | None, kept: bool
) -> None:
    never = NONE._replace(conditions=(Condition(ConditionKind.MIN_ISR_NEVER_LOWER),))
    topic = TopicHistory("t", lowest=lowest)
    lines = excused(topic, survey(TOLD_SHORT, TOLD_SHORT), never, ["wrong"], PromiseCounts())
    assert bool(lines) is kept


def sent(*values: str, key: str = "k", tombstones: tuple[str, ...] = ()) -> dict[str, ProducedRecord]:
    return {value: ProducedRecord(0, key, value in tombstones, number) for number, value in enumerate(values)}


def test_what_a_producer_was_told_after_the_election_and_no_consumer_reads_breaks_a_none() -> None:
    """As what a leader takes that is cut off from the controller: no disk had it when the choice was judged."""
    topic = TopicHistory("t", sent=sent("before", "after"), acknowledged={"before", "after"})
    [line] = unread_promises(topic, 0, NONE, {"before", "after"}, {"before"})
    assert "1 acknowledged records are lost" in line and "read by a consumer" in line
    assert not list(unread_promises(topic, 0, NONE, {"before"}, {"before"})), "it was nowhere any more"
    assert not list(unread_promises(topic, 1, NONE, {"before", "after"}, set())), "of another partition"
    topic.deleted = {"after"}
    assert not list(unread_promises(topic, 0, NONE, {"before", "after"}, {"before"}))


def test_a_bound_counts_what_a_consumer_does_not_read() -> None:
    topic = TopicHistory("t", sent=sent("a", "b"), acknowledged={"a", "b"})
    one = Verdict(VerdictKind.OPEN, at_most=1)
    assert not list(unread_promises(topic, 0, one, {"a", "b"}, {"a"}))
    [line] = unread_promises(topic, 0, one, {"a", "b"}, set())
    assert "2 acknowledged records are lost, the verdict allows 1" in line


def test_records_of_acks_1_alone_break_no_verdict() -> None:
    topic = TopicHistory("t", sent=sent("told"), alone={"told"})
    assert not list(unread_promises(topic, 0, NONE, {"told"}, set()))


def test_a_deleted_key_that_comes_back_breaks_a_none() -> None:
    names = sent("old", "gone", tombstones=("gone",))
    topic = TopicHistory("t", compacted=True, sent=names, acknowledged={"old", "gone"})
    [line] = unread_promises(topic, 0, NONE, {"old"}, {"old"})
    assert "gone" in line, "the tombstone itself was cleaned away everywhere"
    assert not list(unread_promises(topic, 0, NONE, {"old"}, set()))
    topic.unclean_at = 1
    assert not list(unread_promises(topic, 0, NONE, {"old"}, {"old"})), "an earlier election cut it off"


def test_the_log_of_a_deleted_topic_of_the_same_name_is_told_from_the_new_one() -> None:
    topic = TopicHistory("t", sent={"0:0": ProducedRecord(0, "k", False, 0)})
    assert topic.is_of_this_life(disk(0)) and not topic.is_of_this_life(disk(7))
