"""A job reads the manifests that decide the newest state, and gets what it would get if it had read them all."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import pipeline.snapshot_sources as sources
from pipeline.errors import PipelineError
from pipeline.snapshot.manifest import Manifest, SnapshotKind, manifest_path
from pipeline.snapshot.read_catalog import WINDOW, read_catalog
from pipeline.snapshot.snapshot_writer import SnapshotName, SnapshotWriter, snapshot_name
from pipeline.storage import StoragePath, storage_path
from tests.pipeline.survey_strategies import NOON


def _commit(root: StoragePath, cluster_id: str, minute: float, taking: float = 0, **fields: Any) -> Manifest:
    began = NOON + timedelta(minutes=minute)
    name = SnapshotName(cluster_id, snapshot_name(began, fields.pop("mark", "t")), began)
    with SnapshotWriter(root, name) as writer:
        return writer.commit(began + timedelta(minutes=taking), "0.1.0", **fields)


def _series(root: StoragePath, cluster_id: str, minutes: range, mark: str = "t") -> list[Manifest]:
    """A full snapshot each hour, and changes in between."""
    taken: list[Manifest] = []
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
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read."""
    found: list[str] = []
    read = StoragePath.read

    def counted(place: StoragePath) -> bytes:
        found.append(place.path)
        return read(place)

    monkeypatch.setattr(StoragePath, "read", counted)
    return found


def test_a_job_reads_the_last_hours_of_a_lake_and_not_its_years(tmp_path: Path, reads: list[str]) -> None:
    root = storage_path(str(tmp_path))
    for name in ("a", "b", "c"):
        _series(root, name, range(700))
    for at in (None, NOON + timedelta(minutes=350)):
        reads.clear()
        found = sources.find([root], at=at)
        assert [chain.newest.taken_at for chain in found.chains] == [at or NOON + timedelta(minutes=699)] * 3
        assert len(reads) <= 3 * 3 * WINDOW
    reads.clear()
    sources.find([root], ["b"])
    assert reads and all("cluster_id=b" in path for path in reads)


def test_a_snapshot_that_took_long_is_the_newest_when_it_ended_last(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for half in range(2 * WINDOW):
        _commit(root, "c", half / 2)
    slow = _commit(root, "c", WINDOW / 3, WINDOW, mark="slow")
    (chain,) = sources.find([root]).chains
    assert chain.newest == slow


def test_retention_of_one_cluster_reads_no_other(tmp_path: Path, reads: list[str]) -> None:
    root = storage_path(str(tmp_path))
    for name in ("a", "b"):
        _series(root, name, range(5))
    assert list(read_catalog(root, ["b"]).clusters) == ["b"]
    assert len(reads) == 5 and all("cluster_id=b" in path for path in reads)


def _damage(random: Random, root: StoragePath, taken: list[Manifest]) -> None:
    for manifest in random.sample(taken, random.randrange(3)):
        file = root / manifest_path(manifest)
        content = random.choice((None, b'{"form', b"{}"))
        if content is None:
            file.remove()
        else:
            file.write(content)


def _found(root: StoragePath, at: datetime | None) -> object:
    try:
        return sources.find([root], at=at)
    except PipelineError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_missing_the_answer_is_that_of_the_whole_lake(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    root = storage_path(str(tmp_path))
    taken = _series(root, "c", range(random.randrange(1, 250)))
    if random.random() < 0.5:
        begins = random.randrange(300)
        taken += _series(root, "c", range(begins, begins + random.randrange(1, 90)), mark="u")
    for _ in range(random.randrange(3)):
        taken.append(_commit(root, "c", random.randrange(300), random.randrange(50), mark="alone"))
    for round_ in range(4):
        _damage(random, root, taken)
        at = None if round_ % 2 else NOON + timedelta(minutes=random.randrange(-5, 320))
        few = _found(root, at)
        with monkeypatch.context() as patch:
            patch.setattr(sources, "read_newest", lambda root, ids, _: read_catalog(root, ids))
            assert few == _found(root, at), (at, round_)
