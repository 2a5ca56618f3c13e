"""Writes snapshots: the states of the partitions in one commit, then the observations, which make them exist.

The rows of a large cluster wait in a temporary file of this machine until the snapshot is complete: memory use does
not grow with the cluster, and a writer that is stopped before has written nothing. If it is killed between the two
commits, it leaves rows that no observation names, which nobody counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.snapshot.observation import (
    Observation,
    SnapshotKind,
    check_cluster_id,
    day_of,
    snapshot_name,
    table_of,
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


IN_MEMORY = 4 * 2**20
"""Bytes of rows of a snapshot that need no file: a collector of many clusters has as many at once."""


class TakenSnapshot(NamedTuple):
    """A snapshot that is not written yet: its ``row`` in the table of observations, and the rows of its partitions
    in ``spool``, None where it has none. It exists only after :func:`append_snapshots`.
    """

    observation: Observation
    row: Mapping[str, Any]
    spool: IO[bytes] | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of the partitions, with the columns of the snapshot."""
        if self.spool is not None:
            self.spool.seek(0)
            for batch in pa.ipc.open_stream(self.spool):
                yield _with_keys(batch, self.observation)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.spool is not None:
            self.spool.close()


def append_snapshots(root: StoragePath, snapshots: Sequence[TakenSnapshot]) -> None:
    """Writes the rows of all of them in one commit, then their observations in another: from then on they exist.
    Raises PipelineError: none of them exists then.
    """
    with_rows = [one for one in snapshots if one.spool is not None]
    if with_rows:

        def rows() -> pa.RecordBatchReader:
            batches = (batch for one in with_rows for batch in one.batches())
            return pa.RecordBatchReader.from_batches(PARTITION_STATES.schema, batches)

        append(root, PARTITION_STATES, rows, sum(one.spool.tell() for one in with_rows if one.spool))
    if snapshots:
        observations = table_of([one.row for one in snapshots])
        append(root, OBSERVATIONS, lambda: observations)


class SnapshotWriter:
    """Collects the rows of one snapshot for the tables below ``root``.

    Raises PipelineError for a cluster id that cannot be in a directory name, and if the temporary file cannot be
    written.
    """

    def __init__(self, root: StoragePath, name: SnapshotName) -> None:
        check_cluster_id(name.cluster_id)
        self._root = root
        self._name = name
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="ktriage-snapshot-")  # noqa: SIM115  # closed with the writer, or with what it made
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

    def finish(
        self,
        taken_at: datetime,
        tool_version: str,
        *,
        kind: SnapshotKind = SnapshotKind.FULL,
        base: str = "",
        partitions: int | None = None,
        offline: int | None = None,
        **fields: Any,
    ) -> TakenSnapshot:
        """The snapshot, to be appended before the writer is closed. ``fields``: other fields of
        :class:`Observation`.
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
        quorum = None if self.quorum is None else {name.name: None for name in QUORUM} | self.quorum
        row = to_row(observation, brokers=self.brokers, quorum=quorum, elr_enabled=self.elr_enabled)
        return TakenSnapshot(observation, row, self._spool if self._rows else None)

    def commit(self, taken_at: datetime, tool_version: str, **fields: Any) -> Observation:
        """Finishes the snapshot and writes it alone. Raises PipelineError."""
        snapshot = self.finish(taken_at, tool_version, **fields)
        append_snapshots(self._root, [snapshot])
        return snapshot.observation


def failed_snapshot(name: SnapshotName, ended: datetime, reason: str, **fields: Any) -> TakenSnapshot:
    """What records that the cluster was asked and there is no snapshot. Raises PipelineError for a cluster id that
    cannot be in a directory name.
    """
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
    return TakenSnapshot(observation, to_row(observation))


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
