"""The timeline as text, as JSON and as markdown, and the result of copying a metadata log."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from console.change.own_changes import OwnChanges
from console.jobs.timeline.metadata_log_copy import CopiedRange
from console.jobs.timeline.timeline import TimelineSource
from console.output.json_document import document, one_line
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import ClusterEvent
from recovery.metadata_log.timeline_text import event_text, moves_text
from recovery.wording.quantity_text import counted, printable, simulated_time, time_text, utc_text
from widgets.fields import Field, data_field, json_row
from widgets.text import Tone

NAMED = 50
"""How many partitions of an event are named in the pane's details and found by its filter."""


class TimelineRow(NamedTuple):
    """An event, named by its offset in the metadata log and its kind. ``own``: so many of its partitions were
    changed by a request in the journal of this host. ``new``: it came after the timeline was last shown.
    """

    event: ClusterEvent
    text: str
    own: int
    new: bool = False

    @property
    def key(self) -> tuple[int, str]:
        return self.event.offset, self.event.kind.value

    @property
    def time_ms(self) -> int:
        return self.event.time_ms

    @property
    def kind(self) -> EventKind:
        return self.event.kind

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.event.topics)[:NAMED])

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(sorted(self.event.brokers))

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(str(move.tp) for move in self.event.moves[:NAMED])

    @property
    def moves(self) -> tuple[str, ...]:
        """What became of each of the first partitions."""
        return tuple(map(printable, moves_text(self.event, NAMED)))

    @property
    def moved(self) -> int:
        return len(self.event.moves)

    @property
    def note(self) -> str:
        return " ".join(word for word, shown in (("new", self.new), ("ours", self.own)) if shown)


def timeline_row(event: ClusterEvent, history: MetadataHistory, own: OwnChanges, *, new: bool) -> TimelineRow:
    """The event, with what it says in words; ``own`` are the changes that runs of this host requested."""
    return TimelineRow(event, event_text(event, history), own.count(event), new)


_TONES = {
    EventKind.OFFLINE: Tone.BAD,
    EventKind.UNCLEAN_ELECTION: Tone.BAD,
    EventKind.ISR_SHRANK: Tone.WARN,
    EventKind.BROKER_FENCED: Tone.WARN,
    EventKind.BROKER_UNREGISTERED: Tone.WARN,
    EventKind.CONTROLLED_SHUTDOWN: Tone.WARN,
    EventKind.LOG_DIRS_CHANGED: Tone.WARN,
    EventKind.ONLINE: Tone.GOOD,
    EventKind.ISR_GREW: Tone.GOOD,
    EventKind.BROKER_UNFENCED: Tone.GOOD,
    EventKind.RECOVERY_ENDED: Tone.GOOD,
}
_YEAR = len("2026-")

EVENT: tuple[Field[TimelineRow], ...] = (
    data_field("timeMs", lambda r: r.time_ms),
    Field(
        "time",
        "TIME",
        lambda r: utc_text(r.time_ms),
        lambda r: simulated_time(r.time_ms) or time_text(r.time_ms)[_YEAR:],
        sort=lambda r: (r.time_ms, r.event.offset),
    ),
    data_field("offset", lambda r: r.event.offset),
    Field("note", "NOTE", lambda r: r.note, tone=Tone.INFO, priority=2, json=False),
    Field("kind", "KIND", lambda r: r.kind.value, tone=lambda r: _TONES.get(r.kind, Tone.PLAIN), priority=3),
    Field(
        "moved",
        "PARTITIONS",
        lambda r: r.moved,
        lambda r: f"{r.moved:,}" if r.moved else "",
        sort=lambda r: r.moved,
        right=True,
        priority=4,
        json=False,
    ),
    Field(
        "text",
        "WHAT HAPPENED",
        lambda r: r.text,
        lambda r: printable(r.text),
        tone=lambda r: _TONES.get(r.kind, Tone.PLAIN),
        flex=True,
        width=50,
        shown_below=True,
    ),
    data_field("topics", lambda r: sorted(r.event.topics)),
    data_field("brokers", lambda r: sorted(r.event.brokers)),
    data_field("partitions", lambda r: [str(move.tp) for move in r.event.moves]),
    data_field("ours", lambda r: r.own),
    data_field("refused", lambda r: r.event.refused or None),
)
"""An event of the metadata log: pane 7, ``ktriage timeline`` and the incident report."""


