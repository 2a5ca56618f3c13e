"""Snapshots that cannot be read are refused in one clear line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.errors import PipelineError
from pipeline.snapshot.state_sources import find
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.schemas import OBSERVATIONS, VERSION
from tests.pipeline.partition_histories import offline, rewrite
from tests.pipeline.survey_strategies import NOON, write


def of_a_later_version(root: StoragePath, part: str) -> None:
    """Marks the observations with that text in their names."""

    def mark(rows: pa.Table) -> pa.Table:
        mine = pc.match_substring(rows["snapshot"], part)
        version = pc.if_else(mine, VERSION + 1, rows["schema_version"]).cast(pa.int32())
        return rows.set_column(rows.schema.get_field_index("schema_version"), "schema_version", version)

    rewrite(root, mark, OBSERVATIONS)


def test_a_newer_schema_is_one_clear_line(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(0)])
    of_a_later_version(root, "")
    with pytest.raises(
        PipelineError, match=f"schema version {VERSION + 1}; this version of ktriage reads up to"
    ):
        find([root])


def test_an_older_snapshot_does_not_pass_for_one_that_cannot_be_used(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for hour in range(3):
        write(root, "c", [offline(0)], NOON + timedelta(hours=hour))
    of_a_later_version(root, "T130000")
    # In the middle it is in nobody's way; as the newest of its time it is.
    assert find([root]).chains[0].newest.taken_at == NOON + timedelta(hours=2) and not find([root]).refused
    assert find([root], at=NOON).chains[0].newest.taken_at == NOON
    with pytest.raises(PipelineError, match="schema version"):
        find([root], at=NOON + timedelta(minutes=90))


def test_a_path_that_the_tables_cannot_have_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="a path of Delta tables cannot have a % in it"):
        write(storage_path(str(tmp_path / "a%20b")), "c", [offline(0)])


def test_a_cluster_that_two_places_hold_is_one_clear_line(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(storage_path(str(tmp_path / name)), "c", [offline(0)])
    with pytest.raises(PipelineError, match="cluster c is in two directories"):
        find([storage_path(str(tmp_path / "a")), storage_path(str(tmp_path / "b"))])
