"""What a micro-batch of ``watch`` read, and how far behind each cluster is."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pipeline.watch.log_position import ShippedPosition, StreamOffset, from_json


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
        # Spark counts rows, which have many records each.
        moved=reported.numInputRows > 0,
    )


def _offsets(written: Any) -> StreamOffset:
    return from_json(json.loads(written) if isinstance(written, str) else written or {})


def _offsets_between(start: ShippedPosition | None, end: ShippedPosition) -> int:
    begins = start is None or start.generation != end.generation
    return max(0, end.offset - (end.began if begins or start is None else start.offset))
