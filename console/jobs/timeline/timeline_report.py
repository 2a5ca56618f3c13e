"""The timeline as text, as JSON and as markdown, and the result of copying a metadata log."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from console.jobs.timeline.metadata_log_copy import CopiedRange
from console.jobs.timeline.timeline import TimelineSource
from console.output.json_document import document, one_line
from recovery.metadata_log.timeline import ClusterEvent
from recovery.metadata_log.timeline_text import event_text
from recovery.wording.quantity_text import counted, printable, simulated_time, time_text, utc_text


def event_line(event: ClusterEvent, source: TimelineSource) -> str:
    return printable(f"{time_text(event.time_ms)} {_event_with_owner(event, source)}")


def _event_with_owner(event: ClusterEvent, source: TimelineSource) -> str:
    own = source.own.count(event)
    whose = "" if not own else " [ours]" if own == len(event.moves) else f" [{own:,} of them ours]"
    return event_text(event, source.timeline.history) + whose


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
    return {
        "timeMs": event.time_ms,
        "time": utc_text(event.time_ms),
        "offset": event.offset,
        "kind": event.kind,
        "text": event_text(event, source.timeline.history),
        "topics": sorted(event.topics),
        "brokers": sorted(event.brokers),
        "partitions": [str(move.tp) for move in event.moves],
        "ours": source.own.count(event),
        "refused": event.refused or None,
    }


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
