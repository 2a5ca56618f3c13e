"""What a rescue directory holds, as text and as JSON (docs/output.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from backends.base.simulated_clusters import is_simulated
from console.output.json_document import document
from console.output.rescue.rescue_report import broker_text, epochs_text, offsets_text, unread_lines
from console.rescue.branch_summary import BranchSummary
from console.rescue.record_batches import Record
from console.rescue.rescued_branch import Ending, RescueContents, RescuedBranch
from console.rescue.rescued_segment import DamagedPart
from recovery.rescue_branches import BranchPart
from recovery.wording.producer_text import tail_producer_lines
from recovery.wording.quantity_text import counted, human_bytes, printable, simulated_time
from widgets.text_table import TextColumn, table

MOST_DAMAGED = 5
"""Damaged parts of a branch that are told."""
MOST_TEXT = 200
"""Characters of a key or a value that are shown."""


class BranchShown(NamedTuple):
    """A branch and what it holds. ``size`` are the bytes that are there now. ``records`` are its first ones. Where
    parts of it are ``damaged``, summary and records are of its sound batches.
    """

    rescued: RescuedBranch
    summary: BranchSummary
    problem: str | None
    size: int
    records: tuple[Record | str, ...] = ()
    damaged: tuple[DamagedPart, ...] = ()

    @property
    def size_text(self) -> str:
        """With the bytes that were written, where they are others."""
        written = sum(segment.size for segment in self.rescued.segments)
        there = human_bytes(self.size)
        return there if self.size == written else f"{there} of {human_bytes(written)}"


_COLUMNS = (
    TextColumn("PARTITION"),
    TextColumn("BROKER", right=True),
    TextColumn("PART"),
    TextColumn("OFFSETS"),
    TextColumn("EPOCH"),
    TextColumn("RECORDS", right=True),
    TextColumn("WITH KEY", right=True),
    TextColumn("HEADERS", right=True),
    TextColumn("PRODUCERS", right=True),
    TextColumn("BYTES", right=True),
    TextColumn("COMPRESSION"),
    TextColumn("TRANSACTIONS", below=True),
    TextColumn("WRITTEN", below=True),
    TextColumn("PROBLEM", below=True),
)


def verified_line(shown: Sequence[BranchShown]) -> str:
    """What was checked, if all of it is as it was written."""
    partitions = len({one.rescued.branch.tp for one in shown})
    batches = sum(one.summary.batches for one in shown)
    size = human_bytes(sum(one.size for one in shown))
    return (
        f"intact: {counted(partitions, 'partition')}, {counted(batches, 'batch', 'batches')}, {size}: every file"
        " has its SHA-256, every batch its checksum"
    )


def damage_lines(one: BranchShown) -> Iterator[str]:
    """Which offsets are lost with each damaged part, and what is sound; nothing of a branch without damage."""
    if not one.damaged:
        return
    for part in one.damaged[:MOST_DAMAGED]:
        yield f"  {part.offsets_text} (bytes {part.start:,} to {part.end:,} of {part.file})"
    if len(one.damaged) > MOST_DAMAGED:
        yield f"  … and {len(one.damaged) - MOST_DAMAGED:,} more damaged parts"
    sound = f"{counted(one.summary.records, 'record')} in {counted(one.summary.batches, 'batch', 'batches')}"
    yield f"  sound: {sound}"


def show_lines(contents: RescueContents, shown: Sequence[BranchShown], rows: int) -> Iterator[str]:
    """Counts first, then the branches, then their first records where those are wanted."""
    header = contents.index.header
    simulated = is_simulated(header.cluster_id)
    records = sum(one.summary.records for one in shown)
    broken = sum(one.problem is not None for one in shown)
    yield (
        f"{counted(len(shown), 'branch', 'branches')} of cluster {header.cluster_id},"
        f" {f'plan {header.plan_id}' if header.plan_id else 'without a plan'}:"
        f" {counted(records, 'record')}, {human_bytes(sum(one.size for one in shown))}; {broken:,} not whole"
    )
    yield from unread_lines(contents.index.unread)
    yield ""
    yield from table(_COLUMNS, [_row(one, simulated=simulated) for one in shown[: rows or None]])
    if rows and len(shown) > rows:
        yield f"… and {len(shown) - rows:,} more"
    yield from tail_producer_lines(
        one.summary.last_batches for one in shown if one.rescued.branch.part is BranchPart.TAIL
    )
    for one in shown:
        if one.records:
            yield ""
            yield f"{one.rescued.branch.tp}, broker {one.rescued.branch.broker}:"
            for record in one.records:
                yield f"  {record if isinstance(record, str) else record_line(record, simulated=simulated)}"


def show_document(contents: RescueContents, shown: Sequence[BranchShown]) -> Iterator[str]:
    """``ktriage.rescue-show/1``."""
    header = contents.index.header
    return document(
        "rescue-show",
        {
            "directory": str(contents.path),
            "clusterId": header.cluster_id,
            "planId": header.plan_id,
            "branches": [_fields(one) for one in shown],
            "unread": [
                {
                    "topic": one.tp.topic,
                    "partition": one.tp.partition,
                    "broker": one.broker,
                    "why": one.why,
                    "partly": one.partly,
                }
                for one in contents.index.unread
            ],
        },
    )


def _fields(one: BranchShown) -> dict[str, object]:
    branch, summary = one.rescued.branch, one.summary
    reported: dict[str, object] = {
        "topic": branch.tp.topic,
        "partition": branch.tp.partition,
        "broker": branch.broker,
        "part": str(branch.part),
        "startOffset": branch.start,
        "endOffset": branch.end,
        "bytes": one.size,
        "logDir": branch.log_dir or None,
        "problem": one.problem,
        "damaged": [_damaged_fields(part) for part in one.damaged],
        "batches": summary.batches,
        "records": summary.records,
        "committed": summary.endings.get(Ending.COMMITTED, 0),
        "aborted": summary.endings.get(Ending.ABORTED, 0),
        "open": summary.endings.get(Ending.OPEN, 0),
        "control": summary.control,
        "producers": summary.producers,
        "producerIds": [
            {
                "producerId": p.producer_id,
                "epoch": p.epoch,
                "lastSequence": p.last_sequence,
                "records": p.records,
            }
            for p in summary.last_batches
        ],
        "keys": summary.keys,
        "headers": summary.headers,
        "compressions": [{"codec": codec, "records": n} for codec, n in summary.codecs.items()],
        "firstMs": summary.first_ms,
        "lastMs": summary.last_ms,
    }
    if one.records:
        reported["firstRecords"] = [
            {"unreadable": record} if isinstance(record, str) else _record_fields(record)
            for record in one.records
        ]
    return reported


def _damaged_fields(part: DamagedPart) -> dict[str, object]:
    return {
        "file": part.file,
        "startByte": part.start,
        "endByte": part.end,
        "firstOffset": part.first_offset,
        "nextOffset": part.next_offset,
        "why": part.text,
    }


def _record_fields(record: Record) -> dict[str, object]:
    return {
        "offset": record.offset,
        "timestampMs": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [{"name": _text(name), "value": _text(value)} for name, value in record.headers],
    }


def record_line(record: Record, *, simulated: bool = False) -> str:
    """Offset, time, key, value and headers of a record. The time of a simulated cluster begins at 0."""
    headers = "".join(f"  {_short(name)}={_short(value)}" for name, value in record.headers)
    at = _time(record.timestamp, simulated=simulated)
    return f"{record.offset:,}  {at}  {_short(record.key)}  {_short(record.value)}{headers}"


def _short(data: bytes | None) -> str:
    text = _text(data)
    if text is None:
        return "null"
    text = _on_one_line(text)
    return printable(text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…")


def _on_one_line(text: str) -> str:
    """JSON without its line breaks; other text as it is."""
    if "\n" not in text or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _text(data: bytes | None) -> str | None:
    """Text where it is text, else hexadecimal digits."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"


def _row(one: BranchShown, *, simulated: bool) -> tuple[str, ...]:
    branch, summary = one.rescued.branch, one.summary
    place = (
        str(branch.tp),
        broker_text(branch),
        str(branch.part),
        offsets_text(branch),
        epochs_text(branch.spans),
    )
    endings = (f"{n:,} {ending}" for ending, n in summary.endings.items() if ending is not Ending.NONE)
    times = () if summary.first_ms is None else (summary.first_ms, summary.last_ms or 0)
    written = " to ".join(_time(ms, simulated=simulated) for ms in times)
    codecs = ", ".join(sorted(summary.codecs))
    return (
        *place,
        f"{summary.records:,}",
        *(f"{n:,}" if n else "" for n in (summary.keys, summary.headers, summary.producers)),
        one.size_text,
        codecs,
        ", ".join(endings),
        written,
        one.problem or "",
    )


def _time(ms: int, *, simulated: bool) -> str:
    if simulated and (virtual := simulated_time(ms)):
        return virtual
    try:
        return (
            datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"
