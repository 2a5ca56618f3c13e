"""Compares the journals of an incident's runs with what happened in the simulated cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from console.journal.errors import JournalError
from console.journal.run_records import EntryBegun, EntryEnded, RunRecord, read_run
from console.journal.unfinished_entries import left_open
from recovery.model import TopicPartition
from recovery.requests_in_doubt import REORDER, REVERT

Orders = Mapping[TopicPartition, Sequence[tuple[int, ...]]]
"""Every order that a partition's assignment has had, including the first one."""


def journal_problems(
    directory: Path, orders_shown: Orders, cut_short: Collection[int], *, settled: bool
) -> Iterator[str]:
    """What is wrong in the journals below ``directory``, as sentences.

    ``cut_short``: the process ids of runs that were killed, or had no room on their disk, 0 where not even the
    first line could be written. ``settled``: nothing may be unfinished.
    """
    runs: list[RunRecord] = []
    for path in sorted(directory.glob("**/state/ktriage/*/*.jsonl")):
        try:
            runs.append(read_run(path))
        except JournalError as error:
            yield str(error)
    for run in runs:
        if not run.ended and int(run.header.get("pid", 0)) not in cut_short:
            yield f"the journal does not say that run {run.run_id} ended"
    yield from _unannounced(runs, orders_shown)
    yield from _never_applied(runs, orders_shown)
    if settled and not left_open(runs).nothing:
        yield f"the journal leaves open: {left_open(runs)}"


def _written(runs: Iterable[RunRecord]) -> Iterator[tuple[TopicPartition, tuple[int, ...], bool | None]]:
    """Every order that was announced, and whether the journal says that it was applied (None: unknown)."""
    for run in runs:
        ends = {event.entry: event for event in run.events if isinstance(event, EntryEnded)}
        for event in run.events:
            if not isinstance(event, EntryBegun) or event.action not in (REORDER, REVERT):
                continue
            end = ends.get(event.entry)
            for row in event.rows:
                applied = None
                if end is not None and row.tp in end.applied:
                    applied = True
                elif end is not None and row.tp in end.refused:
                    applied = False
                yield row.tp, row.order if event.action == REORDER else row.replicas, applied


def _unannounced(runs: Iterable[RunRecord], orders_shown: Orders) -> Iterator[str]:
    may_stand = {(tp, order) for tp, order, applied in _written(runs) if applied is not False}
    for tp, orders in orders_shown.items():
        for order in orders[1:]:
            if (tp, order) not in may_stand:
                yield f"{tp}: {list(order)} stood, and the journal does not announce it, or says it was refused"


def _never_applied(runs: Iterable[RunRecord], orders_shown: Orders) -> Iterator[str]:
    for tp, order, applied in _written(runs):
        if applied and order not in orders_shown[tp]:
            yield f"{tp}: the journal says that {list(order)} was applied, and it never stood"
