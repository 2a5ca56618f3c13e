"""Records of the metadata log: the controllers' payloads, and the control records of the quorum (KIP-595)."""

from __future__ import annotations

from typing import Any, NamedTuple

from recovery.membership.voters import VoterSet


class LeaderChangeMessage(NamedTuple):
    """The first record of an epoch. When it is committed, everything before it is."""

    leader: int
    voters: tuple[int, ...]


class KRaftVersionRecord(NamedTuple):
    """The kraft.version from here on."""

    level: int


class VotersRecord(NamedTuple):
    """The voter set in force from here on, committed or not."""

    voters: VoterSet


class NoOpRecord(NamedTuple):
    """An idle leader writes one every ``metadata.max.idle.interval.ms``."""


class MetadataRecord(NamedTuple):
    """The payload of a controller; the quorum does not read it."""

    payload: Any


RecordBody = LeaderChangeMessage | KRaftVersionRecord | VotersRecord | NoOpRecord | MetadataRecord


class LogRecord(NamedTuple):
    """One record with the epoch of the leader that wrote it."""

    epoch: int
    body: RecordBody


class Snapshot(NamedTuple):
    """Everything below offset ``end``; the last record below it is of ``epoch``.

    ``payload_at`` is the offset of the newest payload in it; -1, and ``payload`` None, if there is none.
    ``voters`` is None without a VotersRecord below ``end``.
    """

    end: int
    epoch: int
    payload: Any
    payload_at: int
    voters: VoterSet | None
    kraft_version: int


EMPTY = Snapshot(0, 0, None, -1, None, 0)
"""The snapshot of a log that starts at offset 0."""
