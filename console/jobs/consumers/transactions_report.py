"""Open and hanging transactions, and what came of a fix, as text and as JSON (docs/output.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from console.jobs.consumers.fix_transactions import MissingMarker, PreparedMarkers, WrittenMarkers
from console.jobs.consumers.hanging_transactions import JudgedTransaction, PartitionsTransactions
from console.output.json_document import document
from recovery.model import Unknown
from recovery.wording.quantity_text import counted, printable, some_of
from recovery.wording.transaction_text import transaction_text
from widgets.text_table import TextColumn, table

_COLUMNS = (
    TextColumn("PARTITION"),
    TextColumn("TRANSACTIONAL ID"),
    TextColumn("PRODUCER", right=True),
    TextColumn("EPOCH", right=True),
    TextColumn("FROM OFFSET", right=True),
    TextColumn("BEHIND IT", right=True),
    TextColumn("WHAT BECAME OF IT", below=True),
)
_MARKER_COLUMNS = (
    TextColumn("PARTITION"),
    TextColumn("LEADER", right=True),
    TextColumn("TRANSACTIONAL ID"),
    TextColumn("PRODUCER", right=True),
    TextColumn("EPOCH", right=True),
    TextColumn("MARKER"),
    TextColumn("WHY", below=True),
)
_LEFT_COLUMNS = (TextColumn("PARTITION"), TextColumn("PRODUCER", right=True), TextColumn("LEFT", below=True))


def transaction_lines(found: PartitionsTransactions, limit: int) -> Iterator[str]:
    """Counts, what could not be read, then the transactions: the hanging ones first."""
    yield from _summary(found)
    rows = sorted(found.rows, key=lambda row: (not row.hanging, row.transaction.tp))
    if rows:
        yield ""
        yield from transaction_table(rows, found, limit)
    for tp, groups in found.waiting.items():
        yield (
            f"{tp}: {printable(some_of(groups))} committed the last stable offset"
            f" ({found.partitions[tp].last_stable:,}): a group that reads committed records stops there"
        )


def transaction_table(
    rows: Sequence[JudgedTransaction], found: PartitionsTransactions, limit: int
) -> Iterator[str]:
    """A line for each transaction, as many as ``limit`` says (0: all)."""
    shown = rows[: limit or None]
    yield from table(_COLUMNS, [_row(row, found) for row in shown])
    if len(shown) < len(rows):
        yield f"… and {len(rows) - len(shown):,} more (--rows 0, or --output json, shows all)"


def endings_text(rows: Sequence[JudgedTransaction]) -> str:
    """How many ended in each way, "2 open and alive, 1 hanging, was committed"; empty without transactions."""
    endings = Counter(
        "not known" if isinstance(row.judgement, Unknown) else str(row.judgement.ending) for row in rows
    )
    return ", ".join(f"{number:,} {ending}" for ending, number in endings.items())


def _summary(found: PartitionsTransactions) -> Iterator[str]:
    none = "none is open"
    if found.hidden_topics or (found.unread and not found.partitions):
        none = "none is open in what may be seen" if found.partitions else "not known"
    reported = endings_text(found.rows) or none
    yield f"transactions in {counted(len(found.partitions), 'partition')}: {reported}"
    if found.unread:
        tp, why = next(iter(found.unread.items()))
        yield f"{counted(len(found.unread), 'partition')} could not be read ({tp}: {printable(str(why))})"
    yield from found.hidden_topics
    for reason in found.not_asked:
        yield f"a coordinator may know more: {printable(str(reason))}"
    for reason in found.groups_not_listed:
        yield f"there may be other groups: {printable(str(reason))}"


def _row(row: JudgedTransaction, found: PartitionsTransactions) -> tuple[str, ...]:
    transaction = row.transaction
    partition = found.partitions[transaction.tp]
    return (
        str(transaction.tp),
        _id_of(row),
        str(transaction.producer_id),
        str(transaction.epoch),
        f"{transaction.start_offset:,}",
        f"{partition.high_watermark - partition.last_stable:,}",
        printable(transaction_text(row.judgement)),
    )


def _id_of(row: JudgedTransaction) -> str:
    return "?" if row.coordinated is None else printable(row.coordinated.transactional_id)


def prepared_marker_lines(prepared: PreparedMarkers, limit: int) -> Iterator[str]:
    """Which markers are written, and which transactions are left."""
    yield from _summary(prepared.found)
    yield ""
    yield f"{counted(len(prepared.markers), 'marker')} to be written"
    shown = prepared.markers[: limit or None]
    if shown:
        yield from table(_MARKER_COLUMNS, [_marker_row(one) for one in shown])
    if len(shown) < len(prepared.markers):
        yield f"… and {len(prepared.markers) - len(shown):,} more"
    if prepared.left:
        yield ""
        left = prepared.left[: limit or None]
        rows = [(str(one.tp), str(one.producer_id), printable(one.why)) for one in left]
        yield from table(_LEFT_COLUMNS, rows)
        if len(left) < len(prepared.left):
            yield f"… and {len(prepared.left) - len(left):,} more"


def _marker_row(one: MissingMarker) -> tuple[str, ...]:
    why = transaction_text(one.row.judgement)
    return (
        str(one.marker.tp),
        str(one.leader),
        _id_of(one.row),
        str(one.marker.producer_id),
        str(one.marker.epoch),
        "COMMIT" if one.marker.commit else "ABORT",
        f"named by the operator; {why}" if one.named else printable(why),
    )


def written_marker_lines(written: WrittenMarkers) -> Iterator[str]:
    """How many transactions are ended now, and where consumers read on to."""
    if not written.sent:
        yield "nothing was sent"
        return
    done = len(written.prepared.markers) - len(written.failures)
    yield f"{counted(done, 'marker')} written and read back"
    for tp, one in (written.after.partitions if written.after else {}).items():
        yield f"{tp}: last stable offset {one.last_stable:,} of {one.high_watermark:,}"


def transactions_document(found: PartitionsTransactions) -> Iterator[str]:
    """``ktriage.transactions/1``."""
    return document("transactions", _found_json(found))


def _found_json(found: PartitionsTransactions) -> dict[str, object]:
    return {
        "complete": found.complete,
        "notSeen": list(found.hidden_topics),
        "notAsked": [str(why) for why in found.not_asked],
        "unread": [
            {"topic": tp.topic, "partition": tp.partition, "why": str(why)}
            for tp, why in found.unread.items()
        ],
        "groupsNotListed": [str(why) for why in found.groups_not_listed],
        "transactions": [transaction_json(row, found) for row in found.rows],
    }


def transaction_json(row: JudgedTransaction, found: PartitionsTransactions) -> dict[str, object]:
    """A *transaction* of docs/output.md."""
    transaction, judgement = row.transaction, row.judgement
    partition = found.partitions[transaction.tp]
    known = not isinstance(judgement, Unknown)
    return {
        "topic": transaction.tp.topic,
        "partition": transaction.tp.partition,
        "leader": partition.leader,
        "transactionalId": None if row.coordinated is None else row.coordinated.transactional_id,
        "coordinatorState": None if row.coordinated is None else str(row.coordinated.state),
        "producerId": transaction.producer_id,
        "producerEpoch": transaction.epoch,
        "startOffset": transaction.start_offset,
        "lastStableOffset": partition.last_stable,
        "highWatermark": partition.high_watermark,
        "ending": judgement.ending.name.lower() if not isinstance(judgement, Unknown) else None,
        "evidence": judgement.evidence.name.lower() if not isinstance(judgement, Unknown) else str(judgement),
        "certain": known and not isinstance(judgement, Unknown) and judgement.certain,
        "waitingGroups": list(found.waiting.get(transaction.tp, ())),
    }


def written_markers_document(written: WrittenMarkers) -> Iterator[str]:
    """``ktriage.transactions-fix/1``."""
    failed = {(one.tp, one.producer_id): one.why for one in written.failures}
    return document(
        "transactions-fix",
        {
            "sent": written.sent,
            "markers": [
                {
                    "topic": one.marker.tp.topic,
                    "partition": one.marker.tp.partition,
                    "leader": one.leader,
                    "producerId": one.marker.producer_id,
                    "producerEpoch": one.marker.epoch,
                    "result": "COMMIT" if one.marker.commit else "ABORT",
                    "namedByOperator": one.named,
                    "problem": failed.get((one.marker.tp, one.marker.producer_id)),
                }
                for one in written.prepared.markers
            ],
            "left": [
                {
                    "topic": n.tp.topic,
                    "partition": n.tp.partition,
                    "producerId": n.producer_id,
                    "reason": n.why,
                }
                for n in written.prepared.left
            ],
        },
    )
