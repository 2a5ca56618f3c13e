"""What a micro-batch of ``watch`` read, and how far behind each cluster is."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pipeline.watch.log_position import ShippedPosition, from_json


class WatchProgress(NamedTuple):
    """``records`` were read in ``seconds``. ``clusters``: where each cluster's log has been read to, by name."""

    batch_id: int
    records: int
    seconds: float
    clusters: dict[str, ShippedPosition]

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
    end = fields["sources"][0]["endOffset"] or {}
    return WatchProgress(
        fields["batchId"],
        fields["numInputRows"],
        fields["durationMs"].get("triggerExecution", 0) / 1000,
        from_json(json.loads(end) if isinstance(end, str) else end),
    )
