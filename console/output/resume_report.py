"""What an earlier run left unfinished, and the result of finishing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from console.errors import InputError
from console.journal.cluster_lock import LockHolder
from console.journal.errors import JournalError
from console.journal.recorded_keeps import keep_moves
from console.journal.run_records import other_runs_lines
from console.journal.unfinished_entries import OpenOrder, Unfinished
from console.operations.elections.unfinished_orders import OrderOutcome, SettledOrders
from console.output.json_document import document
from console.output.plan.plan_json import tp_json
from recovery.log_preservation import taken_out
from recovery.wording.quantity_text import counted, either, printable, some_of
from widgets.text_table import TextColumn, table

SHOWN = 5
SHOWN_ROWS = 20
"""A killed run may leave thousands of partitions."""


def unknown_line(error: JournalError | InputError) -> str:
    """What cannot be said, and done, because the journal cannot be read."""
    # Where the named state directory cannot be used no change can be recorded, so none is sent.
    nothing = "nothing can be changed from here, and " if isinstance(error, InputError) else ""
    return f"{nothing}whether an earlier run left something unfinished is not known: {error}"


def open_lines(found: Unfinished, running: LockHolder | None, now: datetime) -> Iterator[str]:
    """The same for a command that only reads. The open entries of a running run are not shown as left by an
    earlier run.
    """
    if running is None:
        yield from unfinished_lines(found, now)
        return
    yield printable(f"a run is still going on and may be changing this cluster: {running}")
    yield from unfinished_lines(found.of_other_runs(running.run_id), now)


def unfinished_lines(found: Unfinished, now: datetime) -> Iterator[str]:
    """What an earlier run left, in a few lines, as it stands ``now``."""
    yield from map(printable, other_runs_lines(found.others))
    if found.orders:
        # A partition whose order was written twice, and once without an answer, is one assignment.
        assignments = list(dict.fromkeys(order.written.tp for order in found.orders))
        names = some_of(assignments, SHOWN)
        run = _named(found, found.orders[0].run_id, found.orders[0].at)
        yield (
            f"{run} may have left {counted(len(assignments), 'assignment')} in the order of an election:"
            f" {names}{_unanswered(found.orders, now)}"
        )
    if found.elections:
        tps = [one.written.tp for one in found.elections]
        until = max(one.until for one in found.elections)
        yield (
            f"{_named(found, found.elections[0].run_id)} had no answer to the election of"
            f" {counted(len(tps), 'partition')}: {some_of(tps, SHOWN)}; it {_carried_out(until, now)}"
        )
    for half_done in found.replacements[-1:]:
        run = _named(found, half_done.run_id, half_done.at)
        yield f"a controller replacement of {run} is not done: {printable(str(half_done.detail.get('file')))}"
    for heal in found.heals:
        yield (
            f"{_named(found, heal.run_id, heal.at)} that moved replicas was not finished: copies may be in"
            " progress, and throttles of replication may be set"
        )
    for keep in found.keeps:
        brokers = sorted({broker for one in keep_moves(keep.detail) for broker in taken_out(one.move)})
        yield (
            f"{_named(found, keep.run_id, keep.at)} was to keep the logs of brokers that are down: whether each is"
            f" out of the replica sets is not known. Do not start broker {either(brokers)} before ktriage resume"
            " has looked"
        )
    yield from _restore_lines(found)
    for entry in found.entries[:SHOWN]:
        run = _named(found, entry.run_id, entry.at)
        yield f"{run} sent a request whose end is not known: {printable(entry.action)}"


def _named(found: Unfinished, run_id: str, at: str = "") -> str:
    """The run with its operator: in a shared state directory it may be somebody else's."""
    known = ", ".join(filter(None, (found.operators.get(run_id, ""), at)))
    return printable(f"an earlier run ({known})") if known else "an earlier run"


def _unanswered(orders: Sequence[OpenOrder], now: datetime) -> str:
    untils = [order.unanswered_until for order in orders if order.unanswered_until is not None]
    return f"; its requests without an answer {_carried_out(max(untils), now)}" if untils else ""


def _carried_out(until: datetime, now: datetime) -> str:
    """What may still become of requests without an answer."""
    last = until.astimezone(UTC)
    moment = f"{last:%H:%M:%S} UTC ({last:%Y-%m-%d})"
    if now < until:
        return f"may be carried out until {moment}"
    return f"could be carried out until {moment}; that time has passed, and resume checks what became of them"


def _restore_lines(found: Unfinished) -> Iterator[str]:
    for one in found.restores[:SHOWN]:
        yield printable(
            f"a restore of {_named(found, one.run_id, one.at)} was not finished:"
            f" {counted(one.records, 'rescued record')} of {one.directory} ({' '.join(one.words)});"
            f" {one.waits or 'this command writes what is missing'}"
        )
    if len(found.restores) > SHOWN:
        yield f"… and {len(found.restores) - SHOWN:,} more restores that were not finished"


NOTHING = "nothing is unfinished, according to this journal (--plan FILE finishes a run of another journal)"
NO_VOTERS = (
    "no change of the voters is unfinished, according to this journal; of the rest, --bootstrap-server tells"
)


def settled_lines(settled: SettledOrders, nothing: str = NOTHING) -> Iterator[str]:
    """Counts, then the partitions whose order could not be restored, then those whose election was in doubt."""
    counts = Counter(row.fate for row in settled.rows)
    if settled.restores:
        many = counted(len(settled.restores), "restore")
        yield f"{many} of rescued records still to be finished, by its own command"
    elif not settled.rows and not settled.entries:
        yield nothing
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
