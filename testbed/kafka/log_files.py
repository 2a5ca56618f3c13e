"""Reads a replica's log from the broker's disk, to check what the brokers say over the network.

It works for a dead broker too. Layout: Kafka's documentation, "Message Format", record batch of magic 2: base
offset (int64), batch length (int32), partition leader epoch (int32), magic (int8), CRC (uint32), attributes
(int16), last offset delta (int32).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

from recovery.model import EpochSpan
from testbed.kafka.errors import TestbedError
from testbed.kafka.node import Node

_BATCH = struct.Struct(">qiibIhi")
_BEFORE_LENGTH_ENDS = 12


class ReplicaLogFiles(NamedTuple):
    """One replica's log: ``start`` is the log start offset, ``end`` the log end offset, ``spans`` ascending."""

    start: int
    end: int
    spans: tuple[EpochSpan, ...]

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, -1 for a log without records."""
        return self.spans[-1].epoch if self.spans else -1


def replica_directory(node: Node, topic: str, partition: int) -> Path:
    """The directory of the replica. Raises TestbedError if no log dir has it."""
    for log_dir in node.log_dirs:
        found = log_dir / f"{topic}-{partition}"
        if found.is_dir():
            return found
    raise TestbedError(f"broker {node.id} has no replica of {topic}-{partition}")


def read_log(node: Node, topic: str, partition: int) -> ReplicaLogFiles:
    """The log as it is on the disk now. Raises TestbedError if there is none."""
    directory = replica_directory(node, topic, partition)
    segments = sorted(directory.glob("[0-9]*.log"))
    if not segments:
        raise TestbedError(f"{directory} holds no segment")
    end = int(segments[-1].stem)
    spans: list[EpochSpan] = []
    for segment in segments:
        for epoch, first, after, _position in _batches(segment):
            end = after
            if spans and spans[-1].epoch == epoch:
                spans[-1] = EpochSpan(epoch, spans[-1].start, after)
            else:
                spans.append(EpochSpan(epoch, first, after))
    start = max(int(segments[0].stem), _checkpointed_start(directory, topic, partition))
    visible = (EpochSpan(epoch, max(first, start), after) for epoch, first, after in spans if after > start)
    return ReplicaLogFiles(start, end, tuple(visible))


def cut_log(node: Node, topic: str, partition: int, end: int) -> None:
    """Truncates a dead broker's log at ``end``, as a power loss does when pages were not yet written.

    Index files are deleted, because they may be torn too; checkpoints stay, even if they are ahead of the log.
    Raises TestbedError if the broker runs, or if no batch ends at ``end``.
    """
    if node.is_running:
        raise TestbedError(f"broker {node.id} is running; kill it before its log is cut")
    directory = replica_directory(node, topic, partition)
    for segment in sorted(directory.glob("[0-9]*.log")):
        base = int(segment.stem)
        for suffix in ("index", "timeindex", "txnindex"):
            segment.with_suffix(f".{suffix}").unlink(missing_ok=True)
        if base >= end and base > 0:
            segment.unlink()
            continue
        ends = {base: 0} | {after: position for _epoch, _first, after, position in _batches(segment)}
        size = ends.get(min(end, max(ends)))
        if size is None:
            raise TestbedError(f"{segment}: no batch ends at {end}, only at {sorted(ends)}")
        os.truncate(segment, size)


def _batches(segment: Path) -> list[tuple[int, int, int, int]]:
    """Each batch's epoch, first offset, the offset after it, and where it ends in the file."""
    data = segment.read_bytes()
    found: list[tuple[int, int, int, int]] = []
    position = 0
    while position + _BATCH.size <= len(data):
        base, length, epoch, _magic, _crc, _attributes, last_delta = _BATCH.unpack_from(data, position)
        position += _BEFORE_LENGTH_ENDS + length
        # A killed broker may leave half a batch at the end. It drops it at the next start, so it does not count.
        if length <= 0 or position > len(data):
            break
        found.append((epoch, base, base + last_delta + 1, position))
    return found


def _checkpointed_start(directory: Path, topic: str, partition: int) -> int:
    checkpoint = directory.parent / "log-start-offset-checkpoint"
    if checkpoint.is_file():
        for line in checkpoint.read_text().splitlines()[2:]:
            name, number, offset = line.rsplit(" ", 2)
            if (name, number) == (topic, str(partition)):
                return int(offset)
    return 0
