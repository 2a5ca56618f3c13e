"""What a watch has written is shown like the result of a job, while it is still running."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.results import JobResult, commit, run_target
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import append, create
from pipeline.watch.incident_rows import TABLES, event_rows, incident_rows
from pipeline.watch.watch_query import with_cluster_ids
from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.records import MetadataRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.pipeline.survey_strategies import NOON
from tests.unit.cli.command_process import Caller
from tests.unit.pipeline.test_incident_rows import TOPIC_ID, reported
from tests.unit.pipeline.test_pipeline_report import SUMMARIES

ID = "4L6g3nShT-eMCtK--X86sw"
LED, GONE, BACK = (
    Registration((1, 2), (1,), 1),
    PartitionChange(leader=-1, isr=()),
    PartitionChange(leader=2, isr=(2,)),
)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def write_incidents(root: StoragePath) -> None:
    """Partition 3 is offline for two milliseconds, partition 4 still is."""
    first: list[MetadataRecord] = [TopicRecord("orders", TOPIC_ID)]
    first += [PartitionRecord(TOPIC_ID, number, LED) for number in (3, 4)]
    fold = reported(
        first,
        [PartitionChangeRecord(TOPIC_ID, number, GONE) for number in (3, 4)],
        [],
        [PartitionChangeRecord(TOPIC_ID, 3, BACK)],
    )
    tables: tuple[pa.Table, ...] = (
        event_rows("production", fold.moments),
        incident_rows("production", fold.ended),
    )
    for definition, rows in zip(TABLES, tables, strict=True):
        named = with_cluster_ids(rows, {"production": ID})
        append(root, definition, partial(pa.table, named))


def test_what_is_open_and_what_has_ended_is_shown_with_its_exact_time(call: Caller) -> None:
    write_incidents(storage_path(f"{call.home}/lake"))
    for place in ("lake", "lake/watch"):
        ended = call("ktriage", "pipeline", "show", place, "--output", "json")
        assert ended.status == 0, ended.err
        told = json.loads(ended.out)
        (now,), (topic,) = told["summary"]["open"], told["summary"]["topics"]
        assert told["job"] == "watch" and told["result"].endswith("lake/watch")
        assert (now["cluster_id"], now["cluster_name"], now["partition"]) == (ID, "production", 4)
        assert now["since_exact"] and now["since"] == "2026-01-31T23:59:59.999000+00:00"
        assert (topic["incidents"], topic["unclean_elections"], topic["end_unknown"]) == (1, 1, 0)
        assert topic["minutes"] == pytest.approx(0.002 / 60)
    shown = call("ktriage", "pipeline", "show", "lake")
    assert "1 incident open, 1 ended: 1 by an unclean election" in shown.out and "orders-4" in shown.out


def test_a_report_has_it_beside_the_results_of_jobs(call: Caller) -> None:
    write_incidents(storage_path(f"{call.home}/lake"))
    asked, summary, _ = SUMMARIES["exposure"]
    target = run_target(storage_path(f"{call.home}/lake"), "exposure", NOON, "t")
    commit(JobResult(target, "exposure", NOON, "0.1.0", asked, summary))
    ended = call("ktriage", "pipeline", "report", "lake", "--out", "page.html")
    assert (ended.status, ended.out) == (0, "page.html: exposure, watch\n"), ended.err
    assert f"Cluster {ID} (production)" in (call.home / "page.html").read_text()
    newest = call("ktriage", "pipeline", "show", "lake", "--output", "json")
    assert json.loads(newest.out)["job"] == "watch"
    other = call("ktriage", "pipeline", "show", target.place.uri, "--output", "json")
    assert json.loads(other.out)["job"] == "exposure"


def test_a_watch_that_has_seen_nothing_says_so(call: Caller) -> None:
    for definition in TABLES:
        create(storage_path(f"{call.home}/lake"), definition)
    shown = call("ktriage", "pipeline", "show", "lake")
    assert (shown.status, shown.out.splitlines()[0][:25]) == (0, "0 incidents open, 0 ended"), shown.err
