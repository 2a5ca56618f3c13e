"""A job reads the manifests that decide the newest state, and gets what it would get if it had read them all."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

import pipeline.snapshot.catalog as catalog_module
import pipeline.snapshot.state_sources as sources
from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import read_catalog
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotWriter, new_name
from pipeline.snapshot.upkeep import merge_all
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import DataFile, create, read_file
from pipeline.tables.schemas import OBSERVATIONS
from tests.pipeline.partition_histories import forget
from tests.pipeline.survey_strategies import NOON
from tests.repetitions import repetitions


def _commit(
    root: StoragePath, cluster_id: str, minute: float, taking: float = 0, **fields: Any
) -> Observation:
    began = NOON + timedelta(minutes=minute)
    with SnapshotWriter(root, new_name(cluster_id, began, fields.pop("mark", "t"))) as writer:
        return writer.commit(began + timedelta(minutes=taking), "0.1.0", **fields)


def _series(root: StoragePath, cluster_id: str, minutes: range, mark: str = "t") -> list[Observation]:
    """A full snapshot each hour, and changes in between."""
    taken: list[Observation] = []
    base = ""
    for minute in minutes:
        if not base or minute % 60 == minutes.start % 60:
            taken.append(_commit(root, cluster_id, minute, mark=mark))
            base = taken[-1].snapshot
        else:
            links: dict[str, Any] = {
                "kind": SnapshotKind.CHANGES,
                "base": base,
                "previous": taken[-1].snapshot,
            }
            taken.append(_commit(root, cluster_id, minute, mark=mark, **links))
    return taken


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[DataFile]:
    """The files that were read."""
    found: list[DataFile] = []

    def counted(file: DataFile, schema: Any, *, known: Collection[str] = ()) -> Any:
        found.append(file)
        return read_file(file, schema, known=known)

    monkeypatch.setattr(catalog_module, "read_file", counted)
    return found


def test_a_job_reads_the_last_day_of_a_lake_and_not_its_years(tmp_path: Path, reads: list[DataFile]) -> None:
    root = storage_path(str(tmp_path))
    for name in ("a", "b"):
        for day in range(5):
            _series(root, name, range(day * 1440, day * 1440 + 4))
    for at in (None, NOON + timedelta(days=2)):
        reads.clear()
        found = sources.find([root], at=at)
        assert [chain.newest.taken_at for chain in found.chains] == [at or NOON + timedelta(minutes=5763)] * 2
        assert {file.partition["day"] for file in reads} == {found.chains[0].full.day}
    reads.clear()
    sources.find([root], ["b"])
    assert {file.cluster_id for file in reads} == {"b"}


def test_of_a_cluster_that_is_not_in_the_newest_day_older_days_are_read(
    tmp_path: Path, reads: list[DataFile]
) -> None:
    root = storage_path(str(tmp_path))
    _series(root, "stopped", range(4))
    for day in range(3):
        _series(root, "runs", range(day * 1440, day * 1440 + 4))
    merge_all(root)
    reads.clear()
    newest = {chain.full.cluster_id: chain.newest.taken_at for chain in sources.find([root]).chains}
    assert newest == {"stopped": NOON + timedelta(minutes=3), "runs": NOON + timedelta(minutes=2883)}
    # A file of several clusters too is opened once.
    assert sorted(file.partition["day"] for file in reads) == sorted(
        {file.partition["day"] for file in reads}
    )


def test_a_table_of_the_former_layout_is_named_with_what_to_do(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    former = OBSERVATIONS._replace(partition_by=("cluster_id", "day"))
    create(root, former)
    with pytest.raises(PipelineError, match=r"partitioned by cluster_id, day, .* give another directory"):
        _commit(root, "c", 0)


def test_the_log_of_a_table_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    _series(root, "c", range(2))
    log = tmp_path / "observations" / "_delta_log"
    # Commits that add no file are quickly made.
    for version in range(3, 98):
        (log / f"{version:020d}.json").write_text('{"commitInfo":{}}')
    _series(root, "c", range(60, 77))
    assert (log / "_last_checkpoint").exists()
    # What the checkpoint at version 100 holds is not needed any more.
    for version in range(100):
        (log / f"{version:020d}.json").unlink()
    assert len(read_catalog(root).clusters["c"]) == 2 + 17
    assert DeltaTable((root / "observations").path).version() == 114


def test_a_snapshot_that_took_long_is_the_newest_when_it_ended_last(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for minute in range(20):
        _commit(root, "c", minute)
    slow = _commit(root, "c", 5, 40, mark="slow")
    (chain,) = sources.find([root]).chains
    assert chain.newest == slow


def _found(root: StoragePath, at: datetime | None) -> object:
    try:
        return sources.find([root], at=at)
    except PipelineError as error:
        return str(error)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(repetitions(1, 4)))
def test_whatever_is_missing_the_answer_is_that_of_the_whole_lake(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    root = storage_path(str(tmp_path))
    taken = _series(root, "c", range(690, 690 + random.randrange(1, 70)))
    if random.random() < 0.5:
        begins = 690 + random.randrange(60)
        taken += _series(root, "c", range(begins, begins + random.randrange(1, 40)), mark="u")
    for _ in range(random.randrange(3)):
        taken.append(_commit(root, "c", 690 + random.randrange(90), random.randrange(50), mark="alone"))
    for round_ in range(4):
        for lost in random.sample(taken, random.randrange(min(3, len(taken)))):
            taken.remove(lost)
            forget(root, lost)
        at = None if round_ % 2 else NOON + timedelta(minutes=690 + random.randrange(-5, 90))
        few = _found(root, at)
        with monkeypatch.context() as patch:
            patch.setattr(
                sources, "read_newest", lambda root, cluster_ids, **_: read_catalog(root, cluster_ids)
            )
            assert few == _found(root, at), (at, round_)
