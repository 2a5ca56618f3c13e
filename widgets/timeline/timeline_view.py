"""What the timeline's pane shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import ClusterEvent
from recovery.metadata_log.timeline_text import event_text
from recovery.wording.quantity_text import printable

NAMED = 50
"""How many partitions of an event are named in the details and found by the filter."""


class TimelineRow(NamedTuple):
    """One event. ``offset`` in the metadata log and ``kind`` name it. ``partitions`` are the first of ``moved``.

    ``new``: it came after the timeline was last shown. ``own``: so many of the moved partitions were changed by
    a request in the journal of this host.
    """

    offset: int
    time_ms: int
    kind: EventKind
    text: str
    topics: tuple[str, ...]
    brokers: tuple[int, ...]
    partitions: tuple[str, ...]
    moved: int
    own: int
    new: bool

    @property
    def key(self) -> tuple[int, str]:
        return self.offset, self.kind.value


def timeline_row(event: ClusterEvent, history: MetadataHistory, *, own: int, new: bool) -> TimelineRow:
    moves = event.moves
    return TimelineRow(
        event.offset,
        event.time_ms,
        event.kind,
        printable(event_text(event, history)),
        _first(event.topics),
        tuple(sorted(event.brokers)),
        tuple(str(move.tp) for move in moves[:NAMED]),
        len(moves),
        own,
        new,
    )


def _first(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(topics)[:NAMED])


@dataclass(frozen=True, slots=True)
class TimelineView:
    """``rows`` newest last; ``older`` events before them are not shown. ``source`` says where the log was read,
    "" before that. ``reading`` is (offset, end of the log) while much is read, ``events_up_to`` the offset up to
    which events were made from it. ``problem`` says why nothing more can be read, ``needs`` what would change that.
    ``notes`` say what the log does not show, one line each.
    """

    rows: Sequence[TimelineRow] = ()
    older: int = 0
    source: str = ""
    reading: tuple[int, int] | None = None
    events_up_to: int | None = None
    problem: str = ""
    needs: str = ""
    notes: tuple[str, ...] = ()
