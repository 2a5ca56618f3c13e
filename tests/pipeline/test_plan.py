"""What Spark plans is what recovery/ plans, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as f

from pipeline.places import place
from pipeline.plan.job import decided
from pipeline.plan.result import candidate, plan_row
from pipeline.sources import find, state
from recovery.model import Survey, TopicPartition, Unknown
from recovery.plan.make import make_plan
from recovery.plan.values import Header
from recovery.ranking import Ranking, rank
from recovery.strategy import Strategy, Verdict, decide
from tests.pipeline.surveys import NOON, surveys, write

PARTITIONS = 1000


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_every_ranking_and_strategy_agrees_with_the_rules_on_every_row(
    spark: Any, tmp_path_factory: Any, seed: int
) -> None:
    told = surveys(seed, PARTITIONS)
    root = place(str(tmp_path_factory.mktemp("lake")))
    write(root, "c", told)
    rows = state(spark, find([root]).chains).persist()
    by_name = {survey.tp: survey for survey in told}
    for ranking in Ranking:
        for strategy in Strategy:
            found = [row.asDict(recursive=True) for row in decided(rows, ranking, strategy).collect()]
            assert len(found) == len(told)
            for row in found:
                survey = by_name[TopicPartition(row["topic"], row["partition"])]
                _agrees(row, survey, ranking, strategy)
    rows.unpersist()


def _agrees(row: dict[str, Any], survey: Survey, ranking: Ranking, strategy: Strategy) -> None:
    wanted = decide(survey, ranking, strategy)
    assert (row["verdict"], row["reason"]) == (wanted.verdict.value, wanted.reason), survey
    assert row["chosen"] == wanted.leader, survey
    assert tuple(row["election_order"]) == wanted.order, survey
    assert tuple(row["waits_for"]) == wanted.waits_for, survey
    assert row["other_ranking_leader"] == wanted.other_ranking_leader, survey
    header = Header("p", "c", NOON, "me", "0.1.0", ranking, strategy)
    if wanted.verdict is Verdict.ELECT:
        planned = make_plan(header, [(survey, wanted)]).rows[0]
        assert plan_row(row) == planned, survey
    elif survey.state.offline:
        ranked = rank(survey, ranking)
        brokers = [] if isinstance(ranked, Unknown) else [one.broker for one in ranked]
        assert [candidate(one).broker for one in row["candidates"] or ()] == brokers, survey


def test_the_tests_surveys_reach_every_verdict() -> None:
    told = surveys(1, PARTITIONS)
    for ranking in Ranking:
        reached = {decide(survey, ranking, strategy).verdict for survey in told for strategy in Strategy}
        assert reached == set(Verdict)


def test_a_part_of_the_lake_is_read_where_a_part_is_asked_for(spark: Any, tmp_path: Path) -> None:
    root = place(str(tmp_path))
    for number, cluster_id in enumerate(("one", "two")):
        write(root, cluster_id, surveys(number, 20))
        write(root, cluster_id, surveys(number, 20), NOON.replace(day=30), "t")
    whole = spark.read.option("basePath", (root / "partitions").hadoop).parquet((root / "partitions").hadoop)
    part = whole.where("cluster_id = 'one' AND date = '2026-01-30'")
    plan = part._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(cluster_id" in plan
    assert part.count() == 20
    read = part.select(f.input_file_name().alias("file")).distinct().collect()
    assert ["date=2026-01-30" in row["file"] and "cluster_id=one" in row["file"] for row in read] == [True]
