"""Partitions as an operator would tell them, and snapshots of a cluster over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipeline.snapshot.manifest import Manifest, SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotName, SnapshotWriter, snapshot_name
from pipeline.snapshot.survey_columns import batch_of
from pipeline.storage import StoragePath
from recovery.model import EpochSpan, Lineage, PartitionState, Replica, ReplicaLog, Standing, Survey
from tests.pipeline.survey_strategies import NOON


def partition(
    number: int = 0,
    *,
    topic: str = "orders",
    leader: int = 1,
    assignment: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
    elr: tuple[int, ...] = (),
    min_isr: int = 2,
) -> Survey:
    """Every replica holds the same log, in the log dir /kafka."""
    log = ReplicaLog(4, 100, 0, 100, Lineage(2, (EpochSpan(2, 0, 100),), 0), "/kafka", 1000)
    replicas = tuple(Replica(broker, Standing.ELECTABLE, log) for broker in assignment)
    members = assignment if isr is None else isr
    state = PartitionState(topic, number, "id", leader, 4, assignment, members, elr, (), ())
    return Survey(state, replicas, min_isr)


def broker_row(
    number: int, *, rack: str | None = None, fenced: bool = False, error: str | None = None
) -> dict[str, Any]:
    """A broker with one log dir."""
    directory = {"path": "/kafka", "error": error, "total_bytes": -1, "usable_bytes": -1, "replicas": 1}
    return {
        "id": number,
        "host": "h",
        "port": 9092,
        "rack": rack,
        "fenced": fenced,
        "unanswered": None,
        "log_dirs": [directory],
        "log_dirs_unknown": None,
    }


def quorum_row(leader: int, voters: Sequence[int] = (100, 101, 102)) -> dict[str, Any]:
    """A quorum of those voters."""
    nodes = [
        {"id": n, "directory_id": None, "log_end": 1, "last_fetch_ms": 1, "last_caught_up_ms": 1}
        for n in voters
    ]
    return {"leader": leader, "leader_epoch": 1, "high_watermark": 1, "voters": nodes, "observers": []}


class Diary:
    """A cluster's snapshots, one a minute unless told otherwise."""

    def __init__(self, root: StoragePath, cluster_id: str = "c") -> None:
        self.root = root
        self.cluster_id = cluster_id
        self._base = self._previous = ""

    def write(
        self,
        minute: float,
        told: Sequence[Survey],
        *,
        kind: SnapshotKind = SnapshotKind.FULL,
        brokers: Sequence[dict[str, Any]] = (),
        quorum: dict[str, Any] | None = None,
    ) -> Manifest:
        """A snapshot at that minute after noon; for changes, ``told`` is what has changed."""
        at = minute_of(minute)
        name = SnapshotName(self.cluster_id, snapshot_name(at, "t"), at)
        with SnapshotWriter(self.root, name) as writer:
            writer.partitions(batch_of(told, {}))
            writer.rows("brokers", list(brokers))
            writer.rows("quorum", [quorum] if quorum else [])
            changes = kind is SnapshotKind.CHANGES
            manifest = writer.commit(
                at,
                "0.1.0",
                kind=kind,
                base=self._base if changes else "",
                previous=self._previous if changes else "",
            )
        self._previous = manifest.snapshot
        self._base = self._base if changes else manifest.snapshot
        return manifest


def rot_pages(file: Path, column: str) -> str:
    """Overwrites the pages of a column of the file's first row group; the footer stays sound. Returns the file's
    name.
    """
    group = pq.read_metadata(file).row_group(0)
    chunk = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == column)
    content = bytearray(file.read_bytes())
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    content[first : first + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    file.write_bytes(content)
    return file.name


def minute_of(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def offline(number: int) -> Survey:
    return partition(number, leader=-1, isr=())


def rewrite(root: StoragePath, change: Any) -> None:
    """Changes the rows of the only snapshot, and its size in the manifest."""
    file = next(f for f in (root / "partitions").walk())
    table = change(pq.read_table(file.path))
    pq.write_table(table, file.path)
    manifest = next(f for f in (root / "manifests").walk())
    told = json.loads(manifest.read())
    for part in told["parts"]:
        if part["table"] == "partitions":
            part["size"] = file.size()
    manifest.write(json.dumps(told).encode())
