"""What was put right, as one entry of the journal has it: offsets of groups, markers, replicas, registrations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from console.journal.run_records import EntryBegun, EntryEnded
from console.journal.unfinished_entries import COMMIT_OFFSETS, HEAL, UNREGISTER, WRITE_MARKERS
from recovery.wording.quantity_text import ids, printable

NOT_KNOWN = "the result is not known"
SHOWN = 10
"""So many rows of an entry are named; the others are counted."""

Row = tuple[str, ...]

COLUMNS = {
    COMMIT_OFFSETS: ("group", "partition", "offset before", "offset after", "result"),
    WRITE_MARKERS: ("producer", "partition", "ended by", "result"),
    HEAL: ("partition", "replicas before", "replicas after", "result"),
    UNREGISTER: ("broker that was unregistered", "result"),
}
"""The actions that put something right, with what :func:`fix_rows` tells of each."""
_LINES = {
    COMMIT_OFFSETS: "{0}, {1}: offset {2} -> {3} ({4})",
    WRITE_MARKERS: "{0}, {1}: {2} ({3})",
    HEAL: "{0}: replicas {1} -> {2} ({3})",
    UNREGISTER: "broker {0}: {1}",
}


def fix_rows(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    """The rows of an entry; none where its action puts nothing right."""
    rows_of = _ROWS.get(begun.action)
    return iter(()) if rows_of is None else rows_of(begun, ended)


def fix_lines(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[str]:
    """The same in lines of a journal, the first :data:`SHOWN`."""
    rows = list(fix_rows(begun, ended))
    for row in rows[:SHOWN]:
        yield printable(f"    {_LINES[begun.action].format(*row)}")
    if len(rows) > SHOWN:
        yield f"    … and {len(rows) - SHOWN:,} more (--output json shows all)"


def _offset_rows(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    failed = {(one.get("group"), one.get("partition")): one for one in _list(ended, "notCommitted")}
    done = "put back by --undo" if begun.detail.get("undo") else "set"
    for one in begun.detail.get("offsets", ()):
        name = f"{one.get('topic')}-{one.get('partition')}"
        problem = failed.get((one.get("group"), name))
        before, after = (one.get(key, {}).get("offset", "?") for key in ("before", "after"))
        yield str(one.get("group")), name, str(before), str(after), _result(ended, problem, done)


def _marker_rows(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    failed = {(one.get("producerId"), one.get("partition")): one for one in _list(ended, "notWritten")}
    for one in begun.detail.get("markers", ()):
        name = f"{one.get('topic')}-{one.get('partition')}"
        problem = failed.get((one.get("producerId"), name))
        producer = f"{one.get('producerId')}, epoch {one.get('producerEpoch')}"
        if one.get("transactionalId"):
            producer = f"{one['transactionalId']} ({producer})"
        yield producer, name, str(one.get("result")), _result(ended, problem, "written")


def _move_rows(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    ends = {one.get("partition"): one for one in _list(ended, "ended")}
    undo = " by heal undo" if begun.detail.get("undo") else ""
    for move in begun.detail.get("moves", ()):
        name = f"{move.get('topic')}-{move.get('partition')}"
        end = ends.get(name, {})
        reported = f"{end['end']}{undo}" if end.get("end") else NOT_KNOWN
        result = ": ".join(filter(None, (reported, end.get("why"))))
        yield name, ids(move.get("before", ())), ids(move.get("after", ())), result


def _unregistered_rows(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    problem = None if ended is None else str(ended.result.get("problem", ""))
    yield str(begun.detail.get("broker", "?")), NOT_KNOWN if problem is None else problem or "done"


_ROWS: Mapping[str, Callable[[EntryBegun, EntryEnded | None], Iterator[Row]]] = {
    COMMIT_OFFSETS: _offset_rows,
    WRITE_MARKERS: _marker_rows,
    HEAL: _move_rows,
    UNREGISTER: _unregistered_rows,
}


def _list(ended: EntryEnded | None, key: str) -> list[Mapping[str, Any]]:
    return [] if ended is None else list(ended.result.get(key, ()))


def _result(ended: EntryEnded | None, problem: Mapping[str, Any] | None, done: str) -> str:
    if ended is None:
        return NOT_KNOWN
    return done if problem is None else f"not {done}: {problem.get('why', '?')}"
