"""The journal as text and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from console.journal.journal_lines import FOUND_ORDER, KafkaElectionKind
from console.journal.planned_elections import planned_entries
from console.journal.recorded_keeps import keep_moves
from console.journal.run_records import EntryBegun, EntryEnded, Event, RunRecord
from console.journal.unfinished_entries import (
    CANCEL_REASSIGNMENT,
    COMMIT_OFFSETS,
    HEAL,
    KEEP_LOG,
    NO_RESCUE,
    REASSIGN,
    RESTORE_RECORDS,
    UNREGISTER,
    WRITE_MARKERS,
)
from console.journal.unread_disks import DISK_READ, DISK_WAIVED, disk_partitions
from console.output.incident.journal_outcomes import elections_lines, fix_lines
from console.output.json_document import document
from recovery.log_preservation import taken_out
from recovery.membership.voters import ReplicaKey
from recovery.wording.quantity_text import both, counted, printable, time_text


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
    if not run.events:
        yield "  nothing was sent"
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
    notes = {event.entry for event in run.events if isinstance(event, EntryBegun) and event.action in _NOTES}
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
        if event.action == NO_RESCUE:
            lossy = counted(int(event.detail.get("partitions", 0)), "partition")
            return f"not read before the elections: what they cut off of {lossy}"
        if event.action in (DISK_READ, DISK_WAIVED):
            return disk_entry_text(event)
        if event.action == FOUND_ORDER:
            return f"found the order of an election by another run on {counted(len(event.rows), 'partition')}"
        count = f" of {counted(len(event.rows), 'partition')}" if event.rows else ""
        kind = KafkaElectionKind.of(event.detail)
        return f"{event.action}{count}{_about(event) if kind is None else f', {kind}'}"
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


def disk_entry_text(event: EntryBegun) -> str:
    """An entry about the disk of a broker that was not read before an election."""
    detail = event.detail
    broker = detail.get("broker", "?")
    partitions = counted(len(disk_partitions(detail)), "partition")
    if event.action == DISK_WAIVED:
        return f"the disk of broker {broker} is not to be read any more: {partitions}"
    return f"the disk of broker {broker} was read into {detail.get('directory', '?')}: {partitions}"


_NOTES = (NO_RESCUE, FOUND_ORDER, DISK_READ, DISK_WAIVED)
"""Entries that send nothing."""
_COUNTED = {
    COMMIT_OFFSETS: ("offsets", "partition of a group", "partitions of groups"),
    WRITE_MARKERS: ("markers", "transaction", "transactions"),
}
"""Entries by action, with the list that holds what they are about."""


def _about(event: EntryBegun) -> str:
    """The object of an entry that names no rows: a voter with its directory, a replacement's plan, a feature's
    level, moves of replicas.
    """
    detail = event.detail
    if "voter" in detail:
        return f" {ReplicaKey(int(detail['voter']), str(detail.get('directoryId', '')))}"
    if "feature" in detail:
        return f" {detail['feature']} to {detail.get('level', '?')}"
    if event.action in _COUNTED or event.action in (
        KEEP_LOG,
        HEAL,
        REASSIGN,
        CANCEL_REASSIGNMENT,
        UNREGISTER,
    ):
        return _about_fix(event.action, detail)
    if "steps" in detail:
        return f" {', '.join(map(str, detail['steps']))}"
    if "directory" in detail:
        return _about_restore(detail) if event.action == RESTORE_RECORDS else f" into {detail['directory']}"
    return f" by {detail['file']}" if "file" in detail else ""


def _about_restore(detail: Mapping[str, Any]) -> str:
    topics = ", ".join(map(str, detail.get("topics", ())))
    source = " (the source)" if detail.get("target") == "source" else ""
    return f": {detail.get('records', '?')} of {detail.get('directory', '?')} to {topics}{source}"


def _about_fix(action: str, detail: Mapping[str, Any]) -> str:
    if action == KEEP_LOG:
        moves = [keep.move for keep in keep_moves(detail)]
        brokers = sorted({broker for move in moves for broker in taken_out(move)})
        return f" of broker {both(brokers)}: {counted(len(moves), 'partition')}"
    if action in _COUNTED:
        key, one, many = _COUNTED[action]
        return f" of {counted(len(detail.get(key, ())), one, many)}"
    gone = f" for broker {', '.join(map(str, detail['gone']))}" if "gone" in detail else ""
    rows = detail.get("moves", detail.get("partitions"))
    return f" {detail.get('broker', '?')}" if rows is None else f" of {counted(len(rows), 'partition')}{gone}"


def journal_document(journals: Iterable[ClusterJournal]) -> Iterator[str]:
    """``ktriage.journal/1``."""
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
