"""How far the metadata logs have been read: the position in each cluster's log, its part of a stream's offset,
and what a micro-batch of ``watch`` read.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

NO_SEGMENT = -1


class ShippedPosition(NamedTuple):
    """Everything before record ``offset`` has been read; it is at byte ``position`` of the segment that begins with
    offset ``segment``. NO_SEGMENT: no segment holds it yet.

    ``generation`` counts how often the log was begun: with ``snapshot`` (a file name; "": with its first
    segment), and from offset ``began`` on. ``last`` is the last batch that was read, as its segment, its byte
    position and its checksum, so that a rewritten log is noticed; its segment is NO_SEGMENT if there is none
    yet.

    ``time_ms`` is the time of the last record that was read, ``newest_ms`` of the newest that is there;
    ``unread`` counts the bytes that are there and have not been read. ``problem``: why the log is not read
    further, in one line.
    """

    generation: int = 0
    snapshot: str = ""
    began: int = 0
    segment: int = NO_SEGMENT
    position: int = 0
    offset: int = 0
    last: tuple[int, int, int] = (NO_SEGMENT, 0, 0)
    time_ms: int = -1
    newest_ms: int = -1
    unread: int = 0
    problem: str | None = None

    @property
    def lag_ms(self) -> int:
        """How much older the last record that was read is than the newest that is there."""
        return max(0, self.newest_ms - self.time_ms) if self.time_ms >= 0 else 0

    def moved_from(self, start: ShippedPosition | None) -> bool:
        """Whether the log was read further than ``start``, or begun again."""
        return start is None or (start.generation, start.offset) != (self.generation, self.offset)


StreamOffset = dict[str, ShippedPosition]
"""By the name of the cluster's directory."""

VERSION = 1


def to_json(offset: StreamOffset) -> dict[str, Any]:
    """What Spark writes into its checkpoint."""
    return {"version": VERSION, "clusters": {name: list(at) for name, at in sorted(offset.items())}}


def from_json(fields: dict[str, Any]) -> StreamOffset:
    """Raises ValueError for an offset of a later version of ktriage."""
    if fields.get("version", 0) > VERSION:
        raise ValueError(
            f"the checkpoint has offsets of version {fields['version']}; this ktriage reads {VERSION}"
        )
    return {
        name: ShippedPosition._make(tuple(value) if isinstance(value, list) else value for value in at)
        for name, at in fields.get("clusters", {}).items()
    }


class WatchProgress(NamedTuple):
    """``records``: by so many offsets the logs were read further, in ``seconds``. ``clusters``: where the log of
    each cluster has been read to, by name. ``moved``: something was read, perhaps only a snapshot.
    """

    batch_id: int
    records: int
    seconds: float
    clusters: dict[str, ShippedPosition]
    moved: bool

    @property
    def per_second(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0

    @property
    def furthest_behind(self) -> tuple[str, ShippedPosition] | None:
        """The cluster whose last record is the oldest against its newest; None if all are read to their ends."""
        behind = [(name, at) for name, at in self.clusters.items() if at.unread]
        return max(behind, key=lambda one: (one[1].lag_ms, one[1].unread), default=None)

    @property
    def problems(self) -> list[str]:
        """Of each log that is not read further, why, in one line."""
        return [f"{name}: {at.problem}" for name, at in self.clusters.items() if at.problem is not None]


def progress_of(reported: Any) -> WatchProgress:
    """Spark's StreamingQueryProgress."""
    fields = json.loads(reported.json)
    source = fields["sources"][0]
    before, after = _offsets(source["startOffset"]), _offsets(source["endOffset"])
    return WatchProgress(
        fields["batchId"],
        sum(_offsets_between(before.get(name), at) for name, at in after.items()),
        fields["durationMs"].get("triggerExecution", 0) / 1000,
        after,
        # Not by Spark's rows: records that no incident needs are in none.
        moved=any(at.generation and at.moved_from(before.get(name)) for name, at in after.items()),
    )


def _offsets(written: Any) -> StreamOffset:
    return from_json(json.loads(written) if isinstance(written, str) else written or {})


def _offsets_between(start: ShippedPosition | None, end: ShippedPosition) -> int:
    begins = start is None or start.generation != end.generation
    return max(0, end.offset - (end.began if begins or start is None else start.offset))
