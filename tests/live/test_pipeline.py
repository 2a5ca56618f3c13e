"""From a broken cluster by way of a snapshot and Spark to a plan that is applied and verified."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from console.plan_files import read
from pipeline.plan.decide_rows import cluster_facts, judged_row
from pipeline.snapshot.newest_observations import newest_observations
from pipeline.snapshot.state_sources import find
from pipeline.snapshot.survey_rows import survey_of
from pipeline.storage import storage_path
from recovery.plan.make import make_plan
from recovery.plan.values import Plan, PlanRow
from recovery.strategy import decide
from testbed.kafka import KafkaCluster
from tests.command_server import Ended
from tests.live import rescue_incident
from tests.live.command_runner import CommandRunner
from tests.live.incident_steps import Counts, stale_long_tails
from tests.pipeline.brief_java import BRIEF_JAVA
from tests.unit.cli.command_process import command_line, environment, invoke
from tests.unit.pipeline.read_states import state_of

pytestmark = pytest.mark.long

CLUSTER = rescue_incident.CLUSTER
TOPICS = {"payments": Counts(40, 30, 20), "audit": Counts(10, 5, 5)}
PARTITIONS = 6


@pytest.fixture(scope="module")
def broken(cluster: KafkaCluster) -> dict[str, tuple[str, ...]]:
    """Broker 1 has the longest logs, stale ones; 2 has the newest records; 3 is dead. All is offline."""
    for topic in TOPICS:
        cluster.client.create_topic(topic, [[1, 2, 3]] * PARTITIONS, {"min.insync.replicas": "1"})
    return stale_long_tails(cluster, TOPICS)


def on_spark(home: Path, *arguments: str) -> Ended:
    """Runs the command in a process of its own; Spark takes its time to start on a machine that is busy.

    Its Java remarks something on stdout now and then, which must not stand in the document.
    """
    ended = subprocess.run(
        command_line("ktriage", *arguments),
        env=environment(home, SPARK_SUBMIT_OPTS=f"{BRIEF_JAVA} -Xlog:gc"),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def _plain(row: PlanRow) -> PlanRow:
    """Without the times and the verdicts, which a snapshot does not ask for."""
    candidates = tuple(
        one._replace(loss=one.loss._replace(first_ms=None, last_ms=None), verdict=None)
        for one in row.candidates
    )
    return row._replace(candidates=candidates, offline_since_ms=None)


def test_a_snapshot_of_a_broken_cluster_becomes_a_plan_that_recovers_it(
    cluster: KafkaCluster, broken: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    console = CommandRunner(tmp_path, cluster.bootstrap(), cluster.metadata.wait_caught_up)
    taken = console("snapshot", "--out", "lake")
    assert taken.status == 0, taken
    assert "did not answer: broker 3" in taken.err

    ran = on_spark(
        tmp_path,
        "pipeline",
        "plan",
        "--in",
        "lake",
        "--out",
        "results",
        "--strategy",
        "aggressive",
        "--master",
        "local[2]",
        "--output",
        "json",
    )
    assert ran.status == 0, ran
    told = json.loads(ran.out)["summary"]
    assert [row["elect"] for row in told["losses"]] == [len(TOPICS) * PARTITIONS]

    made = invoke(
        tmp_path, "ktriage", "plan", "--from", "results", "--cluster", cluster.cluster_id, "recovery.json"
    )
    assert made.status == 0, made
    plan = read(tmp_path / "recovery.json")
    assert isinstance(plan, Plan)
    assert {row.leader for row in plan.rows} == {2}
    _as_the_rules_have_it(tmp_path, plan)
    _as_asked_afresh(console, tmp_path, plan)

    applied = console("apply", "--yes", "--reason", "drill", "recovery.json")
    assert applied.status == 0, applied
    for topic, promised in broken.items():
        for partition in range(PARTITIONS):
            records = [record.value for record in cluster.client.consume(topic, partition)]
            assert set(promised) <= set(records), (topic, partition)
    cluster.bring_all_up()
    for topic in TOPICS:
        for partition in range(PARTITIONS):
            cluster.metadata.wait_isr(topic, partition, [1, 2, 3])
    verified = console("verify", "recovery.json")
    assert verified.status == 0, verified


def _as_the_rules_have_it(home: Path, plan: Plan) -> None:
    """Every row that Spark made is the one that recovery/ makes of the same snapshot."""
    rows = state_of(storage_path(str(home / "lake")), plan.header.cluster_id)
    (observation,) = newest_observations(find([storage_path(str(home / "lake"))])).values()
    header, choices = plan.header, []
    for row in rows:
        survey = survey_of(row)
        if survey.state.offline:
            judged = judged_row(survey, row, cluster_facts(observation))
            choices.append((survey, decide(survey, header.ranking, header.strategy, judged)))
    ours = make_plan(header, choices)
    wanted = {row.tp: row for row in ours.rows}
    assert {row.tp: row._replace(marks=()) for row in plan.rows} == wanted


def _as_asked_afresh(console: CommandRunner, home: Path, plan: Plan) -> None:
    """And the one that asking the cluster makes."""
    ended = console("plan", "--strategy", "aggressive", "fresh.json")
    assert ended.status == 0, str(ended)
    fresh = read(home / "fresh.json")
    assert isinstance(fresh, Plan)
    assert {row.tp: _plain(row) for row in fresh.rows} == {row.tp: _plain(row) for row in plan.rows}
