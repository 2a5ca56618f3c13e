"""The loss that is told is the loss that happens, held against logs kept record by record."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.epoch_probe import EpochProbe, lineage
from recovery.loss import Branch, Loss, branches, count, divergence, loss
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
from tests.repetitions import repetitions
from tests.unit.recovery import surveys
from tests.unit.recovery.logs import WholeLog, cluster_logs
from tests.unit.recovery.test_probe import probed


def survey_of(
    logs: tuple[WholeLog, ...], probes: dict[int, EpochProbe], silent: frozenset[int] = frozenset()
) -> Survey:
    brokers = tuple(range(len(logs)))
    replicas = tuple(
        Replica(
            broker,
            Standing.ELECTABLE,
            Unknown(Why.NOT_ANSWERED, "refused")
            if broker in silent
            else ReplicaLog(9, logs[broker].end, logs[broker].start, 0, lineage(probes[broker])),
        )
        for broker in brokers
    )
    state = PartitionState("t", 0, "id", -1, 9, brokers, (), (), (), ())
    return Survey(state, replicas, 2)


@settings(max_examples=repetitions(100, 400))
@given(cluster_logs(), st.data())
def test_loss_is_what_other_logs_hold_and_the_chosen_does_not(
    cluster: tuple[tuple[WholeLog, ...], int], data: st.DataObject
) -> None:
    logs, leader_epoch = cluster
    probes, _ = probed(logs, leader_epoch)
    chosen = data.draw(st.integers(0, len(logs) - 1))
    silent = frozenset(data.draw(st.sets(st.integers(0, len(logs) - 1)))) - {chosen}
    told = loss(survey_of(logs, probes, silent), chosen)
    heard = [log.records() for i, log in enumerate(logs) if i != chosen and i not in silent]
    truth = set().union(*heard) - logs[chosen].records()
    assert told.at_least == len(truth)
    assert told.at_most == (None if silent else len(truth))
    assert told.unanswered == tuple(sorted(silent))
    for spans, is_head in ((told.tail, False), (told.head, True)):
        listed = {(s.epoch, o) for s in spans for o in range(s.start, s.end)}
        assert listed == {(e, o) for e, o in truth if (o < logs[chosen].start) == is_head}


@settings(max_examples=repetitions(100, 600))
@given(cluster_logs(), st.data())
def test_an_interrupted_survey_bounds_the_loss_from_both_sides(
    cluster: tuple[tuple[WholeLog, ...], int], data: st.DataObject
) -> None:
    from tests.unit.recovery.test_probe import to_last_epoch

    logs, leader_epoch = cluster
    probes = {i: to_last_epoch(log, leader_epoch)[0] for i, log in enumerate(logs)}
    chosen = data.draw(st.integers(0, len(logs) - 1))
    told = loss(survey_of(logs, probes), chosen)
    others = [log.records() for i, log in enumerate(logs) if i != chosen]
    truth = len(set().union(*others) - logs[chosen].records())
    assert told.at_most is not None
    assert told.at_least <= truth <= told.at_most


def log_of(*spans: tuple[int, int, int], start: int = 0) -> ReplicaLog:
    kept = tuple(EpochSpan(*span) for span in spans)
    return ReplicaLog(4, kept[-1].end, start, 0, Lineage(kept[-1].epoch, kept, start))


def stale_long_tail() -> Survey:
    state = PartitionState("t", 0, "id", -1, 4, (1, 2, 3), (), (), (), (3,))
    logs = (
        Replica(1, Standing.ELECTABLE, log_of((0, 0, 1500))),
        Replica(2, Standing.ELECTABLE, log_of((0, 0, 1000), (2, 1000, 1300))),
        Replica(3, Standing.FENCED, Unknown(Why.NOT_ANSWERED, "refused")),
    )
    return Survey(state, logs, 2)


def test_the_stale_long_tail_tells_both_losses() -> None:
    survey = stale_long_tail()
    assert loss(survey, 2) == Loss(500, None, (EpochSpan(0, 1000, 1500),), (), (3,))
    assert loss(survey, 1) == Loss(300, None, (EpochSpan(2, 1000, 1300),), (), (3,))


def test_the_same_record_on_two_replicas_is_lost_once() -> None:
    survey = stale_long_tail()
    twice = survey._replace(
        replicas=(*survey.replicas[:2], Replica(3, Standing.FENCED, log_of((0, 0, 1400))))
    )
    assert loss(twice, 2).at_least == 500


def test_nothing_is_lost_only_where_that_is_certain() -> None:
    assert Loss(0, 0, (), (), ()).none
    assert not Loss(0, None, (), (), (3,)).none
    assert not Loss(0, 40, (), (), (), compacted=40).none


def test_nothing_can_be_said_of_a_leader_that_did_not_answer() -> None:
    with pytest.raises(ValueError, match="broker 3 did not report"):
        loss(stale_long_tail(), 3)
    with pytest.raises(ValueError, match="broker 9 did not report"):
        loss(stale_long_tail(), 9)


def test_divergence_is_where_the_shorter_branch_of_the_last_common_epoch_ends() -> None:
    one = Lineage(0, (EpochSpan(0, 0, 1500),), 0)
    other = Lineage(2, (EpochSpan(0, 0, 1000), EpochSpan(2, 1000, 1300)), 0)
    assert divergence(one, other) == divergence(other, one) == 1000
    assert divergence(one, Lineage(7, (EpochSpan(7, 0, 5),), 0)) is None


def test_count_adds_lengths() -> None:
    assert count([EpochSpan(0, 5, 10), EpochSpan(1, 10, 12)]) == 7


def test_the_smaller_number_is_told_to_be_the_newer_records() -> None:
    survey = stale_long_tail()
    assert branches(loss(survey, 2), 2) == {Branch.STALE: 500}
    assert branches(loss(survey, 1), 0) == {Branch.NEWER: 300}
    shorter = survey._replace(
        replicas=(*survey.replicas[:2], Replica(3, Standing.FENCED, log_of((0, 0, 1400))))
    )
    assert branches(loss(shorter, 3), 0) == {Branch.FURTHER: 100, Branch.NEWER: 300}


def test_what_an_interrupted_survey_knows_of_one_epoch_only_is_not_certainly_lost() -> None:
    """Of the chosen log no more is known than its last epoch: it may hold the same records of it."""
    chosen = ReplicaLog(4, 150, 0, 0, Lineage(4, (), 150))
    found = loss(surveys.survey({1: chosen, 2: surveys.log((4, 100, 150), start=100)}), 1)
    assert found.at_least == 0
