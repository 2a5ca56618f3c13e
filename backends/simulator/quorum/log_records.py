"""What lies in the metadata log: the controllers' payloads, and the quorum's own control records (KIP-595)."""

from __future__ import annotations

from typing import Any, NamedTuple

from recovery.membership.voters import VoterSet


class LeaderChangeMessage(NamedTuple):
    """LeaderChangeMessage: the first record of an epoch. With it committed, everything before it is."""

    leader: int
    voters: tuple[int, ...]


class KRaftVersionRecord(NamedTuple):
    """KRaftVersionRecord."""

    level: int


class VotersRecord(NamedTuple):
    """VotersRecord: the set that is in force from here on, committed or not."""

    voters: VoterSet


class NoOpRecord(NamedTuple):
    """NoOpRecord: an idle leader writes one every ``metadata.max.idle.interval.ms``."""


class MetadataRecord(NamedTuple):
    """What a controller appended; opaque here."""

    payload: Any


RecordBody = LeaderChangeMessage | KRaftVersionRecord | VotersRecord | NoOpRecord | MetadataRecord


class LogRecord(NamedTuple):
    """One record with the epoch of the leader that wrote it."""

    epoch: int
    body: RecordBody


class Snapshot(NamedTuple):
    """Everything below offset ``end``, whose last record is of ``epoch``.

    ``payload_at`` is the offset of the newest payload in it, -1 and None where there is none; ``voters`` is None
    where no VotersRecord lies below it.
    """

    end: int
    epoch: int
    payload: Any
    payload_at: int
    voters: VoterSet | None
    kraft_version: int


EMPTY = Snapshot(0, 0, None, -1, None, 0)
"""What lies below a log that begins at offset 0."""
