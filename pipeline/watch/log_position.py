"""How far a cluster's metadata log has been read: the part of a stream's offset that belongs to one cluster."""

from __future__ import annotations

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
