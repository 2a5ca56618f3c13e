"""Metadata logs that are copied while they are read: every record once, and none that is not whole."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pipeline.watch.log_part import ShippedPart, read_part
from pipeline.watch.record_columns import BEGINS, SCHEMA
from pipeline.watch.shipped_log import ShippedLog, cluster_directories
from pipeline.watch.watch_progress import StreamOffset, from_json, to_json
from recovery.metadata_log.records import ConfigRecord, ResourceType
from tests.shipped_metadata_logs import (
    BEGAN_MS,
    ISR_GROWS,
    LOSES_LEADER,
    LogWriter,
    append_incidents,
    change,
    topics,
)
from tests.unit.log_segments.segments import batch

NAMES = ["offset", "batch", "kind", "record"]
MOST = 1 << 30
GZIP = 1


class Reader:
    """Follows one log as the source does; :meth:`restart` forgets all but the offset."""

    def __init__(self, path: Path, most_bytes: int = MOST) -> None:
        self.path = path
        self._most = most_bytes
        self.offset: StreamOffset = {}
        self.restart()

    def restart(self) -> None:
        self._log = ShippedLog(self.path, min(self._most, 1 << 18))
        self.offset = from_json(json.loads(json.dumps(to_json(self.offset))))

    def read(self) -> list[dict[str, Any]]:
        """The rows of one micro-batch."""
        start = self.offset.get("c")
        end = self._log.latest(start, self._most)
        self.offset = {"c": end}
        if not end.generation:
            return []
        batches = read_part(ShippedPart("c", self.path, start, end), NAMES)
        return [row for batch in batches for row in batch.to_pylist()]

    @property
    def problem(self) -> str:
        return self.offset["c"].problem or ""


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    written = LogWriter(tmp_path / "c")
    written.append(*topics())
    append_incidents(written, 1, 20)
    return written


def offsets(rows: list[dict[str, Any]]) -> list[int]:
    return [row["offset"] for row in rows if row["kind"] != BEGINS]


@pytest.mark.parametrize("seed", range(4))
def test_every_record_of_a_growing_log_is_read_once(log: LogWriter, seed: int) -> None:
    """Files grow by any number of bytes, and the reader starts again at any time."""
    rng = random.Random(seed)
    reader = Reader(log.directory, most_bytes=rng.choice((1, 300, MOST)))
    found: list[dict[str, Any]] = []
    for _ in range(3):
        for size in sorted(rng.sample(range(log.size), 8)):
            log.write(size)
            found += reader.read()
            if rng.random() < 0.5:
                reader.restart()
        log.roll()
        append_incidents(log, seed, 5)
    log.write()
    for _ in range(100):
        found += reader.read()
    assert [row["kind"] for row in found].count(BEGINS) == 1
    assert offsets(found) == list(range(log.offset))
    assert reader.problem == ""
    assert reader.offset["c"].unread == 0


def test_what_is_left_and_how_far_behind_is_known_while_a_part_is_read(log: LogWriter) -> None:
    log.write()
    reader = Reader(log.directory, most_bytes=400)
    reader.read()
    at = reader.offset["c"]
    assert at.unread > 0
    assert at.lag_ms == BEGAN_MS + log.written[-1][0] * 1000 - at.time_ms > 0


def test_a_damaged_batch_is_not_passed_and_is_named(log: LogWriter) -> None:
    log.write()
    path = next(log.directory.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    reader = Reader(log.directory)
    read = offsets(reader.read())
    assert read == list(range(log.written[-1][0]))
    log.roll()
    path.write_bytes(data)
    log.append(change(ISR_GROWS))
    log.write()
    assert reader.read() == []
    assert "checksum" in reader.problem
    path.write_bytes(bytes(data[:-5]) + bytes([data[-5] ^ 1]) + bytes(data[-4:]))
    assert offsets(reader.read())[-1] == log.offset - 1
    assert reader.problem == ""


def test_a_compressed_batch_is_not_passed_and_is_named(log: LogWriter) -> None:
    """Which no controller writes: what is in it would be left out without a word."""
    log.write()
    path = next(log.directory.glob("*.log"))
    end = log.offset
    with path.open("ab") as file:
        file.write(batch(end, attributes=GZIP, payload=b"records"))
    reader = Reader(log.directory)
    assert offsets(reader.read()) == list(range(end))
    assert f"the batch at offset {end} is compressed" in reader.problem


def test_a_missing_segment_is_waited_for(log: LogWriter) -> None:
    log.write()
    reader = Reader(log.directory)
    reader.read()
    log.append(change(LOSES_LEADER))
    (missing,) = log.directory.glob("*.log")
    before = missing.read_bytes()
    log.roll()
    whole = missing.read_bytes()
    missing.write_bytes(before)
    log.append(change(ISR_GROWS))
    log.write()
    assert reader.read() == []
    assert "missing" in reader.problem
    missing.write_bytes(whole)
    assert offsets(reader.read()) == [log.offset - 2, log.offset - 1]


def test_nothing_behind_a_batch_that_is_missing_within_a_segment_is_read(log: LogWriter) -> None:
    log.write()
    path = next(log.directory.glob("*.log"))
    end, before = log.offset, path.stat().st_size
    log.append(change(LOSES_LEADER))
    log.write()
    behind = path.stat().st_size
    log.append(change(ISR_GROWS))
    log.write()
    data = path.read_bytes()
    path.write_bytes(data[:before] + data[behind:])
    reader = Reader(log.directory)
    assert offsets(reader.read()) == list(range(end))
    assert f"offsets {end} to {end} are missing" in reader.problem
    path.write_bytes(data)
    assert offsets(reader.read()) == [end, end + 1]
    assert reader.problem == ""


def test_a_log_that_starts_later_begins_with_the_snapshot(log: LogWriter) -> None:
    at = log.offset
    snapshot = log.snapshot(topics())
    log.roll()
    next(log.directory.glob("*.log")).unlink()
    append_incidents(log, 2, 3)
    log.write()
    rows = Reader(log.directory).read()
    assert (rows[0]["kind"], rows[0]["offset"]) == (BEGINS, at)
    in_snapshot = [row for row in rows[1:] if row["batch"] == -1]
    assert len(in_snapshot) == len(topics())
    assert offsets(rows[1 + len(in_snapshot) :]) == list(range(at, log.offset))
    snapshot.unlink()
    log.snapshot(topics(), whole=False).rename(snapshot)
    reader = Reader(log.directory)
    assert reader.read() == []
    assert "not whole" in reader.problem


def test_a_log_whose_unread_part_is_gone_begins_again_with_a_snapshot(log: LogWriter) -> None:
    log.write()
    reader = Reader(log.directory)
    reader.read()
    (old,) = log.directory.glob("*.log")
    log.append(change(LOSES_LEADER))
    at = log.offset
    log.snapshot(topics())
    log.roll()
    old.unlink()
    log.append(change(ISR_GROWS))
    log.write()
    rows = reader.read()
    assert (rows[0]["kind"], rows[0]["offset"]) == (BEGINS, at)
    assert offsets(rows)[-1] == at
    assert reader.read() == []


def test_a_log_that_was_rewritten_is_read_again(log: LogWriter, tmp_path: Path) -> None:
    """A follower's log is cut off where it was not committed, and goes on with other records."""
    log.write()
    reader = Reader(log.directory)
    reader.read()
    other = LogWriter(tmp_path / "c")
    other.append(*topics())
    append_incidents(other, 2, 30)
    other.write()
    rows = reader.read()
    assert rows[0]["kind"] == BEGINS
    assert offsets(rows) == list(range(other.offset))


