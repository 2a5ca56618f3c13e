"""A plan that is made of a snapshot decides as ``ktriage plan`` does on the same cluster, with less evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backends.simulator.scenario.files import names
from pipeline.plan.decide_rows import cluster_facts, planned
from pipeline.snapshot.newest_observations import newest_observations
from pipeline.snapshot.state_sources import find
from pipeline.storage import storage_path
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from tests.repetitions import repetitions
from tests.unit.cli.command_process import Caller
from tests.unit.pipeline.read_states import batches_of


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def of_snapshot(call: Caller, strategy: Strategy, *simulated: str) -> dict[str, Mapping[str, Any]]:
    assert call("ktriage", "snapshot", *simulated, "--out", "lake").status in (0, 1)
    sources = find([storage_path(f"{call.home}/lake")])
    facts = {name: cluster_facts(row) for name, row in newest_observations(sources).items()}
    rows = [
        row
        for read in batches_of(sources)
        for batch in planned(
            read, Ranking.LAST_RECORD, strategy, dict.fromkeys((None, *facts), *facts.values())
        )
        for row in batch.to_pylist()
    ]
    return {f"{row['topic']}-{row['partition']}": row for row in rows if row["verdict"] != "already online"}


def of_cluster(call: Caller, strategy: Strategy, *simulated: str) -> dict[str, Mapping[str, Any]]:
    words = ("ktriage", "plan", *simulated, "--strategy", strategy.value, "--output", "json", "plan.json")
    document = json.loads(call(*words).out)
    return {
        f"{row['topic']}-{row['partition']}": row
        for row in (*document["partitions"], *document["notElected"])
    }


# Of the others a snapshot and a plan take minutes.
SMALL = tuple(name for name in names() if name not in ("offline-2000", "partitions-200000"))


@pytest.mark.parametrize("name", SMALL)
def test_it_decides_as_the_cluster_is_decided_or_waits_for_more_evidence(call: Caller, name: str) -> None:
    for seed in range(1, 1 + repetitions(1, 20)):
        simulated = ("--simulate", name, "--seed", str(seed))
        stored = of_snapshot(call, Strategy.BALANCED, *simulated)
        live = of_cluster(call, Strategy.BALANCED, *simulated)
        assert stored.keys() == live.keys()
        for tp, row in stored.items():
            elected = live[tp].get("designatedLeader")
            if row["verdict"] == "elect":
                assert row["chosen"] == elected, (seed, row, live[tp])
            elif elected is None:
                assert row["verdict"] == live[tp]["verdict"], (seed, row, live[tp])
                assert set(row["waits_for"]) >= set(live[tp]["waitsFor"]), (seed, row, live[tp])
            else:
                # What decides here is in the metadata log, which a snapshot does not have.
                assert "the metadata log" in row["reason"], (seed, row, live[tp])


def test_a_disk_that_failed_is_nobody_to_wait_for(call: Caller) -> None:
    stored = of_snapshot(call, Strategy.BALANCED, "--simulate", "disk-failure")
    refused = [row for row in stored.values() if row["verdict"] == "refused"]
    assert refused and all(2 not in row["waits_for"] for row in stored.values())
    assert all("the disk of broker 2 FAILED" in row["reason"] for row in refused)


def test_committed_records_are_not_cut_off_by_a_plan_that_balanced_makes(call: Caller) -> None:
    stored = of_snapshot(call, Strategy.BALANCED, "--simulate", "stale-long-tail")
    (row,) = stored.values()
    assert (row["verdict"], row["acknowledged"]) == ("refused", "500+ committed")
    (by_length,) = of_snapshot(call, Strategy.AGGRESSIVE, "--simulate", "stale-long-tail").values()
    assert (by_length["verdict"], by_length["acknowledged"]) == ("elect", "500+ committed")
