"""What is worked out for many rows at once is what recovery/ says of each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.plan.decide_rows import NOTHING_KNOWN, judged_row, planned
from pipeline.plan.row_checks import flaws
from pipeline.snapshot.survey_rows import batch_of, survey_of
from pipeline.tables.schemas import PLANNED
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.model import Survey, TopicPartition, Unknown
from recovery.plan.make import make_plan
from recovery.plan.read import row_from_json
from recovery.plan.topic_marks import Mark
from recovery.plan.values import Header
from recovery.plan.write import to_json
from recovery.ranking import Ranking, rank
from recovery.strategy import DecisionKind, Strategy, decide
from recovery.wording.verdict_text import short_verdict
from tests.pipeline.partition_histories import partition
from tests.pipeline.survey_strategies import NOON, surveys
from tests.repetitions import repetitions

PARTITIONS = 250


def rows_of(batch: Any, ranking: Ranking, strategy: Strategy) -> list[dict[str, Any]]:
    return [row for told in planned(batch, ranking, strategy) for row in told.to_pylist()]


@pytest.mark.long
@settings(max_examples=repetitions(2, 4), deadline=None)
@given(st.integers(0, 2**32))
def test_every_ranking_and_strategy_agrees_with_the_rules_on_every_row(seed: int) -> None:
    told = surveys(seed, PARTITIONS)
    by_name = {survey.tp: survey for survey in told}
    for ranking in Ranking:
        for strategy in Strategy:
            found = rows_of(batch_of(told, {}), ranking, strategy)
            assert len(found) == len(told)
            for row in found:
                survey = by_name[TopicPartition(row["topic"], row["partition"])]
                _agrees(row, survey, ranking, strategy)


def _agrees(row: dict[str, Any], survey: Survey, ranking: Ranking, strategy: Strategy) -> None:
    judged = partition_verdicts(PartitionFacts(survey, compacted=False)) if survey.state.offline else None
    wanted = decide(survey, ranking, strategy, judged)
    assert (row["verdict"], row["reason"]) == (wanted.verdict.value, wanted.reason), survey
    assert row["chosen"] == wanted.leader, survey
    assert tuple(row["election_order"]) == wanted.order, survey
    assert tuple(row["waits_for"]) == wanted.waits_for, survey
    assert row["other_ranking_leader"] == wanted.other_ranking_leader, survey
    header = Header("p", "c", NOON, "me", "0.1.0", ranking, strategy)
    if wanted.verdict is DecisionKind.ELECT:
        (of_rules,) = make_plan(header, [(survey, wanted)]).rows
        assert row_from_json(row["plan_row"], ranking) == of_rules, survey
        chosen = next(one for one in row["candidates"] if one["broker"] == row["chosen"])
        assert chosen["loss"]["at_least"] == of_rules.chosen.loss.at_least
        assert chosen["loss"]["at_most"] == of_rules.chosen.loss.at_most
        assert row["acknowledged"] == short_verdict(of_rules.chosen.verdict)
    elif survey.state.offline:
        ranked = rank(survey, ranking)
        brokers = [] if isinstance(ranked, Unknown) else [one.broker for one in ranked]
        assert [one["broker"] for one in row["candidates"] or ()] == brokers, survey
        assert row["plan_row"] is None


def test_a_plan_file_made_of_the_rows_is_the_plan_that_the_rules_make() -> None:
    """Of every detail: what an edit, a review and ``apply`` go by."""
    told = [one for one in surveys(5, 200) if one.state.offline]
    batch = batch_of(told, {"topic-1": (Mark.COMPACTED,)})
    ranking, strategy = Ranking.LAST_RECORD, Strategy.AGGRESSIVE
    rows = [row for row in rows_of(batch, ranking, strategy) if row["plan_row"] is not None]
    text = ",\n".join(row["plan_row"] for row in rows)
    header = Header("p", "c", NOON, "me", "0.1.0", ranking, strategy)
    of_rules = [survey_of(row) for row in batch.to_pylist()]
    choices = [
        (one, decide(one, ranking, strategy, judged_row(one, row, NOTHING_KNOWN)))
        for one, row in zip(of_rules, batch.to_pylist(), strict=True)
    ]
    whole = to_json(make_plan(header, choices, {"topic-1": (Mark.COMPACTED,)}))
    assert rows and text in whole


def test_the_tests_surveys_reach_every_verdict() -> None:
    told = surveys(1, PARTITIONS)
    for ranking in Ranking:
        reached = {decide(survey, ranking, strategy).verdict for survey in told for strategy in Strategy}
        assert reached == set(DecisionKind)


@pytest.mark.parametrize("count", [0, 1])
def test_a_batch_of_none_or_one_is_a_batch(count: int) -> None:
    (told,) = planned(batch_of(surveys(3, count), {}), Ranking.LAST_RECORD, Strategy.BALANCED)
    assert told.schema.equals(PLANNED) and told.num_rows == count


def test_a_slice_of_a_batch_is_planned_as_the_rows_that_are_in_it() -> None:
    whole = batch_of(surveys(4, 60), {})
    found = rows_of(whole.slice(20, 15), Ranking.LAST_RECORD, Strategy.COMPLETE)
    assert found == rows_of(whole, Ranking.LAST_RECORD, Strategy.COMPLETE)[20:35]


def _replica(**fields: Any) -> dict[str, Any]:
    return {"replicas": lambda replicas: [replicas[0] | fields, *replicas[1:]]}


BROKEN: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"partition": None}, "no topic or partition"),
    ({"topic": ""}, "no topic or partition"),
    ({"topic": "", "leader": None, "isr": None}, "no topic or partition"),
    ({"leader": None}, "no leader, epoch or id is given"),
    ({"topic_id": None}, "no leader, epoch or id is given"),
    ({"assignment": []}, "no assignment, or a broker in it twice"),
    ({"assignment": [1, 1, 3]}, "no assignment, or a broker in it twice"),
    ({"assignment": [1, None, 3]}, "no assignment, or a broker in it twice"),
    ({"isr": None}, "ISR is missing or broken"),
    ({"elr": [None]}, "ISR is missing or broken"),
    ({"isr": [77]}, "a leader, or a member of ISR or ELR, outside the assignment"),
    ({"elr": [77]}, "a leader, or a member of ISR or ELR, outside the assignment"),
    ({"leader": 77}, "a leader, or a member of ISR or ELR, outside the assignment"),
    ({"elr": None, "last_known_elr": None}, None),
    ({"reassigning": None}, "whether a reassignment is in progress is missing"),
    ({"reassigning": None, "reassigning_unknown": {"why": "failed", "detail": ""}}, None),
    ({"replicas": None}, "replicas are missing"),
    ({"replicas": lambda replicas: [None, *replicas[1:]]}, "replicas are missing"),
    (_replica(broker=9), "a replica outside the assignment"),
    ({"replicas": lambda replicas: replicas[:2]}, "the replicas are not those of the assignment"),
    ({"replicas": lambda replicas: replicas[::-1]}, "the replicas are not those of the assignment"),
    (_replica(standing="leaping"), "a replica of unknown standing"),
    (_replica(standing=None), "a replica of unknown standing"),
    (_replica(log_end=None), "a log's offsets or epoch are missing or impossible"),
    (_replica(log_end=2**62), "a log's offsets or epoch are missing or impossible"),
    (_replica(log_end=2**56), "a log's offsets or epoch are missing or impossible"),
    (_replica(log_end=2**56 - 1), None),
    (_replica(leader_epoch=None), "a log's offsets or epoch are missing or impossible"),
    (_replica(log_end=None, unknown={"why": "not answered", "detail": ""}), None),
    (_replica(spans=None), "a log's lineage is missing or impossible"),
    (_replica(spans=None, lineage_unknown={"why": "not allowed", "detail": ""}), None),
    (_replica(floor=None), "a log's lineage is missing or impossible"),
    (_replica(spans=[{"epoch": -1, "start": 0, "end": 5}]), None),
    (_replica(spans=[{"epoch": -2, "start": 0, "end": 5}]), "a log's lineage is missing or impossible"),
    (_replica(spans=[None]), "a log's lineage is missing or impossible"),
    (
        _replica(spans=[{"epoch": 2, "start": -(2**63), "end": 2**63 - 1}]),
        "a log's lineage is missing or impossible",
    ),
    (
        _replica(spans=[{"epoch": 2, "start": 0, "end": 5}, {"epoch": 2, "start": 5, "end": 9}]),
        "a log's lineage is missing or impossible",
    ),
]


def test_each_broken_row_is_told_by_its_reason_and_no_other_row() -> None:
    whole = batch_of([partition(number, leader=-1, isr=()) for number in range(len(BROKEN))], {})
    rows = whole.to_pylist()
    for row, (changes, _) in zip(rows, BROKEN, strict=True):
        for name, change in changes.items():
            row[name] = change(row[name]) if callable(change) else change
    batch = pa.RecordBatch.from_pylist(rows, schema=whole.schema)
    wanted = [reason for _, reason in BROKEN]
    assert flaws(batch).to_pylist() == wanted
    found = rows_of(batch, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    quarantined = [row["reason"] for row in found if row["verdict"] == "quarantined"]
    assert quarantined == [reason for reason in wanted if reason is not None]
    assert len(found) == len(rows)
