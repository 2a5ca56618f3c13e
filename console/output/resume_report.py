"""What an earlier run left unfinished, and the result of finishing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC

from console.journal.cluster_lock import LockHolder
from console.journal.unfinished_entries import OpenOrder, OpenRestore, Unfinished
from console.operations.elections.unfinished_orders import OrderOutcome, SettledOrders
from console.output.json_document import document
from console.output.plan.plan_json import tp_json
from console.output.text_table import TextColumn, table
from recovery.wording.quantity_text import counted, printable, some_of

SHOWN = 5
SHOWN_ROWS = 20
"""A killed run may leave thousands of partitions."""


def open_lines(found: Unfinished, running: LockHolder | None) -> Iterator[str]:
    """The same for a command that only reads. The open entries of a running run are not shown as left by an
    earlier run.
    """
    if running is None:
        yield from unfinished_lines(found)
        return
    yield printable(f"a run is still going on and may be changing this cluster: {running}")
    yield from unfinished_lines(found.of_other_runs(running.run_id))


def unfinished_lines(found: Unfinished) -> Iterator[str]:
    """What an earlier run left, in a few lines."""
    if found.orders:
        # A partition whose order was written twice, and once without an answer, is one assignment.
        assignments = list(dict.fromkeys(order.written.tp for order in found.orders))
        names = some_of(assignments, SHOWN)
        yield (
            f"an earlier run ({found.orders[0].at}) may have left"
            f" {counted(len(assignments), 'assignment')} in the order of an election: {names}{_until(found.orders)}"
        )
    if found.elections:
        last = max(one.until for one in found.elections).astimezone(UTC)
        tps = [one.written.tp for one in found.elections]
        yield (
            f"an earlier run had no answer to the election of {counted(len(tps), 'partition')}:"
            f" {some_of(tps, SHOWN)}; it may be carried out until {last:%H:%M:%S} UTC ({last:%Y-%m-%d})"
        )
    for half_done in found.replacements[-1:]:
        file = half_done.detail.get("file")
        yield f"a controller replacement of an earlier run ({half_done.at}) is not done: {file}"
    for heal in found.heals:
        yield (
            f"an earlier run ({heal.at}) that moved replicas was not finished: copies may be in progress, and"
            " throttles of replication may be set"
        )
    yield from _restore_lines(found.restores)
    for entry in found.entries[:SHOWN]:
        yield f"an earlier run ({entry.at}) sent a request whose end is not known: {entry.action}"


def _until(orders: Sequence[OpenOrder]) -> str:
    untils = [order.unanswered_until for order in orders if order.unanswered_until is not None]
    if not untils:
        return ""
    last = max(untils).astimezone(UTC)
    return f"; its requests without an answer may be carried out until {last:%H:%M:%S} UTC ({last:%Y-%m-%d})"


def _restore_lines(restores: Sequence[OpenRestore]) -> Iterator[str]:
    for one in restores[:SHOWN]:
        yield printable(
            f"a restore of an earlier run ({one.at}) was not finished: {counted(one.records, 'rescued record')} of"
            f" {one.directory} ({' '.join(one.words)}); the same command writes what is missing"
        )
    if len(restores) > SHOWN:
        yield f"… and {len(restores) - SHOWN:,} more restores that were not finished"


def settled_lines(settled: SettledOrders) -> Iterator[str]:
    """Counts, then the partitions whose order could not be restored, then those whose election was in doubt."""
    counts = Counter(row.fate for row in settled.rows)
    if settled.restores:
        many = counted(len(settled.restores), "restore")
        yield f"{many} of rescued records still to be finished, by its own command"
    elif not settled.rows and not settled.entries:
        yield "nothing is unfinished, according to this journal (--plan FILE finishes a run of another journal)"
        return
    if settled.rows:
        named = ", ".join(f"{counts[fate]:,} {fate}" for fate in OrderOutcome if counts[fate])
        yield f"{counted(len(settled.rows), 'assignment')}: {named}"
    if settled.entries:
        yield f"{counted(settled.entries, 'request')} of earlier runs closed"
    explained = [row for row in settled.of(OrderOutcome.ALREADY) if row.why]
    shown = [*settled.of(OrderOutcome.LEFT, OrderOutcome.FOREIGN), *explained]
    if shown:
        yield ""
        columns = (TextColumn("PARTITION"), TextColumn("ORDER"), TextColumn("WHY", below=True))
        yield from table(columns, [(str(r.tp), str(r.fate), printable(r.why)) for r in shown[:SHOWN_ROWS]])
    if len(shown) > SHOWN_ROWS:
        yield f"… and {len(shown) - SHOWN_ROWS:,} more (--output json shows all)"


def settled_document(settled: SettledOrders) -> Iterator[str]:
    """``ktriage.resume/1``."""
    counts = Counter(row.fate for row in settled.rows)
    return document(
        "resume",
        {
            "counts": {fate.value: counts[fate] for fate in OrderOutcome},
            "requestsClosed": settled.entries,
            "assignments": [
                {**tp_json(row.tp), "order": row.fate.value, "reason": row.why} for row in settled.rows
            ],
            "restores": [
                {"directory": one.directory, "options": list(one.words), "records": one.records, "at": one.at}
                for one in settled.restores
            ],
        },
    )
