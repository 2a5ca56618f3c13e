"""A cluster was asked for its state: what a row of the table of observations says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.tables.schemas import OBSERVATIONS, VERSION


class SnapshotKind(StrEnum):
    """FULL: every partition. CHANGES: the partitions that differ from the previous snapshot. FAILED: there is no
    snapshot: the cluster did not answer, or not completely.
    """

    FULL = "full"
    CHANGES = "changes"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Observation:
    """``began`` and ``taken_at`` (its end) are timezone-aware, in UTC. ``base`` is the full snapshot on which it
    builds (a full one names itself), ``previous`` of changes the snapshot directly before. ``series`` is the
    running ``ktriage snapshot --every`` that took it; "": it was taken alone, and nothing will build on it.
    ``asked`` is the cluster as it was named (bootstrap servers or a profile). ``clock_behind_ms``: by how much
    ``began`` and ``taken_at`` are later than the collector's clock said, because an earlier observation of the
    cluster is later than that.
    ``changed``: its rows. ``missed``: how many snapshots of the series failed directly before, without an
    observation of their own. ``silent`` brokers did not answer. ``hidden`` topics could not be seen;
    ``hidden_more``: why there may be more. ``leaders_unreachable``: how many partitions are left out, whose leader
    the listener that was asked does not reach.
    """

    snapshot: str
    cluster_id: str
    kind: SnapshotKind
    began: datetime
    taken_at: datetime
    base: str
    partitions: int = 0
    offline: int = 0
    changed: int = 0
    tool_version: str = ""
    previous: str = ""
    series: str = ""
    missed: int = 0
    leaders_unreachable: int = 0
    silent: tuple[int, ...] = ()
    hidden: tuple[str, ...] = ()
    hidden_more: str = ""
    failure: str = ""
    asked: str = ""
    clock_behind_ms: int = 0
    schema_version: int = VERSION

    @property
    def key(self) -> tuple[datetime, str]:
        """Newer is greater."""
        return self.taken_at, self.snapshot

    @property
    def identity(self) -> tuple[str, str]:
        """Its cluster and its name."""
        return self.cluster_id, self.snapshot

    @property
    def day(self) -> date:
        """The partition of its rows: the day on which its full snapshot began."""
        return day_of(self.base)


COLUMNS = tuple(Observation.__slots__)
SCHEMA = pa.schema([OBSERVATIONS.schema.field(name) for name in COLUMNS])
"""What is read of an observation: not its brokers and its quorum."""


def to_row(observation: Observation, **more: Any) -> dict[str, Any]:
    """Its row; ``more``: brokers, quorum and ``elr_enabled``."""
    return {name: getattr(observation, name) for name in COLUMNS} | {"day": observation.day} | more


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as :func:`to_row` makes them, as a table. One call for many: each costs more than its rows."""
    return pa.Table.from_pylist(list(rows), OBSERVATIONS.schema)


def from_row(row: dict[str, Any]) -> Observation:
    """Raises PipelineError if the row is of a later version of ktriage, or broken."""
    version = row["schema_version"]
    if version is None or version > VERSION:
        raise PipelineError(
            f"{row['snapshot']}: schema version {version}; this version of ktriage reads up to {VERSION}"
        )
    try:
        return Observation(
            **row
            | {
                "kind": SnapshotKind(row["kind"]),
                "began": row["began"].astimezone(UTC),
                "taken_at": row["taken_at"].astimezone(UTC),
                "silent": tuple(row["silent"] or ()),
                "hidden": tuple(row["hidden"] or ()),
                "asked": row["asked"] or "",
                "clock_behind_ms": row["clock_behind_ms"] or 0,
            }
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise PipelineError(f"{row['snapshot']}: its observation is broken ({error})") from None


_STAMP = "%Y%m%dT%H%M%S.%fZ"

UNKNOWN_CLUSTER = "unknown"
"""The id in an observation of a cluster that has never answered: its own id is not known."""


def stamp(when: datetime) -> str:
    """The time in a snapshot's name; names sort by time."""
    return when.astimezone(UTC).strftime(_STAMP)


def snapshot_name(began: datetime, token: str) -> str:
    """Names sort by time; ``token`` distinguishes two of the same moment."""
    return f"{stamp(began)}-{token}"


def day_of(snapshot: str) -> date:
    """The day in a snapshot's name. Raises ValueError if it has none."""
    return datetime.strptime(snapshot[:8], "%Y%m%d").date()


def moment_of(snapshot: str) -> datetime:
    """The time in a snapshot's name. Raises ValueError if it has none."""
    return datetime.strptime(snapshot.partition("-")[0], _STAMP).replace(tzinfo=UTC)


def cluster_names(observations: Iterable[Observation]) -> dict[str, str]:
    """How each cluster was named when it was asked, by its id; one that was not named is left out."""
    return {one.cluster_id: one.asked for one in observations if one.asked}


def check_cluster_id(cluster_id: str) -> None:
    """Raises PipelineError for an id that engines write in different ways into a directory's name."""
    if not cluster_id.isascii() or "%" in cluster_id or not cluster_id:
        raise PipelineError(
            f"cluster {cluster_id}: a directory of the lake can only have ASCII letters in it"
        )
