"""What an operator is told to do with a partition, strategy by strategy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.model import ReplicaLog, Standing, Unknown, Why
from recovery.ranking import Ranking, rank
from recovery.strategy import DecisionKind, Strategy, clean_electors, decide
from tests.unit.recovery.surveys import NO_READ, SILENT, log, survey

STALE_LONG = log((0, 0, 1500))
SHORT_BUT_NEWER = log((0, 0, 1000), (2, 1000, 1300))


def brokers(ranked: object) -> list[int]:
    assert isinstance(ranked, tuple)
    assert not isinstance(ranked, Unknown)
    return [candidate.broker for candidate in ranked]


def test_the_last_records_epoch_goes_before_length() -> None:
    incident = survey({1: STALE_LONG, 2: SHORT_BUT_NEWER, 3: SILENT})
    assert brokers(rank(incident, Ranking.LAST_RECORD)) == [2, 1]
    assert brokers(rank(incident, Ranking.SPECIFICATION)) == [1, 2]


def test_where_the_rankings_disagree_the_other_choice_is_named() -> None:
    incident = survey({1: STALE_LONG, 2: SHORT_BUT_NEWER, 3: SILENT})
    decision = decide(incident, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    assert (decision.leader, decision.order, decision.other_ranking_leader) == (2, (2, 1, 3), 1)


def test_the_current_leader_epoch_decides_under_the_specification() -> None:
    incident = survey({1: log((0, 0, 900), leader_epoch=3), 2: log((0, 0, 800), leader_epoch=5)})
    assert brokers(rank(incident, Ranking.SPECIFICATION)) == [2, 1]


def test_equal_logs_keep_the_assignment_order() -> None:
    incident = survey({3: STALE_LONG, 1: STALE_LONG, 2: STALE_LONG})
    assert brokers(rank(incident, Ranking.LAST_RECORD)) == [3, 1, 2]


def test_without_read_the_partition_is_refused_and_length_is_not_tried() -> None:
    unread = ReplicaLog(4, 1500, lineage=NO_READ)
    decision = decide(survey({1: unread, 2: SHORT_BUT_NEWER}), Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    assert decision.verdict is DecisionKind.REFUSED
    assert "needs READ on topic t" in decision.reason
    assert "broker 1" in decision.reason


def test_a_broker_that_died_between_two_questions_has_not_answered() -> None:
    died = ReplicaLog(4, 9000, lineage=Unknown(Why.NOT_ANSWERED, "closed by peer"))
    incident = survey({1: died, 2: SHORT_BUT_NEWER})
    assert decide(incident, Ranking.LAST_RECORD, Strategy.AGGRESSIVE).leader == 2
    assert decide(incident, Ranking.LAST_RECORD, Strategy.COMPLETE).waits_for == (1,)


def test_a_fenced_replica_that_answers_is_listed_and_never_chosen() -> None:
    incident = survey({1: STALE_LONG, 2: SHORT_BUT_NEWER}, standings={2: Standing.FENCED})
    assert brokers(rank(incident, Ranking.LAST_RECORD)) == [2, 1]
    decision = decide(incident, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    assert (decision.leader, decision.order) == (1, (1, 2))


@pytest.mark.parametrize("strategy", [Strategy.BALANCED, Strategy.COMPLETE])
def test_a_better_log_that_is_only_fenced_is_waited_for(strategy: Strategy) -> None:
    incident = survey({1: STALE_LONG, 2: SHORT_BUT_NEWER}, standings={2: Standing.FENCED})
    decision = decide(incident, Ranking.LAST_RECORD, strategy)
    assert (decision.verdict, decision.waits_for) == (DecisionKind.WAIT, (2,))


def test_balanced_waits_for_isr_and_elr_members() -> None:
    incident = survey({1: STALE_LONG, 2: STALE_LONG, 3: SILENT}, elr=(3,))
    decision = decide(incident, Ranking.LAST_RECORD, Strategy.BALANCED)
    assert (decision.verdict, decision.waits_for) == (DecisionKind.WAIT, (3,))
    assert clean_electors(incident) == (3,)


def test_balanced_elects_when_every_last_known_elr_member_answered() -> None:
    logs: dict[int, ReplicaLog | Unknown] = {1: STALE_LONG, 2: SHORT_BUT_NEWER, 3: SILENT}
    ready = survey(logs, last_known_elr=(2,))
    assert decide(ready, Ranking.LAST_RECORD, Strategy.BALANCED).leader == 2
    missing = survey(logs, last_known_elr=(3,))
    assert decide(missing, Ranking.LAST_RECORD, Strategy.BALANCED).waits_for == (3,)


def test_balanced_with_nothing_known_waits_for_every_replica() -> None:
    logs: dict[int, ReplicaLog | Unknown] = {1: STALE_LONG, 2: SHORT_BUT_NEWER, 3: SILENT}
    assert decide(survey(logs), Ranking.LAST_RECORD, Strategy.BALANCED).waits_for == (3,)
    no_elr = survey(logs, isr=(3,), elr=None, last_known_elr=None)
    assert decide(no_elr, Ranking.LAST_RECORD, Strategy.BALANCED).waits_for == (3,)
    all_answered = survey({1: STALE_LONG, 2: SHORT_BUT_NEWER}, isr=(1,), elr=None, last_known_elr=None)
    assert decide(all_answered, Ranking.LAST_RECORD, Strategy.BALANCED).leader == 2


def test_complete_elects_only_when_every_replica_answered() -> None:
    logs: dict[int, ReplicaLog | Unknown] = {1: STALE_LONG, 2: SHORT_BUT_NEWER}
    assert decide(survey(logs), Ranking.LAST_RECORD, Strategy.COMPLETE).leader == 2
    assert decide(survey({**logs, 3: SILENT}), Ranking.LAST_RECORD, Strategy.COMPLETE).waits_for == (3,)


def test_none_only_reports() -> None:
    incident = survey({1: STALE_LONG, 2: SHORT_BUT_NEWER})
    assert decide(incident, Ranking.LAST_RECORD, Strategy.NONE).verdict is DecisionKind.REPORT_ONLY


def test_an_online_partition_is_already_online() -> None:
    decision = decide(survey({1: STALE_LONG}, leader=1), Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    assert (decision.verdict, decision.leader) == (DecisionKind.ALREADY_ONLINE, 1)


@pytest.mark.parametrize("reassigning", [True, Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on cluster")])
def test_a_reassignment_in_progress_or_unknown_is_refused(reassigning: bool | Unknown) -> None:
    incident = survey({1: STALE_LONG}, reassigning=reassigning)
    decision = decide(incident, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    assert decision.verdict is DecisionKind.REFUSED
    assert "reassignment" in decision.reason


def test_all_replicas_dead_is_no_candidate() -> None:
    decision = decide(survey({1: SILENT, 2: SILENT}), Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    assert (decision.verdict, decision.waits_for) == (DecisionKind.NO_CANDIDATE, (1, 2))


answers = st.one_of(
    st.just(SILENT),
    st.builds(
        lambda epoch, end, current: log((epoch, 0, end), leader_epoch=current),
        st.integers(0, 5),
        st.integers(1, 99),
        st.integers(0, 9),
    ),
)


@given(
    st.lists(answers, min_size=1, max_size=4),
    st.lists(st.sampled_from(Standing), min_size=4, max_size=4),
    st.sampled_from(Ranking),
    st.sampled_from(Strategy),
    st.sampled_from([(), (1,), None]),
)
def test_whoever_is_elected_is_electable_and_the_best_of_them(
    logs: list[ReplicaLog | Unknown],
    standings: list[Standing],
    ranking: Ranking,
    strategy: Strategy,
    elr: tuple[int, ...] | None,
) -> None:
    incident = survey(
        dict(enumerate(logs, start=1)),
        elr=elr,
        last_known_elr=None if elr is None else (),
        standings=dict(enumerate(standings, start=1)),
    )
    decision = decide(incident, ranking, strategy)
    if decision.verdict is not DecisionKind.ELECT:
        assert decision.leader == -1
        return
    ranked = rank(incident, ranking)
    assert not isinstance(ranked, Unknown)
    chosen = next(candidate for candidate in ranked if candidate.broker == decision.leader)
    assert chosen.electable
    assert all(candidate.key <= chosen.key for candidate in ranked if candidate.electable)
    assert decision.order[0] == decision.leader
    assert sorted(decision.order) == sorted(incident.state.replicas)
    if strategy is not Strategy.AGGRESSIVE:
        assert all(isinstance(replica.log, ReplicaLog) for replica in incident.replicas)
