"""The judgement of a row before its election is sent, case by case (judgement_cases.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from recovery.loss import Loss
from recovery.model import PartitionState, Replica, ReplicaLog, Standing, Survey, Unknown
from recovery.plan.edit import led_by
from recovery.plan.judgement import NATIVE, ElectionMeans, Reason, RowDecision, brokers_to_ask, judge
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from tests.plan_rows import row as planned_row
from tests.plan_rows import row_of
from tests.unit.plan.plans import HEADER, plan_of
from tests.unit.recovery.surveys import NO_READ, SILENT, log, survey

FILE = yaml.safe_load((Path(__file__).parent / "judgement_cases.yaml").read_text(encoding="utf-8"))
INCIDENT: Mapping[str, Any] = FILE["incident"]
CASES: list[dict[str, Any]] = FILE["cases"]
UNKNOWN = {"silent": SILENT, "denied": NO_READ}
MEANS = {
    "native": NATIVE,
    "by order": ElectionMeans(by_order=True),
    "by order before 4.1": ElectionMeans(by_order=True, blocks_on_last_known=True),
}


def partition(changes: Mapping[str, Any]) -> Survey:
    """The incident with those changes, as a survey sees it."""
    told = {**INCIDENT, **changes}
    logs = {**INCIDENT["logs"], **changes.get("logs", {})}
    standings: Mapping[int, str] = told["standings"]
    replicas = tuple(
        Replica(
            broker,
            Standing(standings.get(broker, "electable")),
            _still_leading(replica_log(logs.get(broker, "silent")), told.get("leads", {}).get(broker)),
        )
        for broker in told["replicas"]
    )
    state = PartitionState(
        "orders",
        0,
        told.get("topic id", "id"),
        told["leader"],
        told["epoch"],
        tuple(told["replicas"]),
        tuple(told["isr"]),
        None if told["elr"] is None else tuple(told["elr"]),
        tuple(told.get("last known elr", ())),
        tuple(replica.broker for replica in replicas if not replica.electable),
    )
    reassigning = told.get("reassigning", False)
    return Survey(state, replicas, 2, UNKNOWN.get(reassigning, reassigning))


def replica_log(what: str | list[list[int]]) -> ReplicaLog | Unknown:
    return UNKNOWN[what] if isinstance(what, str) else log(*(tuple(span) for span in what))  # type: ignore[arg-type]


def _still_leading(log: ReplicaLog | Unknown, epoch: int | None) -> ReplicaLog | Unknown:
    return log if epoch is None or isinstance(log, Unknown) else log._replace(leader_epoch=epoch, leads=True)


def planned(case: Mapping[str, Any], ranking: Ranking) -> PlanRow:
    (row,) = plan_of(partition(case.get("then", {})), header=replace(HEADER, ranking=ranking)).rows
    return led_by(row, case["designated"], ranking) if "designated" in case else row


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_case_is_judged_as_the_table_says(case: Mapping[str, Any]) -> None:
    ranking = Ranking(case.get("ranking", "last-record"))
    now: Survey | Unknown | None = partition(case.get("now", {}))
    if "state" in case:
        now = UNKNOWN[case["state"]]
    found = judge(
        planned(case, ranking),
        ranking,
        None if case.get("gone") else now,
        MEANS[case.get("means", "native")],
        order_is_ours=case.get("order is ours", False),
    )
    assert (found.decision.value, found.reason.value) == (case["decision"], case["reason"]), found
    if "lost" in case:
        assert (None if isinstance(found.lost, Unknown) else found.lost) == case["lost"], found
    assert found.holds == (found.decision is RowDecision.SEND)
    assert bool(found.detail) == (not found.holds)


def test_every_decision_and_every_reason_has_its_case() -> None:
    assert {case["decision"] for case in CASES} == {one.value for one in RowDecision}
    elsewhere = {Reason.CLUSTER_ID, Reason.LOSS, Reason.NEVER_ANSWERED, Reason.NOT_RESCUED, Reason.NOT_KEPT}
    assert {case["reason"] for case in CASES} == {one.value for one in Reason if one not in elsewhere}


def test_a_leader_whose_log_was_never_seen_is_not_elected() -> None:
    row = plan_of(partition({})).rows[0]._replace(order=(4, 2, 3, 1))
    back = partition({"standings": {4: "electable"}, "logs": {4: [[2, 0, 1300]]}})
    found = judge(row, Ranking.LAST_RECORD, back)
    assert (found.decision, found.reason) == (RowDecision.NOT_POSSIBLE, Reason.NEVER_ANSWERED)


def test_a_fenced_candidates_log_is_read_again_before_the_election() -> None:
    """It reported its log when the plan was made, and may have another one now."""
    state = PartitionState("t", 0, "id", -1, 4, (1, 2, 3), (), (), (), (2, 3))
    row = planned_row(state, (1, 2, 3), {1: (2, 100), 2: (2, 100)})
    standings = {1: Standing.ELECTABLE, 2: Standing.FENCED, 3: Standing.FENCED}
    assert brokers_to_ask(row, state, standings) == (1, 2)


def test_records_that_compaction_took_are_no_room_for_a_longer_tail() -> None:
    """The plan's bound of 5 is for compacted records alone: 3 more at the tail are not what was agreed to."""
    what = survey({1: log((2, 0, 100)), 2: log((2, 0, 103))})
    row = row_of(what, (1, 2))
    (chosen, other) = row.candidates
    bounded = row._replace(candidates=(chosen._replace(loss=Loss(0, 5, (), (), (), compacted=5)), other))
    found = judge(bounded, Ranking.LAST_RECORD, what)
    assert (found.decision, found.reason) == (RowDecision.STALE, Reason.LOSS)
