"""Writes a snapshot: the states of the partitions in one commit, then the observation, which makes it exist.

The rows wait in a temporary file of this machine until the snapshot is complete: memory use does not grow with the
cluster, and a writer that is stopped before has written nothing. If it is killed between the two commits, it leaves
rows that no observation names, which nobody counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import IO, Any, NamedTuple

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.snapshot.observation import (
    Observation,
    SnapshotKind,
    check_cluster_id,
    day_of,
    snapshot_name,
    to_row,
)
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import append
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES, PARTITIONS, QUORUM


class SnapshotName(NamedTuple):
    """The name of a snapshot and its cluster; ``began`` is when its taking began."""

    cluster_id: str
    snapshot: str
    began: datetime


def new_name(cluster_id: str, began: datetime, token: str) -> SnapshotName:
    """The name of a new snapshot; ``token`` distinguishes two of the same moment."""
    return SnapshotName(cluster_id, snapshot_name(began, token), began)


class SnapshotWriter:
    """Writes one snapshot into the tables below ``root``.

    Raises PipelineError for a cluster id that cannot be in a directory name, and if the temporary file cannot be
    written.
    """

    def __init__(self, root: StoragePath, name: SnapshotName) -> None:
        check_cluster_id(name.cluster_id)
        self._root = root
        self._name = name
        self._spool: IO[bytes] = tempfile.TemporaryFile(prefix="ktriage-snapshot-")  # noqa: SIM115  # closed with the writer
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_stream(self._spool, PARTITIONS, options=options)
        self._rows = self._offline = 0
        self.brokers: list[dict[str, Any]] = []
        self.quorum: dict[str, Any] | None = None
        self.elr_enabled: bool | None = None

    def __enter__(self) -> SnapshotWriter:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._spool.close()

    def partitions(self, batch: pa.RecordBatch) -> None:
        """Adds states of partitions. Raises PipelineError."""
        try:
            self._writer.write_batch(batch)
        except OSError as error:
            raise PipelineError(f"{tempfile.gettempdir()}: {error.strerror or error}") from None
        self._rows += batch.num_rows
        leaders = batch.column("leader").to_numpy(zero_copy_only=False)
        self._offline += int((leaders == -1).sum())

    def commit(
        self,
        taken_at: datetime,
        tool_version: str,
        *,
        kind: SnapshotKind = SnapshotKind.FULL,
        base: str = "",
        partitions: int | None = None,
        offline: int | None = None,
        **fields: Any,
    ) -> Observation:
        """Writes the rows, then the observation: from then on the snapshot exists. ``fields``: other fields of
        :class:`Observation`. Raises PipelineError.
        """
        cluster_id, snapshot, began = self._name
        observation = Observation(
            snapshot,
            cluster_id,
            kind,
            began,
            taken_at,
            base or snapshot,
            self._rows if partitions is None else partitions,
            self._offline if offline is None else offline,
            self._rows,
            tool_version,
            **fields,
        )
        self._writer.close()
        if self._rows:
            append(self._root, PARTITION_STATES, lambda: self._spooled(observation), self._spool.tell())
        quorum = None if self.quorum is None else {name.name: None for name in QUORUM} | self.quorum
        row = to_row(observation, brokers=self.brokers, quorum=quorum, elr_enabled=self.elr_enabled)
        append(self._root, OBSERVATIONS, lambda: row)
        return observation

    def _spooled(self, observation: Observation) -> pa.RecordBatchReader:
        self._spool.seek(0)
        rows = (_with_keys(batch, observation) for batch in pa.ipc.open_stream(self._spool))
        return pa.RecordBatchReader.from_batches(PARTITION_STATES.schema, rows)


def write_failure(root: StoragePath, name: SnapshotName, ended: datetime, reason: str, **fields: Any) -> None:
    """Records that the cluster was asked and there is no snapshot. Raises PipelineError."""
    check_cluster_id(name.cluster_id)
    observation = Observation(
        name.snapshot,
        name.cluster_id,
        SnapshotKind.FAILED,
        name.began,
        ended,
        name.snapshot,
        failure=reason,
        **fields,
    )
    append(root, OBSERVATIONS, lambda: to_row(observation))


def _with_keys(batch: pa.RecordBatch, observation: Observation) -> pa.RecordBatch:
    values: Sequence[Any] = (
        observation.cluster_id,
        day_of(observation.base),
        observation.snapshot,
        observation.base,
        observation.kind.value,
        observation.taken_at,
    )
    fields = list(PARTITION_STATES.schema)[: len(values)]
    columns: Iterator[pa.Array] = (
        pa.repeat(pa.scalar(value, field.type), batch.num_rows)
        for value, field in zip(values, fields, strict=True)
    )
    return pa.RecordBatch.from_arrays([*columns, *batch.columns], schema=PARTITION_STATES.schema)
