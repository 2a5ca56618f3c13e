"""The lineage that is found by asking is the lineage that the log has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.epoch_probe import (
    EARLIEST,
    EarliestOffset,
    EpochAnswer,
    EpochProbe,
    EpochProbeError,
    OutOfRange,
    advance,
    deepen,
    lineage,
    start,
)
from recovery.model import NO_EPOCH, EpochSpan, Lineage
from tests.repetitions import repetitions
from tests.unit.recovery.logs import WholeLog, cluster_logs


def ask(log: WholeLog, probe: EpochProbe, questions: list[int]) -> EpochProbe:
    questions.append(probe.asks)
    return advance(probe, log.fetch(probe.asks))


def to_last_epoch(
    log: WholeLog, leader_epoch: int, offline: bool = True, likely: int = NO_EPOCH
) -> tuple[EpochProbe, list[int]]:
    probe = start(log.end, leader_epoch, offline, likely)
    questions: list[int] = []
    while not probe.settled:
        probe = ask(log, probe, questions)
    return probe, questions


def to_the_bottom(log: WholeLog, leader_epoch: int) -> Lineage:
    probe, questions = to_last_epoch(log, leader_epoch)
    while not probe.bottom:
        probe = ask(log, probe, questions)
    return lineage(probe)


@settings(max_examples=repetitions(100, 400))
@given(cluster_logs())
def test_the_whole_lineage_is_found(cluster: tuple[tuple[WholeLog, ...], int]) -> None:
    logs, leader_epoch = cluster
    for log in logs:
        found = to_the_bottom(log, leader_epoch)
        assert found.spans == log.spans()
        assert found.floor == log.start
        if log.start < log.end:
            assert found.last_epoch == log.epochs[-1]


@settings(max_examples=repetitions(100, 400))
@given(cluster_logs())
def test_the_last_epoch_of_an_online_partition_is_found(cluster: tuple[tuple[WholeLog, ...], int]) -> None:
    logs, leader_epoch = cluster
    for log in logs:
        if log.start < log.end:
            probe, _ = to_last_epoch(log, leader_epoch, offline=False)
            assert lineage(probe).last_epoch == log.epochs[-1]


@settings(max_examples=repetitions(100, 400))
@given(cluster_logs(), st.integers(NO_EPOCH, 12), st.booleans())
def test_an_epoch_that_is_no_longer_the_last_one_changes_no_answer(
    cluster: tuple[tuple[WholeLog, ...], int], likely: int, offline: bool
) -> None:
    logs, leader_epoch = cluster
    for log in logs:
        usual, _ = to_last_epoch(log, leader_epoch, offline)
        probe, _ = to_last_epoch(log, leader_epoch, offline, likely)
        assert lineage(probe).last_epoch == lineage(usual).last_epoch


def test_a_log_that_has_not_changed_since_takes_two_questions_however_many_elections_there_were() -> None:
    log = WholeLog((0,) * 5 + (7,) * 5)
    probe, questions = to_last_epoch(log, leader_epoch=1000, likely=7)
    assert questions == [7, 6]
    assert lineage(probe).last_epoch == 7


def test_a_log_that_was_written_until_the_end_takes_two_questions() -> None:
    log = WholeLog((0,) * 5 + (3,) * 5)
    _, questions = to_last_epoch(log, leader_epoch=4)
    assert questions == [3, 2]


def test_many_elections_without_a_record_take_few_questions() -> None:
    log = WholeLog((0,) * 5 + (7,) * 5)
    _, questions = to_last_epoch(log, leader_epoch=1000)
    assert len(questions) < 25


def test_phantom_epochs_below_the_log_start_are_not_listed() -> None:
    log = WholeLog((0,) * 5 + (2,) * 5 + (6,) * 5, start=7)
    assert to_the_bottom(log, 8) == Lineage(6, (EpochSpan(2, 7, 10), EpochSpan(6, 10, 15)), 7)


def test_a_phantom_at_the_log_start_is_no_epoch_that_was_found() -> None:
    log = WholeLog((0,) * 5 + (2,) * 5 + (6,) * 5, start=7)
    probe, questions = to_last_epoch(log, 8)
    while not probe.bottom:
        probe = ask(log, probe, questions)
    assert probe.known == ((6, 15), (2, 10))


def test_what_a_killed_broker_forgot_above_its_log_start_is_not_made_up() -> None:
    log = WholeLog((0,) * 5 + (2,) * 5 + (6,) * 5, forgotten=7)
    assert to_the_bottom(log, 8) == Lineage(6, (EpochSpan(2, 7, 10), EpochSpan(6, 10, 15)), 7)
    forgot_all_but_the_last = WholeLog((0,) * 5 + (4,) * 5, forgotten=8)
    assert to_the_bottom(forgot_all_but_the_last, 6) == Lineage(4, (EpochSpan(4, 8, 10),), 8)


def test_a_broker_that_forgot_everything_tells_the_newest_epoch_it_remembers() -> None:
    log = WholeLog((0,) * 5 + (4,) * 5, forgotten=10)
    for leader_epoch in (5, 6):
        assert to_the_bottom(log, leader_epoch) == Lineage(4, (), 10)


@settings(max_examples=repetitions(100, 400))
@given(cluster_logs(), st.data())
def test_no_epoch_is_made_up_for_what_a_broker_forgot(
    cluster: tuple[tuple[WholeLog, ...], int], data: st.DataObject
) -> None:
    logs, leader_epoch = cluster
    for log in logs:
        if log.start == log.end:
            continue
        forgetful = replace(log, forgotten=data.draw(st.integers(log.start, log.end - 1)))
        found = to_the_bottom(forgetful, leader_epoch)
        lowest = found.spans[0].epoch
        if lowest == 0:
            assert found.floor == log.start, "no record is older than epoch 0"
        elif lowest == 1:  # where epoch 0 is forgotten in part, all of it is left out
            assert found.floor >= forgetful.forgotten
        else:
            assert found.floor == forgetful.forgotten
        assert found.spans == replace(log, start=found.floor).spans()


def test_a_leader_that_wrote_nothing_does_not_count() -> None:
    log = WholeLog((0,) * 5, idle=((4, 5),))
    assert to_the_bottom(log, 5).last_epoch == 0


def test_an_emptied_log_keeps_the_newest_epoch_it_remembers() -> None:
    log = WholeLog((0,) * 5 + (7,) * 5, start=10)
    assert to_the_bottom(log, 30) == Lineage(7, (), 10)


def test_a_log_start_that_rises_beyond_epoch_1_meanwhile_is_asked_again() -> None:
    probe = advance(start(10, 3, offline=True), EpochAnswer(None, 0, 0))
    probe = advance(advance(probe, EpochAnswer((1, 8), 0, 0)), EpochAnswer((0, 5), 0, 0))
    assert probe.asks == EARLIEST
    with pytest.raises(EpochProbeError, match="risen to epoch 2"):
        advance(probe, EarliestOffset(2, 9))
    assert lineage(advance(probe, EarliestOffset(1, 6))).spans == (EpochSpan(1, 6, 8), EpochSpan(2, 8, 10))


def test_an_emptied_log_of_a_broker_that_restarted_has_no_epoch() -> None:
    log = WholeLog((0,) * 5 + (7,) * 5, start=10, restarted=True)
    assert to_the_bottom(log, 30) == Lineage(NO_EPOCH, (), 10)


def test_a_log_whose_records_were_all_deleted_before_a_kill_is_empty_and_starts_at_its_end() -> None:
    """171 of 171 records deleted; the killed broker has them again, with a log start of 0, and no epochs."""
    probe, _ = to_last_epoch(WholeLog((0,) * 171, forgotten=171, restarted=True), 7)
    assert (probe.log_start_offset, probe.log_end_offset) == (171, 171)
    assert lineage(probe) == Lineage(NO_EPOCH, (), 171)


def test_a_log_that_never_held_a_record_has_no_epoch() -> None:
    assert to_the_bottom(WholeLog(()), 5) == Lineage(NO_EPOCH, (), 0)


def test_answers_that_contradict_each_other_are_an_error() -> None:
    probe = advance(start(10, 5, offline=True), EpochAnswer(None, 0, 0))
    with pytest.raises(EpochProbeError, match="out of range below"):
        advance(probe, OutOfRange.ANSWER)
    with pytest.raises(EpochProbeError, match="got epoch 9"):
        advance(probe, EpochAnswer((9, 3), 0, 0))
    without_epoch = advance(start(10, 1, offline=True), OutOfRange.ANSWER)
    with pytest.raises(EpochProbeError, match="does not end at 10 any more"):
        advance(without_epoch, OutOfRange.ANSWER)
    older = advance(advance(start(10, 5, offline=True), EpochAnswer(None, 0, 0)), EpochAnswer((3, 8), 0, 0))
    with pytest.raises(EpochProbeError, match="ends at 9, above the newer epoch's end 8"):
        advance(older, EpochAnswer((2, 9), 0, 0))
    with pytest.raises(EpochProbeError, match="not known yet"):
        lineage(start(10, 5, offline=True))


def probed(logs: tuple[WholeLog, ...], leader_epoch: int) -> tuple[dict[int, EpochProbe], int]:
    probes = {i: to_last_epoch(log, leader_epoch)[0] for i, log in enumerate(logs)}
    rounds = 0
    while deeper := deepen(probes, full=False):
        rounds += 1
        for broker in deeper:
            probes[broker] = advance(probes[broker], logs[broker].fetch(probes[broker].asks))
    return probes, rounds


def test_logs_that_agree_at_their_end_are_not_asked_further() -> None:
    log = WholeLog((0,) * 5 + (1,) * 5 + (2,) * 5 + (3,) * 5)
    _, rounds = probed((log, log, log), 5)
    assert rounds == 0


def test_logs_that_start_at_different_offsets_are_asked_to_the_bottom() -> None:
    """What the head holds that a choice gives up is told by epoch."""
    whole = WholeLog((0,) * 5 + (1,) * 5 + (2,) * 5)
    probes, _ = probed((whole, replace(whole, start=12)), 5)
    assert all(probe.bottom for probe in probes.values())
    assert lineage(probes[0]).spans == whole.spans()


def test_logs_are_asked_down_to_the_epoch_that_they_share() -> None:
    old = WholeLog((0,) * 5 + (1,) * 5 + (2,) * 9)
    new = WholeLog((0,) * 5 + (1,) * 5 + (2,) * 5 + (3,) * 5)
    probes, rounds = probed((old, new), 5)
    assert rounds == 1
    assert lineage(probes[1]).spans == (EpochSpan(2, 10, 15), EpochSpan(3, 15, 20))


def test_the_newest_epoch_of_an_emptied_log_that_has_a_leader_is_asked_for() -> None:
    """Every epoch below the newest answers alike there."""
    log = WholeLog((1, 1, 2, 5), start=4)
    probe, questions = to_last_epoch(log, 5, offline=False)
    assert questions[:2] == [4, 5]
    assert lineage(probe).last_epoch == 5


def test_a_lineage_that_was_not_followed_to_its_bottom_begins_where_its_knowledge_does() -> None:
    log = WholeLog((1,) * 5 + (3,) * 5)
    probe, _ = to_last_epoch(log, 4)
    assert probe.settled and not probe.bottom
    assert lineage(probe).floor == 5
    assert lineage(probe).spans == (EpochSpan(3, 5, 10),)
