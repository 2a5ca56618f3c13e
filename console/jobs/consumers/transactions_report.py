"""Open and hanging transactions, and what came of a fix, as text and as JSON (docs/output.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from console.change.change import ChangeReport
from console.jobs.consumers.fix_transactions import MissingMarker, NotEnded, PreparedMarkers, WrittenMarkers
from console.jobs.consumers.hanging_transactions import JudgedTransaction, PartitionsTransactions
from console.output.json_document import document
from console.reading.consumer_reading import MOST_LINES, consumer_json, consumer_lines
from recovery.model import Unknown
from recovery.transactions.transaction_values import PartitionTransactions
from recovery.wording.quantity_text import counted, printable, some_of
from recovery.wording.transaction_text import transaction_text
from widgets.fields import Field, data_field, id_field, json_of, partition_fields, text_field, text_rows


def transaction_fields(found: PartitionsTransactions) -> tuple[Field[JudgedTransaction], ...]:
    """A *transaction* of docs/output.md, and its line."""

    def partition(row: JudgedTransaction) -> PartitionTransactions:
        return found.partitions[row.transaction.tp]

    return (
        *partition_fields(lambda r: r.transaction.tp),
        data_field("leader", lambda r: partition(r).leader),
        Field(
            "transactionalId",
            "TRANSACTIONAL ID",
            lambda r: None if r.coordinated is None else r.coordinated.transactional_id,
            _id_of,
        ),
        data_field("coordinatorState", lambda r: None if r.coordinated is None else str(r.coordinated.state)),
        id_field("producerId", "PRODUCER", lambda r: r.transaction.producer_id),
        id_field("producerEpoch", "EPOCH", lambda r: r.transaction.epoch),
        Field("startOffset", "FROM OFFSET", lambda r: r.transaction.start_offset, right=True),
        text_field(
            "BEHIND IT", lambda r: f"{partition(r).high_watermark - partition(r).last_stable:,}", right=True
        ),
        data_field("lastStableOffset", lambda r: partition(r).last_stable),
        data_field("highWatermark", lambda r: partition(r).high_watermark),
        data_field(
            "ending",
            lambda r: None if isinstance(r.judgement, Unknown) else r.judgement.ending.name.lower(),
        ),
        data_field(
            "evidence",
            lambda r: (
                str(r.judgement) if isinstance(r.judgement, Unknown) else r.judgement.evidence.name.lower()
            ),
        ),
        data_field("certain", lambda r: not isinstance(r.judgement, Unknown) and r.judgement.certain),
        data_field("waitingGroups", lambda r: list(found.waiting.get(r.transaction.tp, ()))),
        text_field("WHAT BECAME OF IT", lambda r: printable(transaction_text(r.judgement)), below=True),
    )


def _id_of(row: JudgedTransaction) -> str:
    return "?" if row.coordinated is None else printable(row.coordinated.transactional_id)


def _why(marker: MissingMarker) -> str:
    why = transaction_text(marker.row.judgement)
    return f"named by the operator; {why}" if marker.named else printable(why)


MARKER: tuple[Field[MissingMarker], ...] = (
    *partition_fields(lambda m: m.marker.tp),
    id_field("leader", "LEADER", lambda m: m.leader),
    text_field("TRANSACTIONAL ID", lambda m: _id_of(m.row)),
    id_field("producerId", "PRODUCER", lambda m: m.marker.producer_id),
    id_field("producerEpoch", "EPOCH", lambda m: m.marker.epoch),
    Field("result", "MARKER", lambda m: "COMMIT" if m.marker.commit else "ABORT"),
    data_field("namedByOperator", lambda m: m.named),
    text_field("WHY", _why, below=True),
)
NOT_ENDED: tuple[Field[NotEnded], ...] = (
    *partition_fields(lambda n: n.tp),
    id_field("producerId", "PRODUCER", lambda n: n.producer_id),
    Field("reason", "LEFT", lambda n: n.why, lambda n: printable(n.why), below=True),
)


def transaction_lines(found: PartitionsTransactions, limit: int) -> Iterator[str]:
    """Counts, what could not be read, then the transactions: the hanging ones first."""
    yield from transaction_summary(found)
    rows = sorted(found.rows, key=lambda row: (not row.hanging, row.transaction.tp))
    if rows:
        yield ""
        yield from text_rows(transaction_fields(found), rows, limit=limit)
    for tp, groups in found.waiting.items():
        yield (
            f"{tp}: {printable(some_of(groups))} committed the last stable offset"
            f" ({found.partitions[tp].last_stable:,}): a group that reads committed records stops there"
        )


def endings_text(rows: Sequence[JudgedTransaction]) -> str:
    """How many ended in each way, "2 open and alive, 1 hanging, was committed"; empty without transactions."""
    endings = Counter(
        "not known" if isinstance(row.judgement, Unknown) else str(row.judgement.ending) for row in rows
    )
    return ", ".join(f"{number:,} {ending}" for ending, number in endings.items())


def transaction_summary(found: PartitionsTransactions) -> Iterator[str]:
    """Counts, and what could not be read."""
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


def prepared_marker_lines(prepared: PreparedMarkers, limit: int) -> Iterator[str]:
    """Which markers are written, and which transactions are left."""
    yield from transaction_summary(prepared.found)
    yield ""
    yield f"{counted(len(prepared.markers), 'marker')} to be written"
    yield from text_rows(MARKER, prepared.markers, limit=limit, rest="")
    if prepared.left:
        yield ""
        yield from text_rows(NOT_ENDED, prepared.left, limit=limit, rest="")


def written_marker_lines(written: WrittenMarkers) -> Iterator[str]:
    """How many transactions are ended now, and where consumers read on to."""
    if not written.sent:
        yield "nothing was sent"
        return
    if written.consumer is not None:
        yield from consumer_lines(written.consumer, MOST_LINES)
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
        "transactions": list(map(json_of(transaction_fields(found)), found.rows)),
    }


def written_markers_document(written: WrittenMarkers) -> Iterator[str]:
    """``ktriage.transactions-fix/1``."""
    marker_json = json_of(MARKER)
    failed = {(one.tp, one.producer_id): one.why for one in written.failures}
    return document(
        "transactions-fix",
        {
            "sent": written.sent,
            "markers": [
                {**marker_json(one), "problem": failed.get((one.marker.tp, one.marker.producer_id))}
                for one in written.prepared.markers
            ],
            "left": list(map(json_of(NOT_ENDED), written.prepared.left)),
            "consumer": consumer_json(written.consumer),
        },
    )


def _marker_problems(written: WrittenMarkers) -> Iterator[str]:
    return (f"not ended: {one.tp}, producer {one.producer_id}: {one.why}" for one in written.failures)


WRITTEN_MARKERS = ChangeReport(
    prepared_marker_lines, written_marker_lines, _marker_problems, written_markers_document
)
