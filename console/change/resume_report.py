"""What an earlier run left unfinished, and the result of finishing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from console.change.unfinished_orders import OrderOutcome, Row, SettledOrders
from console.errors import InputError
from console.journal.change_kinds import unfinished_change_lines
from console.journal.cluster_lock import LockHolder
from console.journal.errors import JournalError
from console.journal.run_records import other_runs_lines
from console.journal.unfinished_entries import Unfinished
from console.output.json_document import document
from recovery.wording.quantity_text import counted, printable
from widgets.fields import Field, json_of, partition_fields, text_rows

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
    yield from unfinished_change_lines(found.changes, lambda run_id, at: _named(found, run_id, at), now)


def _named(found: Unfinished, run_id: str, at: str) -> str:
    """The run with its operator: in a shared state directory it may be somebody else's."""
    known = ", ".join(filter(None, (found.operators.get(run_id, ""), at)))
    return printable(f"an earlier run ({known})") if known else "an earlier run"


NOTHING = "nothing is unfinished, according to this journal (--plan FILE finishes a run of another journal)"
NO_VOTERS = (
    "no change of the voters is unfinished, according to this journal; of the rest, --bootstrap-server tells"
)


def settled_lines(settled: SettledOrders, nothing: str = NOTHING) -> Iterator[str]:
    """Counts, then the partitions whose order could not be reverted, then those whose election was in doubt;
    ``nothing`` if there is nothing to say.
    """
    counts = Counter(row.fate for row in settled.rows)
    if settled.restores:
        many = counted(len(settled.restores), "restore")
        yield f"{many} of rescued records still to be finished, by its own command"
    elif not settled.rows and not settled.entries:
        if nothing:
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
        yield from text_rows(ORDER, shown, limit=SHOWN_ROWS, rest=" (--output json shows all)")


ORDER: tuple[Field[Row], ...] = (
    *partition_fields(lambda r: r.tp),
    Field("order", "ORDER", lambda r: r.fate.value, lambda r: str(r.fate)),
    Field("reason", "WHY", lambda r: r.why, lambda r: printable(r.why), below=True),
)


def settled_document(settled: SettledOrders) -> Iterator[str]:
    """``ktriage.resume/2``."""
    counts = Counter(row.fate for row in settled.rows)
    return document(
        "resume",
        {
            "counts": {fate.value: counts[fate] for fate in OrderOutcome},
            "requestsClosed": settled.entries,
            "assignments": list(map(json_of(ORDER), settled.rows)),
            "restores": [
                {
                    "directory": one.command[1],
                    "options": list(one.command[2:]),
                    "records": int(one.detail.get("records", 0)),
                    "at": one.at,
                }
                for one in settled.restores
            ],
        },
    )
