"""What Prometheus reads of the fleet, what a chat gets, and old results that are removed."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pipeline.fleet_metrics import METRICS, Sample, exposition
from pipeline.results import JobResult, commit, read_results, rows_by_run, run_target
from pipeline.storage import storage_path
from pipeline.tables.delta_table import append
from pipeline.tables.schemas import PLANS
from tests.command_server import ROOT
from tests.pipeline.partition_histories import Diary, offline, partition
from tests.pipeline.survey_strategies import NOON
from tests.unit.cli.command_process import Caller
from tests.unit.pipeline.test_pipeline_report import SUMMARIES
from tests.unit.pipeline.test_watch_result import ID, write_incidents


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def values(text: str) -> dict[tuple[str, str], float]:
    """By metric and cluster."""
    families = text_string_to_metric_families(text)
    return {(s.name, s.labels["cluster_id"]): s.value for family in families for s in family.samples}


def test_each_directory_tells_what_it_knows_and_nothing_is_made_up(call: Caller) -> None:
    diary = Diary(storage_path(f"{call.home}/lake"))
    diary.write(0, [offline(0), partition(1)])
    diary.fail(5)
    write_incidents(storage_path(f"{call.home}/lake"))
    fleet = {"cluster_name": "production", "acknowledged_at_risk": 7, "offline": 2}
    rows = [
        fleet | {"cluster_id": "c", "refused": None},
        fleet | {"cluster_id": "torn", "refused": "its rows are missing"},
    ]
    asked, summary, _ = SUMMARIES["exposure"]
    target = run_target(storage_path(f"{call.home}/results"), "exposure", NOON, "t")
    commit(JobResult(target, "exposure", NOON, "0.1.0", asked, summary | {"fleet": rows}))
    for _ in range(2):
        ended = call("ktriage", "pipeline", "metrics", "lake", "results", "--out", "ktriage.prom")
        assert (ended.status, ended.out) == (0, "ktriage.prom: 8 samples of 2 clusters\n"), ended.err
    found = values((call.home / "ktriage.prom").read_text())
    assert found == {
        ("ktriage_partitions", "c"): 2,
        ("ktriage_partitions_offline", "c"): 1,
        ("ktriage_snapshot_timestamp_seconds", "c"): NOON.timestamp(),
        ("ktriage_snapshot_failed", "c"): 1,
        ("ktriage_at_risk", "c"): 7,
        ("ktriage_exposed_offline", "c"): 2,
        ("ktriage_exposure_timestamp_seconds", "c"): NOON.timestamp(),
        ("ktriage_incidents_open", ID): 1,
    }
    nothing = call("ktriage", "pipeline", "metrics", "elsewhere", "--out", "other.prom")
    assert nothing.status == 2 and not (call.home / "other.prom").exists()


def test_a_name_cannot_end_its_label_for_prometheus_own_parser() -> None:
    text = exposition([Sample("ktriage_partitions", "c", 'a"b\\\n', 1)])
    (family,) = text_string_to_metric_families(text)
    (sample,) = family.samples
    assert sample.labels == {"cluster_id": "c", "cluster": 'a"b\\\n'} and sample.value == 1


def test_the_alert_rules_are_about_metrics_that_there_are() -> None:
    groups = yaml.safe_load((ROOT / "docs/platform/ktriage.rules.yml").read_text())["groups"]
    used = {
        name
        for group in groups
        for rule in group["rules"]
        for name in re.findall(r"ktriage_\w+", rule["expr"])
    }
    assert used and used <= set(METRICS)


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    board = json.loads((ROOT / "docs/platform/ktriage.grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert {name for query in queries for name in re.findall(r"ktriage_\w+", query)} == set(METRICS)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    # Each table column has a name, and each name a query.
    (table,) = (panel for panel in board["panels"] if panel["type"] == "table")
    (renamed,) = (
        one["options"]["renameByName"] for one in table["transformations"] if one["id"] == "organize"
    )
    shown = {f"Value #{target['refId']}" for target in table["targets"]}
    assert shown == {column for column in renamed if column.startswith("Value")}


def test_a_chat_gets_the_lines_on_the_fleet(call: Caller) -> None:
    asked, summary, _ = SUMMARIES["plan"]
    target = run_target(storage_path(f"{call.home}/results"), "plan", NOON, "t")
    names = {"names": dict.fromkeys(asked["clusters"], "a_b*c")}
    commit(JobResult(target, "plan", NOON, "0.1.0", asked | names, summary))
    ended = call("ktriage", "pipeline", "report", "results", "--out", "channel.md")
    assert ended.status == 0, ended.err
    lines = (call.home / "channel.md").read_text().splitlines()
    assert 3 < len(lines) <= 12 and "a\\_b\\*c" in lines[2]
    assert any(line.startswith("- plan, 2026-01-31 12:00 UTC: ranking") for line in lines)


def test_old_runs_are_removed_with_their_rows_and_the_newest_stay(call: Caller) -> None:
    root = storage_path(f"{call.home}/results")
    runs = []
    for day, job in enumerate(("plan", "plan", "fixes", "plan")):
        at = NOON + timedelta(days=day)
        target = run_target(root, job, at, "t")
        rows = pa.Table.from_pylist([{"run_id": target.run_id, "cluster_id": "c"}], PLANS.schema)
        append(root, PLANS, partial(pa.concat_tables, [rows]))
        commit(JobResult(target, job, at, "0.1.0", {}, {}))
        runs.append(target.run_id)
    ended = call("ktriage", "pipeline", "prune", "results", "--keep", "2")
    assert (ended.status, ended.out) == (0, "1 run removed\n"), ended.err
    assert [result.target.run_id for result in read_results(root)] == runs[1:]
    assert set(rows_by_run(root, PLANS)) == set(runs[1:])
    again = call("ktriage", "pipeline", "prune", "results", "--keep", "2")
    assert (again.status, again.out) == (0, "0 runs removed\n")