def _row(event: ClusterEvent, source: TimelineSource) -> TimelineRow:
    return timeline_row(event, source.timeline.history, source.own, new=False)


def event_line(event: ClusterEvent, source: TimelineSource) -> str:
    return printable(f"{time_text(event.time_ms)} {_event_with_owner(event, source)}")


def _event_with_owner(event: ClusterEvent, source: TimelineSource) -> str:
    row = _row(event, source)
    whose = "" if not row.own else " [ours]" if row.own == row.moved else f" [{row.own:,} of them ours]"
    return row.text + whose


def timeline_lines(source: TimelineSource, events: Collection[ClusterEvent], left_out: int) -> Iterator[str]:
    """Newest last; ``left_out`` older ones are not shown."""
    count = len(events) + left_out
    utc = "" if all(simulated_time(event.time_ms) for event in events) else " (times in UTC)"
    yield printable(f"{source.title}: {counted(count, 'event')}{utc}")
    if left_out:
        yield f"only the newest {counted(len(events), 'event')} here (--last 0 shows all)"
    for event in events:
        yield event_line(event, source)


def timeline_markdown(
    source: TimelineSource, events: Collection[ClusterEvent], left_out: int
) -> Iterator[str]:
    """A Markdown list for an incident channel."""
    yield f"**Timeline** of {printable(source.title)} (UTC)"
    yield ""
    if left_out:
        yield f"- … {counted(left_out, 'older event')}"
    for event in events:
        yield f"- `{time_text(event.time_ms)}` {_escaped(printable(_event_with_owner(event, source)))}"
    if source.notes:
        yield ""
        yield from (f"_{_escaped(note)}_" for note in source.notes)


def _escaped(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|" else sign for sign in text)


def timeline_document(
    source: TimelineSource, events: Collection[ClusterEvent], left_out: int
) -> Iterator[str]:
    fields = {
        "source": source.title,
        "notes": list(source.notes),
        "leftOut": left_out,
        "events": [event_fields(event, source) for event in events],
    }
    return document("timeline", fields)


def event_fields(event: ClusterEvent, source: TimelineSource) -> dict[str, object]:
    """The event in JSON."""
    return json_row(EVENT, _row(event, source))


def copied_line(copied: CopiedRange, title: str, path: Path) -> str:
    """One line: how much, and how far the copy goes now."""
    snapshot = f" and {counted(copied.snapshots, 'snapshot')}" if copied.snapshots else ""
    return (
        f"{counted(copied.offsets, 'record')}{snapshot} of the metadata log of {title} copied to {path}, which goes"
        f" to offset {copied.next_offset:,} now"
    )


def copied_document(copied: CopiedRange, cluster_id: str, path: Path) -> Iterator[str]:
    """``ktriage.metadata-log-copy/1``."""
    return document("metadata-log-copy", copied_fields(copied, cluster_id, path))


def copied_event(copied: CopiedRange, cluster_id: str, path: Path) -> str:
    """The same fields on one line, for a run that goes on."""
    return one_line(copied_fields(copied, cluster_id, path))


def copied_fields(copied: CopiedRange, cluster_id: str, path: Path) -> dict[str, object]:
    return {
        "clusterId": cluster_id,
        "directory": str(path),
        "offsets": copied.offsets,
        "snapshots": copied.snapshots,
        "nextOffset": copied.next_offset,
        "highWatermark": copied.high_watermark,
    }
