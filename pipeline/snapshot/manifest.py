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
"""A note: how many snapshots of the series failed right before this one."""


class SnapshotKind(StrEnum):
    """FULL: every partition. CHANGES: those that are not as the snapshot before had them."""

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
    """``began`` and ``taken_at`` (its end) are aware, in UTC. ``base`` is the full snapshot that changes build on,
    ``previous`` the snapshot right before; both "" for a full one. ``silent`` brokers did not answer.
    ``hidden`` topics could not be seen, ``unseen`` says that there may be more. ``replaces`` is the snapshot whose
    state a compacted one holds; what builds on the former builds on the latter.
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

    @property
    def date(self) -> str:
        """The day that it lies under."""
        return self.began.strftime("%Y-%m-%d")

    @property
    def key(self) -> tuple[datetime, str]:
        """Newer is greater."""
        return self.taken_at, self.snapshot

    @property
    def names(self) -> tuple[str, ...]:
        """What later snapshots may call it."""
        return (self.snapshot, self.replaces) if self.replaces else (self.snapshot,)

    def files(self, table: str) -> tuple[str, ...]:
        """The paths of a table's files below the root."""
        return tuple(part.path for part in self.parts if part.table == table)


def stamp(when: datetime) -> str:
    """The time in a snapshot's name; sorts as the times do."""
    utc = when.astimezone(UTC)
    return f"{utc.strftime('%Y%m%dT%H%M%S')}.{utc.microsecond:06d}Z"


def directory(table: str, cluster_id: str, date: str, snapshot: str) -> str:
    """Where a table of a snapshot lies below the root."""
    return f"{table}/cluster_id={quote(cluster_id, safe='')}/date={date}/snapshot={snapshot}"


def check_cluster_id(cluster_id: str) -> None:
    """Raises PipelineError for an id that Spark would read back as another: it takes escaped bytes for letters."""
    if not cluster_id.isascii():
        raise PipelineError(
            f"cluster {cluster_id}: a directory of the lake can only have ASCII letters in it"
        )


def manifest_path(manifest: Manifest) -> str:
    """Where the manifest lies below the root."""
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
    """The manifest is being written, or its writer died: the snapshot is not there."""


class TooNew(PipelineError):
    """Written by a later version of the tool. ``cluster_id`` says whose it is."""

    def __init__(self, where: str, found: Any, cluster_id: str) -> None:
        super().__init__(f"{where}: schema version {found}; this version of the tool reads up to {VERSION}")
        self.cluster_id = cluster_id


def from_json(place: StoragePath) -> Manifest:
    """Raises NotWhole, TooNew, or PipelineError where it is no manifest."""
    try:
        fields = json.loads(place.read())
    except ValueError:
        raise NotWhole(f"{place.uri}: it is not whole; that snapshot was never finished") from None
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
