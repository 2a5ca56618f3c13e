"""Copies snapshots of the old layout (a JSON manifest and Parquet files for each) into the tables.

The old layout: ``manifests/cluster_id=…/date=…/SNAPSHOT.json`` names the files of a snapshot, below
``partitions/``, ``brokers/`` and ``quorum/``. Its schema had version 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import read_catalog
from pipeline.snapshot.observation import SnapshotKind, check_cluster_id
from pipeline.snapshot.snapshot_writer import SnapshotName, SnapshotWriter
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import is_table, unreadable
from pipeline.tables.schema_conversion import conformed
from pipeline.tables.schemas import BROKER, OBSERVATIONS, PARTITIONS, QUORUM

FORMAT, VERSION = "ktriage.snapshot", 1
BATCH = 20_000
_SCHEMAS = {"partitions": PARTITIONS, "brokers": pa.schema(list(BROKER)), "quorum": pa.schema(list(QUORUM))}


class MigrationResult(NamedTuple):
    """Snapshots that were ``copied``, those that were ``there`` before, and why others are ``broken``."""

    copied: int
    there: int
    broken: tuple[str, ...]


def migrate(source: StoragePath, root: StoragePath) -> MigrationResult:
    """Copies every snapshot below ``source`` that the tables below ``root`` lack, oldest first. Raises
    PipelineError if there is none, or if the tables cannot be written.
    """
    files = sorted(
        (file for file in (source / "manifests").walk() if file.name.endswith(".json")),
        key=lambda file: file.name,
    )
    if not files:
        raise PipelineError(f"{source.uri}: there are no snapshots of the old layout here")
    there: set[tuple[str, str]] = set()
    if is_table(root, OBSERVATIONS):
        there = {one.identity for mine in read_catalog(root).clusters.values() for one in mine}
    copied, known, broken = 0, 0, []
    names = _NewNames({}, {})
    for file in files:
        try:
            manifest = names.renamed(_manifest(file))
            if (manifest["cluster_id"], manifest["snapshot"]) in there:
                known += 1
                continue
            _copy(source, root, manifest)
            copied += 1
        except _Broken as error:
            broken.append(str(error))
    return MigrationResult(copied, known, tuple(broken))


class _NewNames(NamedTuple):
    """A compacted snapshot had a new name, and later changes still name the one that it ``replaced``."""

    replaced: dict[str, str]
    bases: dict[str, str]

    def renamed(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """The manifest with the names of snapshots that exist; manifests have to come in their order."""
        name = manifest["snapshot"]
        if manifest["kind"] == SnapshotKind.FULL:
            self.bases[name] = name
            if manifest.get("replaces"):
                self.replaced[manifest["replaces"]] = name
            return manifest
        previous = self.replaced.get(manifest["previous"], manifest["previous"])
        self.bases[name] = self.bases.get(previous, manifest["base"])
        return {**manifest, "previous": previous, "base": self.bases[name]}


class _Broken(PipelineError):
    """This snapshot cannot be copied; the others can."""


def _manifest(file: StoragePath) -> Mapping[str, Any]:
    try:
        manifest = json.loads(file.read())
        if manifest["format"] != FORMAT or manifest["version"] > VERSION:
            raise _Broken(f"{file.uri}: not a manifest of a snapshot of version {VERSION}")
        check_cluster_id(manifest["cluster_id"])
    except (ValueError, KeyError, TypeError) as error:
        raise _Broken(f"{file.uri}: broken ({type(error).__name__}: {error})") from None
    else:
        found: Mapping[str, Any] = manifest
        return found


def _copy(source: StoragePath, root: StoragePath, manifest: Mapping[str, Any]) -> None:
    began = datetime.fromisoformat(manifest["began"])
    name = SnapshotName(manifest["cluster_id"], manifest["snapshot"], began)
    notes = manifest["notes"]
    with SnapshotWriter(root, name) as writer:
        for batch in _batches(source, manifest, "partitions"):
            writer.partitions(batch)
        writer.brokers = [row for batch in _batches(source, manifest, "brokers") for row in batch.to_pylist()]
        quorum = [row for batch in _batches(source, manifest, "quorum") for row in batch.to_pylist()]
        writer.quorum = quorum[0] if quorum else None
        writer.commit(
            datetime.fromisoformat(manifest["taken_at"]),
            manifest["tool_version"],
            kind=SnapshotKind(manifest["kind"]),
            base=manifest["base"],
            previous=manifest["previous"],
            series=manifest.get("series", ""),
            missed=int(notes.get("missed", "0")),
            leaders_unreachable=int(notes.get("leadersNotTold", "0")),
            silent=tuple(manifest["silent"]),
            hidden=tuple(manifest["hidden"]),
            hidden_more=manifest["unseen"],
            partitions=manifest["partitions"],
            offline=manifest["offline"],
        )


def _batches(source: StoragePath, manifest: Mapping[str, Any], table: str) -> Iterator[pa.RecordBatch]:
    for part in manifest["parts"]:
        if part["table"] != table:
            continue
        place = source / part["path"]
        try:
            with unreadable(place), place.open() as file:
                for batch in pq.ParquetFile(file).iter_batches(BATCH):
                    yield conformed(batch, _SCHEMAS[table])
        except PipelineError as error:
            raise _Broken(str(error)) from None
