"""The course of ``ktriage rescue read``, ``show`` and ``verify``, and of ``ktriage restore``."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from backends.base.protocol import Backend
from backends.base.simulated_clusters import is_simulated
from console.cli.base.run import Run
from console.cli.base.terminal_operator import execute_change
from console.errors import InputError, Status
from console.jobs.rescue.rescue_read import RescueReading, RescueRequest, read_disks, read_plan
from console.jobs.rescue.rescue_report import (
    UNREAD,
    epochs_text,
    place_fields,
    rescue_document,
    rescue_lines,
    unread_lines,
)
from console.jobs.rescue.restore_records import RestoreRecords
from console.jobs.rescue.restore_report import RESTORED
from console.jobs.rescue.unread_disk_records import (
    RecordedDiskRead,
    partitions_to_waive,
    record_read,
    record_waived,
)
from console.journal.errors import JournalError
from console.journal.unread_disks import DiskPartition
from console.output.json_document import document
from console.paths import unused
from console.plan_file_checks import PlanPart, read_part, refuse_other_cluster
from console.rescue_files.branch_summary import (
    BranchSummary,
    bytes_there,
    check_segments,
    first_records,
    summarise_branch,
)
from console.rescue_files.record_batches import Record
from console.rescue_files.rescued_branch import Ending, RescueContents, RescuedBranch, open_rescue
from console.rescue_files.rescued_segment import DamagedPart
from console.signals import Stopped, StopRequest
from recovery.plan.values import Plan
from recovery.rescue_branches import BranchPart
from recovery.transactions.producer_sequences import CutOffProducer
from recovery.wording.producer_text import tail_producer_lines
from recovery.wording.quantity_text import counted, human_bytes, more, printable, simulated_time, some_of
from widgets.fields import Field, data_field, json_of, json_row, text_field, text_rows

# What a rescue directory holds, as text and as JSON (docs/output.md).

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
    yield from more(len(one.damaged) - MOST_DAMAGED, " damaged parts", "  ")
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
    yield from text_rows(_branch_fields(simulated=simulated), shown, limit=rows, rest="")
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
            "branches": [_branch_json(one) for one in shown],
            "unread": list(map(json_of(UNREAD), contents.index.unread)),
        },
    )


def _branch_fields(*, simulated: bool = False) -> tuple[Field[BranchShown], ...]:
    """A branch of a rescue directory and what it holds. ``simulated``: its times begin at 0."""

    def written(one: BranchShown) -> str:
        first, last = one.summary.first_ms, one.summary.last_ms or 0
        times = () if first is None else (first, last)
        return " to ".join(_time(ms, simulated=simulated) for ms in times)

    return (
        *place_fields(lambda b: b.rescued.branch),
        text_field("EPOCH", lambda b: epochs_text(b.rescued.branch.spans)),
        data_field("bytes", lambda b: b.size),
        data_field("logDir", lambda b: b.rescued.branch.log_dir or None),
        data_field("problem", lambda b: b.problem),
        data_field("damaged", lambda b: [_damaged_fields(part) for part in b.damaged]),
        data_field("batches", lambda b: b.summary.batches),
        Field("records", "RECORDS", lambda b: b.summary.records, right=True),
        data_field("committed", lambda b: b.summary.endings.get(Ending.COMMITTED, 0)),
        data_field("aborted", lambda b: b.summary.endings.get(Ending.ABORTED, 0)),
        data_field("open", lambda b: b.summary.endings.get(Ending.OPEN, 0)),
        data_field("control", lambda b: b.summary.control),
        text_field("WITH KEY", lambda b: _some(b.summary.keys), right=True),
        text_field("HEADERS", lambda b: _some(b.summary.headers), right=True),
        Field(
            "producers",
            "PRODUCERS",
            lambda b: b.summary.producers,
            lambda b: _some(b.summary.producers),
            right=True,
        ),
        data_field("producerIds", lambda b: [_producer_json(batch) for batch in b.summary.last_batches]),
        data_field("keys", lambda b: b.summary.keys),
        data_field("headers", lambda b: b.summary.headers),
        text_field("BYTES", lambda b: b.size_text, right=True),
        Field(
            "compressions",
            "COMPRESSION",
            lambda b: [{"codec": codec, "records": n} for codec, n in b.summary.codecs.items()],
            lambda b: ", ".join(sorted(b.summary.codecs)),
        ),
        text_field("TRANSACTIONS", _endings, below=True),
        data_field("firstMs", lambda b: b.summary.first_ms),
        data_field("lastMs", lambda b: b.summary.last_ms),
        text_field("WRITTEN", written, below=True),
        text_field("PROBLEM", lambda b: b.problem or "", below=True),
    )


def _some(number: int | None) -> str:
    return f"{number:,}" if number else ""


def _endings(one: BranchShown) -> str:
    endings = one.summary.endings.items()
    return ", ".join(f"{n:,} {ending}" for ending, n in endings if ending is not Ending.NONE)


def _producer_json(batch: CutOffProducer) -> dict[str, object]:
    return {
        "producerId": batch.producer_id,
        "epoch": batch.epoch,
        "lastSequence": batch.last_sequence,
        "records": batch.records,
    }


def _branch_json(one: BranchShown) -> dict[str, object]:
    reported = json_row(_branch_fields(), one)
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


def _time(ms: int, *, simulated: bool) -> str:
    if simulated and (virtual := simulated_time(ms)):
        return virtual
    try:
        return (
            datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def read_rescue(run: Run, path: Path, part: PlanPart, request: RescueRequest, rows: int) -> int:
    """Reads what the plan's elections cut off and prints what came of it; returns the exit status."""
    plan = read_part(path, part)
    if not isinstance(plan, Plan):
        raise InputError(f"{path}: it names leaders only; make a plan with preconditions first: ktriage plan")

    async def read(backend: Backend, cluster_id: str) -> RescueReading:
        refuse_other_cluster(plan, cluster_id, path)
        return await read_plan(backend, plan, cluster_id, request, run.screen.progress)

    again = ("rescue", "read", str(path), *_words(request))
    plan_id = plan.header.plan_id
    return _rescue(
        run, read, rows, again, plan_id=plan_id, then=("apply", str(path), "--rescue", str(request.directory))
    )


