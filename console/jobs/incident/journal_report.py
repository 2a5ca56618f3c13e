"""The journal as text and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from console.jobs.incident.journal_outcomes import elections_lines, fix_lines
from console.journal.change_kinds import kind_of
from console.journal.planned_elections import planned_entries
from console.journal.run_records import EntryBegun, EntryEnded, Event, RunRecord, unread_lines
from console.output.json_document import document
from recovery.wording.quantity_text import counted, printable, time_text


class ClusterJournal(NamedTuple):
    """The newest ``runs`` of a cluster, oldest first, of ``total``. ``running``: the id of the current run."""

    cluster_id: str
    runs: tuple[RunRecord, ...]
    total: int
    running: str = ""


def journal_lines(journals: Iterable[ClusterJournal]) -> Iterator[str]:
    """Each run with what it sent and the results."""
    empty = True
    for journal in journals:
        empty = False
        yield f"cluster {journal.cluster_id}: {counted(journal.total, 'run')}"
        for run in journal.runs:
            yield from _run_lines(run, going_on=bool(run.run_id) and run.run_id == journal.running)
    if empty:
        yield "nothing was sent to any cluster from this host"


def _run_lines(run: RunRecord, *, going_on: bool) -> Iterator[str]:
    header = run.header
    yield printable(f"{header.get('at', '?')} {run.operator} {end_text(run, going_on=going_on)}")
    yield printable(f"  {shlex.join(header.get('command', ()))}")
    if header.get("reason"):
        yield printable(f"  reason: {header['reason']}")
    for line in unread_lines(run):
        yield printable(f"  {line}")
    if not run.events:
        yield "  nothing was sent" if not run.unread else "  nothing else is recorded"
    ends = {event.entry: event for event in run.events if isinstance(event, EntryEnded)}
    planned = planned_entries(run)
    for event in shown_events(run):
        if isinstance(event, EntryBegun) and event.entry in planned:
            yield from elections_lines(event, ends.get(event.entry))
        elif not (isinstance(event, EntryEnded) and event.entry in planned):
            yield printable(f"  {event.at} {event_text(event)}")
            if isinstance(event, EntryBegun):
                yield from fix_lines(event, ends.get(event.entry))


def shown_events(run: RunRecord) -> Iterator[Event]:
    """A run's events without the ends of entries that only note something: they have no result."""
    begun = (event for event in run.events if isinstance(event, EntryBegun))
    notes = {event.entry for event in begun if kind_of(event.action).is_note}
    return (event for event in run.events if not (isinstance(event, EntryEnded) and event.entry in notes))


def end_text(run: RunRecord, *, going_on: bool) -> str:
    """How a run ended, and its result counts, if its file has them."""
    if not run.ended:
        return "is still going on" if going_on else "did not end"
    status = "-" if run.status is None else run.status
    counts = ", ".join(f"{count:,} {name}" for name, count in run.counts.items())
    return f"ended with status {status}{f': {counts}' if counts else ''}"


def journal_time(at: object) -> str:
    """A time of the journal as the metadata log's are shown."""
    try:
        moment = datetime.fromisoformat(str(at))
        return time_text(round(moment.timestamp() * 1000))
    except (ValueError, OverflowError):
        return str(at)


def event_text(event: Event) -> str:
    if isinstance(event, EntryBegun):
        return kind_of(event.action).text(event)
    if isinstance(event, EntryEnded):
        parts = (("applied", event.applied), ("refused", event.refused), ("not known", event.unknown))
        written = event.result.get("records")
        ended = str(event.result.get("answer", "")) or (
            "done" if written is None else f"{written} records written"
        )
        return "  " + (", ".join(f"{len(rows):,} {name}" for name, rows in parts if rows) or ended)
    counts = ((len(event.rows), "partition"), (len(event.entries), "request"))
    what = ", ".join(counted(count, name) for count, name in counts if count)
    return f"settled: {event.why}{f' ({what})' if what else ''}"


def journal_document(journals: Iterable[ClusterJournal]) -> Iterator[str]:
    """``ktriage.journal/2``."""
    runs = [run_json(journal.cluster_id, run) for journal in journals for run in journal.runs]
    return document("journal", {"runs": runs})


def run_json(cluster_id: str, run: RunRecord) -> dict[str, object]:
    """One run with everything that it recorded."""
    return {
        "clusterId": cluster_id,
        "file": str(run.path),
        **{key: run.header.get(key) for key in ("run", "at", "user", "host", "pid", "command", "reason")},
        "ended": run.ended,
        "status": run.status,
        "counts": dict(run.counts),
        "events": [_event_json(event) for event in run.events],
        "unread": list(run.unread),
    }


def _event_json(event: Event) -> dict[str, object]:
    if isinstance(event, EntryBegun):
        rows = [[row.tp.topic, row.tp.partition] for row in event.rows]
        fields = {
            "kind": "before",
            "at": event.at,
            "entry": event.entry,
            "action": event.action,
            "rows": rows,
        }
        return {**fields, "detail": dict(event.detail)}
    if isinstance(event, EntryEnded):
        return {
            "kind": "after",
            "at": event.at,
            "entry": event.entry,
            "applied": sorted(list(tp) for tp in event.applied),
            "refused": [[*tp, why] for tp, why in event.refused.items()],
            "unknown": [[*tp, why] for tp, why in event.unknown.items()],
            "result": dict(event.result),
        }
    return {
        "kind": "settled",
        "at": event.at,
        "why": event.why,
        "entries": sorted(event.entries),
        "rows": sorted(list(tp) for tp in event.rows),
    }
