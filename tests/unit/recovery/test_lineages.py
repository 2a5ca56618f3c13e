"""What one replica's epochs tell about another's: records are counted once, and no epoch is invented."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.lineages import KnownLog, reconciled
from recovery.loss import loss
from recovery.model import EpochSpan, Lineage, PartitionState, Replica, ReplicaLog, Standing, Survey
from tests.repetitions import repetitions
from tests.unit.recovery.logs import WholeLog, cluster_logs
from tests.unit.recovery.test_probe import to_the_bottom


def survey_of(logs: tuple[WholeLog, ...], leader_epoch: int) -> Survey:
    told = {i: KnownLog(log.start, to_the_bottom(log, leader_epoch)) for i, log in enumerate(logs)}
    replicas = tuple(
        Replica(i, Standing.ELECTABLE, ReplicaLog(leader_epoch, log.end, log.start, 0, found))
        for (i, found), log in zip(sorted(reconciled(told).items()), logs, strict=True)
    )
    state = PartitionState("t", 0, "id", -1, leader_epoch, tuple(range(len(logs))), (), (), (), ())
    return Survey(state, replicas, 2)


def lineage_of(survey: Survey, broker: int) -> Lineage:
    log = survey.log(broker)
    assert log is not None and isinstance(log.lineage, Lineage)
    return log.lineage


WHOLE = WholeLog((0,) * 35 + (1,) * 153)
DELETED = replace(WHOLE, start=143)
RETURNED = replace(WHOLE, forgotten=143)
"""Its broker was killed between DeleteRecords and its next checkpoint: epoch 0 seems to end at 143."""


def test_records_that_returned_without_their_epochs_are_counted_once() -> None:
    survey = survey_of((DELETED, RETURNED, WHOLE), 7)
    whole = (EpochSpan(0, 0, 35), EpochSpan(1, 35, 188))
    assert lineage_of(survey, 1).spans == lineage_of(survey, 2).spans == whole
    lost = loss(survey, 0)
    assert lost.at_least == lost.at_most == 143
    assert lost.head == (EpochSpan(0, 0, 35), EpochSpan(1, 35, 143))
    assert loss(survey, 1).none and loss(survey, 2).none


def test_what_another_log_tells_is_cut_at_the_logs_own_start() -> None:
    survey = survey_of((replace(RETURNED, start=20), WHOLE), 7)
    assert lineage_of(survey, 0) == Lineage(1, (EpochSpan(0, 20, 35), EpochSpan(1, 35, 188)), 20)


def test_where_nobody_knows_the_epochs_the_same_records_are_counted_once_all_the_same() -> None:
    later = WholeLog((2,) * 35 + (5,) * 153)
    forgot = replace(later, forgotten=143)
    lost = loss(survey_of((replace(later, start=143), forgot, forgot), 9), 0)
    assert (lost.at_least, lost.at_most) == (0, 143)


def test_what_one_log_learns_from_a_second_a_third_learns_from_it() -> None:
    """0 and 2 forgot different epochs. Only 2 knows that they hold epoch 2, and only 1 where it begins."""
    logs = WholeLog((2, 2, 2, 4), forgotten=3), WholeLog((2,)), WholeLog((2, 2, 2, 4), start=2)
    survey = survey_of(logs, 7)
    assert lineage_of(survey, 0).spans == (EpochSpan(2, 0, 3), EpochSpan(4, 3, 4))
    lost = loss(survey, 1)
    assert lost.at_least == lost.at_most == 3


def test_an_epoch_0_that_a_broker_made_up_hides_no_loss() -> None:
    """Both logs hold five records and answer for epoch 0. Those of 0 are of epoch 1: its broker forgot."""
    forgot, stale = WholeLog((1,) * 10, forgotten=5), WholeLog((0,) * 5)
    lost = loss(survey_of((forgot, stale), 3), 1)
    assert lost.at_most == 10, "all ten of broker 0, of which five are of an unknown epoch"
    assert lost.at_least == 5


@settings(max_examples=repetitions(100, 400))
@given(cluster_logs())
def test_what_is_true_stays_as_it_is(cluster: tuple[tuple[WholeLog, ...], int]) -> None:
    logs, leader_epoch = cluster
    survey = survey_of(logs, leader_epoch)
    for broker, log in enumerate(logs):
        assert lineage_of(survey, broker).spans == log.spans()


@settings(max_examples=repetitions(100, 600))
@given(cluster_logs(), st.data())
def test_whatever_brokers_forgot_no_loss_is_larger_than_what_the_disks_hold(
    cluster: tuple[tuple[WholeLog, ...], int], data: st.DataObject
) -> None:
    logs, leader_epoch = cluster
    forgetful = tuple(
        replace(log, forgotten=data.draw(st.integers(log.start, log.end - 1))) if log.start < log.end else log
        for log in logs
    )
    survey = survey_of(forgetful, leader_epoch)
    for chosen in range(len(logs)):
        told = loss(survey, chosen)
        others = [log.records() for i, log in enumerate(forgetful) if i != chosen]
        truth = len(set().union(*others) - forgetful[chosen].records())
        assert told.at_most is not None
        assert told.at_least <= truth <= told.at_most
        assert told.at_most <= sum(map(len, others))