def read_rescue_of_disks(run: Run, request: RescueRequest, topics: Sequence[str], rows: int) -> int:
    """Reads what disks hold and the leaders of now do not; returns the exit status."""

    async def read(backend: Backend, cluster_id: str) -> RescueReading:
        return await read_disks(backend, cluster_id, request, topics, run.screen.progress)

    again = ("rescue", "read", *_words(request), *(word for topic in topics for word in ("--topic", topic)))
    return _rescue(run, read, rows, again, ("rescue", "show", str(request.directory)))


def _words(request: RescueRequest) -> tuple[str, ...]:
    disks = tuple(word for path in request.log_dirs for word in ("--from-disk", str(path)))
    return "--to", str(request.directory), *disks


def _rescue(
    run: Run,
    read: Callable[[Backend, str], Awaitable[RescueReading]],
    rows: int,
    again: tuple[str, ...],
    then: tuple[str, ...],
    *,
    plan_id: str = "",
) -> int:
    async def job(backend: Backend, _stop: StopRequest) -> tuple[RescueReading, str]:
        cluster_id = (await backend.open()).cluster_id
        return await read(backend, cluster_id), cluster_id

    try:
        reading, cluster_id = run.read(job)
    except Stopped:
        run.next(*again)
        raise
    if run.json:
        run.screen.out(rescue_document(reading))
    elif reading.rescued.results or not reading.leaderless:
        run.screen.out(rescue_lines(reading.rescued, rows))
    _record(run, reading, cluster_id, plan_id)
    for tp, problem in reading.problems.items():
        run.screen.say(f"not rescued: {tp}: {problem}")
    if reading.leaderless:
        topics = dict.fromkeys(tp.topic for tp in reading.leaderless)
        words = (word for topic in topics for word in ("--topic", topic))
        run.next("plan", *words, unused())
    else:
        run.next(*(again if reading.problems else then))
    useless = any(one.useless for one in reading.rescued.disks)
    in_part = any(one.partly for one in reading.rescued.unread)
    return Status.PARTLY if reading.problems or useless or in_part else Status.DONE


