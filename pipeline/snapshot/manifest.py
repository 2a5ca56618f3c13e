"""A snapshot's manifest. It is written last: a directory without one is not a snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import quote

from pipeline.errors import PipelineError
from pipeline.snapshot_schema import VERSION
from pipeline.storage import StoragePath

FORMAT = "ktriage.snapshot"

MISSED = "missed"
"""The key of a note: how many snapshots of the series failed directly before this one."""
LEADERS_NOT_TOLD = "leadersNotTold"
"""The key of a note: how many partitions are left out, whose leader the listener that was asked does not reach."""


class SnapshotKind(StrEnum):
    """FULL: every partition. CHANGES: the partitions that differ from the previous snapshot."""

    FULL = "full"
    CHANGES = "changes"


class SnapshotFile(NamedTuple):
    """A file below the root: its ``table``, ``path``, ``rows``, and ``size`` in bytes."""

    table: str
    path: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """``began`` and ``taken_at`` (its end) are timezone-aware, in UTC. ``base`` is the full snapshot on which
    changes are based, ``previous`` the snapshot directly before; both "" for a full one. ``silent`` brokers
    did not answer. ``hidden`` topics could not be seen; ``unseen``: there may be more. ``replaces`` is the
    snapshot whose state a compacted one contains; snapshots based on the former are based on the latter.
    ``series`` is the running ``ktriage snapshot --every`` that took it; "": it was taken alone, and nothing will
    be based on it.
    """

    snapshot: str
    cluster_id: str
    kind: SnapshotKind
    began: datetime
    taken_at: datetime
    parts: tuple[SnapshotFile, ...]
    partitions: int
    offline: int
    tool_version: str
    base: str = ""
    previous: str = ""
    silent: tuple[int, ...] = ()
    hidden: tuple[str, ...] = ()
    unseen: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    version: int = VERSION
    replaces: str = ""
    series: str = ""

    @property
    def date(self) -> str:
        """The day in its path."""
        return self.began.strftime("%Y-%m-%d")

    @property
    def key(self) -> tuple[datetime, str]:
        """Newer is greater."""
        return self.taken_at, self.snapshot

    @property
    def identity(self) -> tuple[str, str]:
        """Its cluster and its name."""
        return self.cluster_id, self.snapshot

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which later snapshots may refer to it."""
        return (self.snapshot, self.replaces) if self.replaces else (self.snapshot,)

    def files(self, table: str) -> tuple[str, ...]:
        """The paths of a table's files below the root."""
        return tuple(part.path for part in self.parts if part.table == table)


def stamp(when: datetime) -> str:
    """The time in a snapshot's name; names sort by time."""
    utc = when.astimezone(UTC)
    return f"{utc.strftime('%Y%m%dT%H%M%S')}.{utc.microsecond:06d}Z"


def directory(table: str, cluster_id: str, date: str, snapshot: str) -> str:
    """The path of a snapshot's table below the root."""
    return f"{table}/cluster_id={quote(cluster_id, safe='')}/date={date}/snapshot={snapshot}"


def check_cluster_id(cluster_id: str) -> None:
    """Raises PipelineError for an id that Spark would read back differently, because it reads each escaped
    byte as a letter.
    """
    if not cluster_id.isascii():
        raise PipelineError(
            f"cluster {cluster_id}: a directory of the lake can only have ASCII letters in it"
        )


def manifest_path(manifest: Manifest) -> str:
    """The path of the manifest below the root."""
    cluster = quote(manifest.cluster_id, safe="")
    return f"manifests/cluster_id={cluster}/date={manifest.date}/{manifest.snapshot}.json"


def to_json(manifest: Manifest) -> bytes:
    fields = asdict(manifest) | {
        "format": FORMAT,
        "began": _text(manifest.began),
        "taken_at": _text(manifest.taken_at),
        "parts": [part._asdict() for part in manifest.parts],
    }
    return (json.dumps(fields, indent=1, sort_keys=True) + "\n").encode()


def _text(when: datetime) -> str:
    return when.astimezone(UTC).isoformat()


class NotWhole(PipelineError):
    """The manifest is being written, or its writer died: the snapshot does not exist."""


class TooNew(PipelineError):
    """Written by a later version of ktriage. ``cluster_id`` is its cluster."""

    def __init__(self, where: str, found: Any, cluster_id: str) -> None:
        super().__init__(f"{where}: schema version {found}; this version of ktriage reads up to {VERSION}")
        self.cluster_id = cluster_id


def from_json(place: StoragePath) -> Manifest:
    """Raises NotWhole, TooNew, or PipelineError if it is not a manifest."""
    try:
        fields = json.loads(place.read())
    except ValueError:
        raise NotWhole(f"{place.uri}: it is incomplete; that snapshot was never finished") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise PipelineError(f"{place.uri}: not a manifest of a snapshot")
    version = fields.get("version")
    if type(version) is not int or version > VERSION:
        raise TooNew(place.uri, version, str(fields.get("cluster_id", "")))
    check_cluster_id(str(fields.get("cluster_id", "")))
    try:
        return _manifest(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise PipelineError(f"{place.uri}: broken ({type(error).__name__}: {error})") from None


def _manifest(fields: dict[str, Any]) -> Manifest:
    known = {name: fields[name] for name in Manifest.__slots__ if name in fields}
    return Manifest(
        **known
        | {
            "kind": SnapshotKind(fields["kind"]),
            "began": datetime.fromisoformat(fields["began"]),
            "taken_at": datetime.fromisoformat(fields["taken_at"]),
            "parts": tuple(
                SnapshotFile(part["table"], part["path"], part["rows"], part["size"])
                for part in fields["parts"]
            ),
            "silent": tuple(fields["silent"]),
            "hidden": tuple(fields["hidden"]),
        }
    )
