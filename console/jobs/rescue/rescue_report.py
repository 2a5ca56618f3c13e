"""What a rescue read, and what a rescue directory holds, as text and as JSON (docs/output.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from console.jobs.rescue.rescue_read import DiskUse, Rescued, RescueReading
from console.jobs.rescue.rescue_run import BranchResult
from console.output.json_document import document
from console.reading.survey_report import disk_start_lines
from recovery.model import NO_EPOCH, EpochSpan, TopicPartition
from recovery.rescue_branches import STRAY_MARK, RescueBranch, UnreadReplica
from recovery.wording.quantity_text import counted, human_bytes, ids, lasting, offset, printable
from recovery.wording.unread_disk_text import left_out_text
from widgets.fields import Field, Row, data_field, json_of, partition_fields, text_rows


def rescue_lines(rescued: Rescued, rows: int) -> Iterator[str]:
    """Counts first, then the branches: those with a problem, then the largest."""
    parts = {(one.tp, one.broker) for one in rescued.unread if one.partly}
    whole = [result for result in rescued.results if result.problem is None and not _of_part(result, parts)]
    yield (
        f"{len(whole):,} of {counted(len(rescued.results), 'branch', 'branches')} read as a whole into"
        f" {rescued.directory}: {counted(rescued.offsets, 'offset')}, {human_bytes(rescued.size)}"
        f"{_read_before(rescued)} ({lasting(rescued.seconds)})"
    )
    if of_parts := sum(result.problem is None and _of_part(result, parts) for result in rescued.results):
        yield f"{counted(of_parts, 'branch', 'branches')} of logs that could be read in part only, as said below"
    for use in rescued.disks:
        yield disk_use_text(use)
        if use.reading is not None:
            if left_out := left_out_text(use.reading):
                yield printable(f"  {left_out}")
            yield from disk_start_lines(use.reading)
    yield from unread_lines(rescued.unread)
    if rescued.results:
        yield ""
    ordered = sorted(rescued.results, key=lambda one: (one.problem is None, -one.size))
    yield from text_rows(branch_fields(parts), ordered, limit=rows, rest="")


def unread_lines(unread: Sequence[UnreadReplica]) -> Iterator[str]:
    """Replicas that could not be read, or not to their end: what they alone hold is not in the rescue."""
    for partly in (False, True):
        group = [one for one in unread if one.partly is partly]
        if not group:
            continue
        brokers = ids(sorted({one.broker for one in group}))
        partitions = counted(len({one.tp for one in group}), "partition")
        what = "read in part: the logs" if partly else "not read: the replicas"
        reasons = Counter(one.why for one in group)
        yield printable(f"{what} of {partitions} on {brokers} ({group[0].why})")
        for why, count in [*reasons.items()][1:MOST_REASONS]:
            yield printable(f"  {counted(count, 'log')}: {why}")
        if len(reasons) > MOST_REASONS:
            yield f"  … and {len(reasons) - MOST_REASONS:,} other reasons (--output json has all)"
        yield f"  what {'of them was not read' if partly else 'only they hold'} is not in the rescue"


MOST_REASONS = 20


def _of_part(result: BranchResult, parts: Collection[tuple[TopicPartition, int]]) -> bool:
    return bool(result.branch.log_dir) and (result.branch.tp, result.branch.broker) in parts


def disk_use_text(use: DiskUse) -> str:
    """What a log dir that was given adds."""
    if not use.partitions:
        return f"{use.log_dir} is of broker {use.broker}, and holds none of these partitions: not used"
    if use.offsets:
        aside = f" ({_strays_text(use)})" if use.strays else ""
        return (
            f"{use.log_dir} is of broker {use.broker}: {counted(use.offsets, 'offset')} are only on it{aside}"
        )
    if use.answers:
        return (
            f"{use.log_dir} is of broker {use.broker}, which answers: its answer counts, the disk adds no"
            f" offset{_compared_text(use)}"
        )
    aside = f", {_strays_text(use)} too" if use.strays else ""
    return f"{use.log_dir} is of broker {use.broker}: it was read{aside}, and adds no offset{_compared_text(use)}"


def _compared_text(use: DiskUse) -> str:
    """How far "nothing more" was looked at."""
    return f" ({counted(use.compared, 'offset')} compared, by epoch and offset, not by content)"


def _strays_text(use: DiskUse) -> str:
    return f"{counted(use.strays, 'log')} that the broker has set aside as {STRAY_MARK}"


def rescue_document(reading: RescueReading) -> Iterator[str]:
    """``ktriage.rescue-read/1``."""
    return document("rescue-read", {**rescued_fields(reading.rescued), "problems": _problems(reading)})


def rescued_fields(rescued: Rescued) -> dict[str, object]:
    """The members that describe a rescue, for this and for other documents."""
    parts = {(one.tp, one.broker) for one in rescued.unread if one.partly}
    return {
        "directory": str(rescued.directory),
        "bytes": rescued.size,
        "offsets": rescued.offsets,
        "seconds": round(rescued.seconds, 3),
        "branches": list(map(json_of(branch_fields(parts)), rescued.results)),
        "unread": list(map(json_of(UNREAD), rescued.unread)),
        "disks": [
            {
                "broker": one.broker,
                "logDir": one.log_dir,
                "offsets": one.offsets,
                "answers": one.answers,
                "strays": one.strays,
                "compared": one.compared,
                "leftOut": [
                    {"kind": kind, "folder": folder}
                    for kind, folder in (() if one.reading is None else one.reading.left_out)
                ],
            }
            for one in rescued.disks
        ],
    }


def epochs_text(spans: Iterable[EpochSpan]) -> str:
    """The epochs of a branch: ``0, 2``; a question mark for one that is not known."""
    return ", ".join("?" if span.epoch == NO_EPOCH else str(span.epoch) for span in spans)


UNREAD: tuple[Field[UnreadReplica], ...] = (
    *partition_fields(lambda r: r.tp),
    data_field("broker", lambda r: r.broker),
    data_field("why", lambda r: r.why),
    data_field("partly", lambda r: r.partly),
)


def place_fields(branch: Callable[[Row], RescueBranch]) -> tuple[Field[Row], ...]:
    """Where a branch is of, and which part of its log it is."""
    return (
        *partition_fields(lambda r: branch(r).tp),
        Field("broker", "BROKER", lambda r: branch(r).broker, lambda r: broker_text(branch(r)), right=True),
        Field("part", "PART", lambda r: str(branch(r).part)),
        Field("startOffset", "OFFSETS", lambda r: branch(r).start, lambda r: offsets_text(branch(r))),
        data_field("endOffset", lambda r: branch(r).end),
    )


def branch_fields(
    parts: Collection[tuple[TopicPartition, int]],
) -> tuple[Field[BranchResult], ...]:
    """A branch that was read; ``parts``: the logs that could be read in part only."""
    place: tuple[Field[BranchResult], ...] = place_fields(lambda r: r.branch)
    return (
        *place[:4],
        data_field("chosenLeader", lambda r: r.branch.leader),
        *place[4:],
        Field(
            "epochs",
            "EPOCH",
            lambda r: [list(s) for s in r.branch.spans],
            lambda r: epochs_text(r.branch.spans),
        ),
        Field("bytes", "BYTES", lambda r: r.size, lambda r: human_bytes(r.size), right=True),
        data_field("logDir", lambda r: r.branch.log_dir or None),
        data_field("whole", lambda r: r.problem is None),
        Field("problem", "RESULT", lambda r: r.problem, lambda r: _result_text(r, parts), below=True),
        data_field("logReadInPart", lambda r: _of_part(r, parts)),
    )


def _result_text(result: BranchResult, parts: Collection[tuple[TopicPartition, int]]) -> str:
    if result.problem is not None:
        return f"NOT WHOLE: {result.problem}"
    return "of a log that was read in part" if _of_part(result, parts) else "whole"


def broker_text(branch: RescueBranch) -> str:
    """The broker that the branch is of, and whether it was read from its disk."""
    if branch.stray:
        return f"{branch.broker} ({STRAY_MARK[1:]})"
    return f"{branch.broker} (disk)" if branch.log_dir else str(branch.broker)


def offsets_text(branch: RescueBranch) -> str:
    """The first and the last offset."""
    first, last = offset(branch.start), offset(branch.end - 1)
    return first if first == last else f"{first} to {last}"


def _problems(reading: RescueReading) -> list[dict[str, object]]:
    return [
        {"topic": tp.topic, "partition": tp.partition, "problem": problem}
        for tp, problem in sorted(reading.problems.items())
    ]


def _read_before(rescued: Rescued) -> str:
    if not rescued.read_before:
        return ""
    return f" ({rescued.read_before:,} by an earlier run: the same epochs and offsets, its files unchanged)"