def _record(run: Run, reading: RescueReading, cluster_id: str, plan_id: str) -> None:
    """The journal has which disks were read: then they need not be read before their brokers start."""
    where = str(reading.rescued.directory)
    readings = [
        RecordedDiskRead(
            use.broker,
            (use.log_dir,),
            where,
            plan_id,
            tuple(one for one in use.read if one.tp not in reading.problems),
        )
        for use in reading.rescued.disks
    ]
    try:
        record_read(run.program, cluster_id, [one for one in readings if one.partitions])
    except (InputError, JournalError) as error:
        run.screen.say(f"the journal does not have that the disk was read: {error}")


def waive_disk(run: Run, broker: int, topics: Sequence[str], reason: str) -> int:
    """Closes the points of a disk that nobody will read; returns the exit status."""

    async def job(backend: Backend, _stop: StopRequest) -> tuple[str, tuple[DiskPartition, ...]]:
        cluster_id = (await backend.open()).cluster_id
        return cluster_id, await partitions_to_waive(backend, cluster_id, broker, topics)

    cluster_id, closed = run.read(job)
    record_waived(run.program, cluster_id, broker, closed, reason)
    names = printable(some_of([one.tp for one in closed]))
    run.screen.out(
        [f"the disk of broker {broker} is not to be read any more, as the journal has it: {names}"]
    )
    return Status.DONE


def show_rescue(run: Run, directory: Path, *, records: int, rows: int, check: bool) -> int:
    """Prints what is in the directory; ``check``: compares every file with its manifest too. Returns the exit
    status: 1 where a branch is damaged or not whole.
    """
    contents = open_rescue(directory)
    shown = []
    for number, rescued in enumerate(contents.branches):
        run.screen.progress("reading the rescue", number, len(contents.branches))
        shown.append(_shown(rescued, records, check=check))
    problems = [one for one in shown if one.problem is not None]
    if run.json:
        run.screen.out(show_document(contents, shown))
    else:
        intact = (verified_line(shown),) if check and not problems else ()
        run.screen.out(chain(intact, show_lines(contents, shown, rows)))
    for one in problems:
        branch = one.rescued.branch
        run.screen.say(f"not whole: {branch.tp}, {branch.part} of broker {branch.broker}: {one.problem}")
        run.screen.say(*damage_lines(one))
    run.screen.say(*_what_next(problems, directory))
    return Status.PARTLY if problems else Status.DONE


def _what_next(problems: Sequence[BranchShown], directory: Path) -> Iterator[str]:
    """How the records of damaged branches, and of those that were not read to their end, can still be had."""
    if any(one.rescued.problem is None for one in problems):
        records = sum(one.summary.records for one in problems if one.summary is not None)
        if records:
            yield (
                f"what is sound of it can be written back anyway: ktriage restore {directory} --incomplete"
                " with --to-source or --to-topic NAME"
            )
        yield (
            "read what is damaged again into another directory: before the election with ktriage rescue read"
            " PLAN --to NEW; after it from a copy of the broker's disk, with"
            " ktriage rescue read --to NEW --from-disk DIR"
        )
    if any(one.rescued.problem is not None for one in problems):
        yield (
            f"what is not complete: ktriage rescue read PLAN --to {directory} reads it again while the partition"
            " has no leader; ktriage restore --incomplete writes back what there is of those with a manifest"
        )


def _shown(rescued: RescuedBranch, records: int, *, check: bool) -> BranchShown:
    size = bytes_there(rescued)
    problem = rescued.problem
    damaged: tuple[DamagedPart, ...] = ()
    try:
        if check:
            check_segments(rescued)
        summary = summarise_branch(rescued, fields=not check)
    except InputError as error:
        rescued = replace(rescued, sound_only=True)
        problem, damaged = str(error), rescued.damaged()
        summary = summarise_branch(rescued, fields=not check)
    first = tuple(first_records(rescued, records)) if records else ()
    return BranchShown(rescued, summary, problem, size, first, damaged)


def restore_rescue(run: Run, change: RestoreRecords, *, ask: bool, rows: int) -> int:
    """Writes a rescue back and prints what came of it; returns the exit status."""
    written = execute_change(run, change, RESTORED, run.change, ask=ask, dry_run=change.dry_run, rows=rows)
    return run.conclude(change.conclusion(written))
