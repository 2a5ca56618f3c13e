"""Runs of ``ktriage pipeline watch`` in a process of their own, and what its tables must have in the end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from pipeline.storage import storage_path
from pipeline.tables.delta_table import read_partitions
from pipeline.tables.schemas import TableDefinition
from pipeline.watch.incident_rows import METADATA_EVENTS, METADATA_INCIDENTS, event_rows, incident_rows
from recovery.metadata_log.incident_fold import FoldState, IncidentFold
from recovery.metadata_log.log_changes import MetadataLogRecord
from recovery.metadata_log.record_codec import encode
from tests.pipeline.brief_java import BRIEF_JAVA
from tests.shipped_metadata_logs import BEGAN_MS, LogWriter, append_incidents, topics
from tests.unit.cli.command_process import command_line, environment

Rows: TypeAlias = list[tuple[Any, ...]]

ONCE = ("--in", "shipped", "--out", "out", "--every", "1s", "--max-mib", "1", "--once")
SECONDS = 240


def new_logs(root: Path) -> dict[str, LogWriter]:
    """The logs of two clusters, in ``shipped``; not yet written."""
    logs = {name: LogWriter(root / "shipped" / name) for name in ("alpha", "beta")}
    for log in logs.values():
        log.append(*topics())
    return logs


def written_logs(root: Path, batches: int) -> dict[str, LogWriter]:
    """With random incidents in so many record batches each."""
    logs = new_logs(root)
    for seed, log in enumerate(logs.values()):
        append_incidents(log, seed, batches)
        log.write()
    return logs


def written_rows(root: Path) -> tuple[Rows, Rows]:
    """The events and the incidents in the tables."""
    return _table_rows(root, METADATA_EVENTS), _table_rows(root, METADATA_INCIDENTS)


def _table_rows(root: Path, table: TableDefinition) -> Rows:
    found = read_partitions(storage_path(str(root / "out")), table, "", (), table.schema)
    return _in_order(row for part in found for row in part.to_pylist())


def expected_rows(logs: dict[str, LogWriter], **directories: str) -> tuple[Rows, Rows]:
    """Each log folded at once, without Spark; ``directories``: by the cluster's id, if that is not its name."""
    events: list[dict[str, Any]] = []
    incidents: list[dict[str, Any]] = []
    for name, log in logs.items():
        fold = IncidentFold(FoldState())
        fold.extend(
            MetadataLogRecord(first + at, BEGAN_MS + first * 1000, first, encode(record))
            for first, records in log.written
            for at, record in enumerate(records)
        )
        named = {"cluster_name": directories.get(name, name)}
        events += [row | named for row in event_rows(name, fold.moments).to_pylist()]
        incidents += [row | named for row in incident_rows(name, fold.ended).to_pylist()]
    return _in_order(events), _in_order(incidents)


def _in_order(rows: Iterable[dict[str, Any]]) -> Rows:
    return sorted((tuple(map(str, row.values())) for row in rows), key=str)


@contextmanager
def watching(root: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """``ktriage pipeline watch`` in a process group of its own, with its Java; it is killed at the end."""
    process = subprocess.Popen(
        command_line("ktriage", "pipeline", "watch", *ONCE, *words),
        cwd=root,
        env=environment(root, SPARK_SUBMIT_OPTS=BRIEF_JAVA),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """The process and its Java."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(ValueError):
        process.communicate(timeout=SECONDS)
