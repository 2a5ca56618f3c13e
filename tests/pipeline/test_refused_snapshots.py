"""Snapshots that cannot be read are refused in one clear line."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.errors import PipelineError
from pipeline.snapshot_schema import VERSION
from pipeline.snapshot_sources import find
from pipeline.storage import storage_path
from tests.pipeline.partition_histories import offline, rewrite
from tests.pipeline.survey_strategies import NOON, write


def test_a_missing_column_is_one_clear_line(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(0)])
    rewrite(root, lambda table: table.drop_columns(["isr"]))
    with pytest.raises(PipelineError, match="the column isr is missing"):
        find([root])


def test_a_column_of_another_type_is_one_clear_line(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(0)])
    rewrite(root, lambda table: table.set_column(1, "partition", pa.array(["zero"])))
    with pytest.raises(PipelineError, match="the column partition is string, not int32"):
        find([root])


def test_a_newer_schema_is_one_clear_line(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(0)])
    manifest = next(f for f in (root / "manifests").walk())
    manifest.write(json.dumps(json.loads(manifest.read()) | {"version": VERSION + 1}).encode())
    with pytest.raises(
        PipelineError, match=f"schema version {VERSION + 1}; this version of ktriage reads up to"
    ):
        find([root])


def test_an_older_snapshot_does_not_pass_for_one_that_cannot_be_used(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for hour in range(3):
        write(root, "c", [offline(0)], NOON + timedelta(hours=hour))
    for file in (root / "manifests").walk():
        if "T130000" in file.name:
            file.write(json.dumps(json.loads(file.read()) | {"version": VERSION + 1}).encode())
    # In the middle it is in nobody's way; as the newest of its time it is.
    assert find([root]).chains[0].newest.taken_at == NOON + timedelta(hours=2) and not find([root]).refused
    assert find([root], at=NOON).chains[0].newest.taken_at == NOON
    with pytest.raises(PipelineError, match="schema version"):
        find([root], at=NOON + timedelta(minutes=90))


def test_a_cluster_that_two_places_hold_is_one_clear_line(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(storage_path(str(tmp_path / name)), "c", [offline(0)])
    with pytest.raises(PipelineError, match="cluster c is in two directories"):
        find([storage_path(str(tmp_path / "a")), storage_path(str(tmp_path / "b"))])
