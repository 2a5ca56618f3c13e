"""The tables of the watch: a micro-batch that is carried out twice is written once."""

from __future__ import annotations

import zlib
from pathlib import Path

import orjson
import pytest

from pipeline.errors import PipelineError
from pipeline.storage import storage_path
from pipeline.tables.delta_table import create, read_partitions
from pipeline.watch.fold_state import read_state, write_state
from pipeline.watch.incident_rows import METADATA_EVENTS, event_rows
from pipeline.watch.watch_checkpoint import WatchCheckpoint
from pipeline.watch.watch_query import _prepare, append_once
from recovery.metadata_log.incident_fold import FoldState, LogGap


def test_a_micro_batch_is_in_a_table_once(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    create(root, METADATA_EVENTS)
    for query, batch_id, goes_on in (("q", 0, 7), ("q", 1, 8), ("q", 1, 8), ("q", 0, 7), ("other", 0, 9)):
        rows = event_rows("c", (), [LogGap(1, goes_on, 1_795_000_000_000)])
        append_once(root, METADATA_EVENTS, rows, query, batch_id)
    found = read_partitions(root, METADATA_EVENTS, "", (), METADATA_EVENTS.schema)
    assert sorted(offset for part in found for offset in part["offset"].to_pylist()) == [7, 8, 9]


def test_a_micro_batch_starts_from_the_state_before_it_each_time(tmp_path: Path) -> None:
    place = storage_path(str(tmp_path / "c"))
    assert read_state(place, 0) == FoldState()
    for batch_id in (0, 3, 3, 4):
        write_state(place, batch_id, FoldState(reported_until=batch_id))
    assert read_state(place, 4).reported_until == 3
    assert read_state(place, 5).reported_until == 4
    assert len(list(place.walk())) == 2


def test_a_task_of_an_attempt_that_was_given_up_finds_no_empty_state(tmp_path: Path) -> None:
    place = storage_path(str(tmp_path / "c"))
    for batch_id in (0, 1, 2):
        write_state(place, batch_id, FoldState(reported_until=batch_id))
    # The state before micro-batch 1 is removed.
    with pytest.raises(PipelineError, match="micro-batch 1 is over"):
        read_state(place, 1)


def test_a_state_of_an_earlier_version_is_not_taken_for_one_of_the_same_topics(tmp_path: Path) -> None:
    place = storage_path(str(tmp_path / "c"))
    write_state(place, 0, FoldState(reported_until=7))
    (file,) = place.walk()
    fields = orjson.loads(zlib.decompress(file.read()))
    file.write(zlib.compress(orjson.dumps(fields | {"version": 1})))
    with pytest.raises(
        PipelineError, match="states of another version of ktriage: name another directory by --out"
    ):
        read_state(place, 1)


def test_a_checkpoint_with_several_states_of_each_cluster_is_refused(tmp_path: Path) -> None:
    out = storage_path(str(tmp_path / "out"))
    WatchCheckpoint.below(out).of_shards.make()
    with pytest.raises(PipelineError, match="watch-checkpoint/folds: the checkpoint has states of another"):
        _prepare(out)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["watch-checkpoint"]
