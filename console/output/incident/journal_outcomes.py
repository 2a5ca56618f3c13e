"""What became of elections and of other changes, by the lines of the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from console.journal.planned_elections import PlannedElection, planned_elections
from console.journal.run_records import EntryBegun, EntryEnded
from console.journal.unfinished_entries import COMMIT_OFFSETS, HEAL, UNREGISTER, WRITE_MARKERS
from recovery.model import NO_LEADER
from recovery.wording.loss_text import range_text
from recovery.wording.quantity_text import counted, ids, printable

SHOWN = 10
"""So many partitions of a run are named; the others are counted."""


def elections_lines(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[str]:
    """What was to be elected and by which plan, then a line for each partition, the largest losses first."""
    elections = planned_elections(begun, ended)
    by = plan_name(begun)
    yield printable(
        f"  {begun.at} elections of {counted(len(elections), 'partition')}{f' by {by}' if by else ''}"
    )
    for election in worst_elections(elections)[:SHOWN]:
        yield printable(f"    {election.tp}: {election_text(election)}")
    if len(elections) > SHOWN:
        yield f"    … and {len(elections) - SHOWN:,} more (--output json shows all)"


def plan_name(begun: EntryBegun) -> str:
    """The plan of an entry, such as ``recovery.json (plan 5f2c…, strategy balanced)``; "" where there was none."""
    detail = begun.detail
    if not detail.get("planId"):
        return ""
    file = detail.get("file") or "a plan that was not saved"
    return f"{file} (plan {detail['planId']}, strategy {detail.get('strategy', '?')})"


def worst_elections(elections: tuple[PlannedElection, ...]) -> list[PlannedElection]:
    """Those with the largest known loss first, then those without a bound."""
    return sorted(elections, key=lambda one: (-one.at_least, one.at_most is not None, one.tp))


def election_text(election: PlannedElection) -> str:
    """One election, without its partition: ``no leader -> 2 (elected, epoch 5); loses 300 offsets; …``."""
    parts = [f"{_led(election.leader_before)} -> {_new_leader(election)}"]
    if election.planned_leader != NO_LEADER:
        parts.append(f"offsets lost: {range_text(election.at_least, election.at_most)}")
        parts.append(f"acknowledged lost: {election.acknowledged or 'not judged'}")
    return "; ".join(parts)


def _new_leader(election: PlannedElection) -> str:
    planned = election.planned_leader
    if not election.outcome:
        return f"{_led(planned)} was planned, the result is not known"
    epoch = f", epoch {election.leader_epoch}" if election.leader_epoch >= 0 else ""
    other = "" if planned in (NO_LEADER, election.leader) else f", {planned} was planned"
    return f"{_led(election.leader)} ({election.outcome}{epoch}{other})"


def _led(leader: int) -> str:
    return "no leader" if leader == NO_LEADER else str(leader)


NOT_KNOWN = "the result is not known"
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
