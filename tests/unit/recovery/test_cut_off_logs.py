"""What a leader lacks of the logs that were read while nobody led."""

from __future__ import annotations

from recovery.cut_off_logs import CutOffLogs, cut_off_logs, remembered, tells_what_was_cut_off
from recovery.model import (
    NO_LEADER,
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.wording.cut_off_text import cut_off_lines, cut_off_text

TP = TopicPartition("payments", 0)
SILENT = Unknown(Why.NOT_ANSWERED, "no answer")


def log(*spans: EpochSpan, start: int = 0) -> ReplicaLog:
    return ReplicaLog(5, spans[-1].end, start, -1, Lineage(spans[-1].epoch, spans, spans[0].start))


def survey(leader: int, epoch: int, *logs: ReplicaLog | Unknown) -> Survey:
    brokers = tuple(range(len(logs)))
    state = PartitionState("payments", 0, "id", leader, epoch, brokers, (2,), None, None, ())
    replicas = tuple(Replica(b, Standing.ELECTABLE, found) for b, found in enumerate(logs))
    return Survey(state, replicas, 1)


LONG = log(EpochSpan(0, 0, 1560))
SHORT = log(EpochSpan(0, 0, 1000))
BEFORE = survey(NO_LEADER, 5, LONG, LONG, SILENT)


def test_a_leader_that_was_silent_cuts_off_what_the_others_held() -> None:
    assert cut_off_logs(BEFORE, survey(2, 6, SHORT, SHORT, SHORT)) == CutOffLogs(TP, 5, 2, 560, (0, 1))


def test_its_own_newer_records_do_not_stand_for_those_that_were_lost() -> None:
    newer = log(EpochSpan(0, 0, 1000), EpochSpan(6, 1000, 9000))
    found = cut_off_logs(BEFORE, survey(2, 6, newer, newer, newer))
    assert found is not None and found.offsets == 560
    only_newer = log(EpochSpan(6, 1000, 9000))._replace(log_start_offset=0)  # asked only as far down as this
    found = cut_off_logs(BEFORE, survey(2, 6, only_newer, only_newer, only_newer))
    assert found is not None and found.offsets == 560


def test_a_leader_with_all_of_it_lost_nothing_and_neither_does_retention() -> None:
    whole = log(EpochSpan(0, 0, 1560), EpochSpan(6, 1560, 1600))
    assert cut_off_logs(BEFORE, survey(2, 6, whole, whole, whole)) is None
    deleted = log(EpochSpan(6, 1600, 1700), start=1600)
    assert cut_off_logs(BEFORE, survey(2, 6, deleted, deleted, deleted)) is None


def test_what_the_leader_itself_held_before_its_restart_counts() -> None:
    found = cut_off_logs(survey(NO_LEADER, 5, SHORT, SHORT, LONG), survey(2, 6, SHORT, SHORT, SHORT))
    assert found == CutOffLogs(TP, 5, 2, 560, (2,))


def test_nothing_is_judged_before_the_leaders_log_is_known() -> None:
    assert not tells_what_was_cut_off(BEFORE)
    assert not tells_what_was_cut_off(survey(2, 6, SHORT, SHORT, SILENT))
    assert tells_what_was_cut_off(survey(2, 6, SILENT, SILENT, SHORT))


def test_a_log_that_was_read_counts_while_its_broker_is_silent_and_nobody_has_led() -> None:
    assert remembered(BEFORE, survey(NO_LEADER, 5, SILENT, LONG, SHORT)).log(0) == LONG
    assert remembered(BEFORE, survey(NO_LEADER, 7, SILENT, LONG, SHORT)).log(0) is None
    assert remembered(BEFORE, survey(NO_LEADER, 5, SHORT, LONG, SHORT)).log(0) == SHORT


def test_whose_disk_still_holds_the_records_is_to_be_read() -> None:
    lost = CutOffLogs(TP, 5, 2, 560, (0,))
    assert cut_off_text(lost, {0, 2}).endswith("560 offsets of broker 0 are cut off")
    assert cut_off_text(lost, {2}).endswith("it lacks 560 offsets of broker 0: read its disk before a start")
    many = [lost._replace(tp=TopicPartition("payments", number), offsets=number) for number in range(1, 5)]
    first, rest = cut_off_lines(many, {0}, 1)
    assert first.startswith("payments-4: ")
    assert rest == "3 more partitions lost offsets: 6 offsets"
