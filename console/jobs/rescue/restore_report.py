"""What is written back, and what came of it, as text and as JSON (docs/output.md)."""

from __future__ import annotations

from collections.abc import Iterator

from console.change.change import ChangeReport
from console.jobs.rescue.rescue_report import offsets_text
from console.jobs.rescue.restore_records import PreparedRestore, RestoredRecords
from console.jobs.rescue.restore_run import TargetPartition
from console.output.json_document import document
from console.reading.consumer_reading import MOST_LINES, consumer_json, consumer_lines
from console.rescue_files.restore_selection import REFUSED_BY, BranchCounts
from recovery.model import Unknown
from recovery.wording.quantity_text import counted
from widgets.fields import Field, data_field, id_field, json_of, partition_fields, text_field, text_rows


def prepared_restore_lines(prepared: PreparedRestore, rows: int) -> Iterator[str]:
    """What goes where, and what is left out."""
    if prepared.records <= 0 and prepared.written_before:
        when = f" ({prepared.written_at})" if prepared.written_at else ""
        everything = counted(prepared.written_before, "record")
        yield f"everything was written back by an earlier run{when}: {everything}; nothing is left to do"
        found = [number for _, number in prepared.recounted.values() if not isinstance(number, Unknown)]
        unread = len(prepared.recounted) - len(found)
        not_counted = f"; {counted(unread, 'partition')} could not be counted" if unread else ""
        yield f"{sum(found):,} counted in the target now{not_counted}"
        yield from prepared.damaged
        return
    before = (
        f" ({prepared.written_before:,} were written by an earlier run)" if prepared.written_before else ""
    )
    branches = counted(len(prepared.rows), "branch", "branches")
    yield f"{counted(prepared.records, 'record')} of {branches} to be written back{before}"
    if prepared.creates is not None:
        yield f"{prepared.to.created_text}: it keeps its records until it is deleted"
    yield from prepared.notes
    yield ""
    yield from text_rows(TARGET, prepared.rows, limit=rows, rest="")


def restore_row_text(row: TargetPartition) -> str:
    """One branch, and where its records go."""
    branch = row.rescued.branch
    left_out = _left_out(row)
    return (
        f"{counted(row.counts.selected, 'record')} of {branch.tp} to {row.tp} (offsets {offsets_text(branch)}"
        f" of broker {branch.broker}){_anew(row)}{'; left out: ' if left_out else ''}{left_out}"
    )


def restored_lines(written: RestoredRecords) -> Iterator[str]:
    """How many records are there now."""
    if written.counted is None:
        yield "nothing was sent"
        return
    if written.consumer is not None:
        yield from consumer_lines(written.consumer, MOST_LINES)
    yield restored_text(written)


def restored_text(written: RestoredRecords) -> str:
    """How many records were written, and how many of them were found afterwards."""
    found = sum(number for number in (written.counted or {}).values() if not isinstance(number, Unknown))
    return f"{counted(written.records, 'record')} written back; {found:,} counted in the target afterwards"


def restore_document(written: RestoredRecords) -> Iterator[str]:
    """``ktriage.restore/1``."""
    prepared = written.prepared
    now = {tp: number for tp, (_, number) in prepared.recounted.items()}
    found = now if written.counted is None else written.counted
    done = {(one.rescued.directory, one.tp): one for one in written.branches}
    branches = []
    for row in prepared.rows:
        result = done.get((row.rescued.directory, row.tp))
        branches.append(
            {
                **_TARGET_JSON(row),
                **_counts_json(row.counts),
                "written": 0 if result is None else result.records,
                "problem": None if result is None else result.problem,
            }
        )
    return document(
        "restore",
        {
            "directory": str(prepared.contents.path),
            "target": prepared.target,
            "creates": prepared.creates,
            "sent": written.counted is not None,
            "records": written.records,
            "damaged": list(prepared.damaged),
            "branches": branches,
            "counted": [
                {
                    "topic": tp.topic,
                    "partition": tp.partition,
                    "records": None if isinstance(n, Unknown) else n,
                }
                for tp, n in found.items()
            ],
            "failures": [
                {"topic": tp.topic, "partition": tp.partition, "reason": why} for tp, why in written.failures
            ],
            "consumer": consumer_json(written.consumer),
        },
    )


def _restore_problems(written: RestoredRecords) -> Iterator[str]:
    return (f"not all written back: {tp}: {why}" for tp, why in written.failures)


RESTORED = ChangeReport(prepared_restore_lines, restored_lines, _restore_problems, restore_document)


def _anew(row: TargetPartition) -> str:
    return f"; {row.counts.reencoded:,} are encoded anew" if row.counts.reencoded else ""


def _left_out(row: TargetPartition) -> str:
    counts = row.counts
    return ", ".join(
        f"{number:,} {what}"
        for number, what in (
            (counts.aborted, "of aborted transactions"),
            (counts.open, "of transactions without an end"),
            (counts.control, "transaction markers"),
            (counts.filtered, "by the options"),
            (counts.outside, "in the leader's log"),
        )
        if number
    )


TARGET: tuple[Field[TargetPartition], ...] = (
    *partition_fields(lambda r: r.rescued.branch.tp, "FROM"),
    id_field("broker", "BROKER", lambda r: r.rescued.branch.broker),
    Field(
        "startOffset", "OFFSETS", lambda r: r.rescued.branch.start, lambda r: offsets_text(r.rescued.branch)
    ),
    data_field("endOffset", lambda r: r.rescued.branch.end),
    Field("targetTopic", "TO", lambda r: r.tp.topic, lambda r: str(r.tp)),
    text_field("RECORDS", lambda r: f"{r.counts.selected:,}", right=True),
    text_field("ENCODED ANEW", lambda r: f"{r.counts.reencoded:,}", right=True),
    text_field("LEFT OUT", _left_out, below=True),
)
"""A rescued branch, and where its records go; the counts stand in :func:`_counts_json`."""
_TARGET_JSON = json_of(TARGET)


def _counts_json(counts: BranchCounts) -> dict[str, object]:
    fields: dict[str, object] = counts._asdict()
    by = {name: fields.pop(name) for name in REFUSED_BY}
    names = {"too_old": "tooOld", "too_new": "tooNew", "too_large": "tooLarge", "keyless": "keyless"}
    return {**fields, "refused": counts.refused, "refusedBy": {names[name]: by[name] for name in names}}