def test_a_part_whose_files_are_gone_meanwhile_begins_again(log: LogWriter) -> None:
    """After a kill, a micro-batch is repeated; its segments may have been removed."""
    log.write()
    reader = Reader(log.directory)
    reader.read()
    start = reader.offset["c"]
    log.append(change(LOSES_LEADER))
    log.roll()
    log.snapshot(topics())
    reader.read()
    end = reader.offset["c"]
    for path in log.directory.glob("*.log"):
        path.unlink()
    log.append(change(ISR_GROWS))
    log.write()
    rows = [
        row
        for batch in read_part(ShippedPart("c", log.directory, start, end), NAMES)
        for row in batch.to_pylist()
    ]
    assert (rows[0]["kind"], rows[0]["offset"]) == (BEGINS, log.offset - 1)
    assert len(rows) == 1 + len(topics())


def test_the_directory_of_a_cluster_may_be_a_whole_log_dir(tmp_path: Path) -> None:
    LogWriter(tmp_path / "a" / "__cluster_metadata-0")
    LogWriter(tmp_path / "b")
    found = cluster_directories(tmp_path)
    assert found == {"a": tmp_path / "a" / "__cluster_metadata-0", "b": tmp_path / "b"}


def test_a_row_has_what_the_record_sets_and_no_secret(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    log.append(*topics())
    log.append(change(LOSES_LEADER))
    log.append(ConfigRecord(ResourceType.BROKER, "1", "ssl.key.password", "hunter2"))
    log.write()
    end = ShippedLog(log.directory).latest(None, MOST)
    (batch,) = read_part(ShippedPart("c", log.directory, None, end), SCHEMA.names)
    assert batch.schema.equals(SCHEMA)
    rows = batch.to_pylist()
    assert "hunter2" not in str(rows)
    assert (rows[-1]["kind"], rows[-1]["config_key"], rows[-1]["record"]) == (
        "ConfigRecord",
        "ssl.key.password",
        None,
    )
    offline = rows[-2]
    assert offline["kind"] == "PartitionChangeRecord"
    assert (offline["leader"], offline["isr"], offline["elr"], offline["replicas"]) == (-1, [], [1, 2], None)
    configured = next(row for row in rows if row["min_isr"])
    assert (configured["topic"], configured["min_isr"]) == ("t0", "2")
    created = rows[1]
    assert (created["kind"], created["topic"], created["topic_id"]) == (
        "TopicRecord",
        "t0",
        rows[2]["topic_id"],
    )
