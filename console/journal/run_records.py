"""Reads the journal. Unknown fields are ignored; a line that cannot be read is named, and the rest is read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from backends.base.answers import Partitions
from console.journal.errors import JournalError
from console.journal.journal import cluster_directory
from console.journal.journal_lines import FORMAT_VERSION, ROW_LISTS, written_order
from console.journal.state_access import records_access
from recovery.assignment_order import WrittenOrder
from recovery.membership.quorum import Quorum
from recovery.model import TopicPartition
from recovery.wording.quantity_text import counted


@dataclass(frozen=True, slots=True)
class EntryBegun:
    """Something that was about to be sent. ``rows`` are its designated elections, if there are any."""

    entry: str
    at: str
    action: str
    rows: tuple[WrittenOrder, ...]
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EntryEnded:
    """The result of an entry."""

    entry: str
    at: str
    applied: frozenset[TopicPartition]
    refused: Mapping[TopicPartition, str]
    unknown: Mapping[TopicPartition, str]
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EntriesSettled:
    """Entries that are finished, or changed by somebody else, as a later run found."""

    at: str
    why: str
    entries: frozenset[str]
    rows: frozenset[TopicPartition]


def _topic_ids(detail: object) -> Iterator[str]:
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            if key == "topicId":
                yield str(value)
            else:
                yield from _topic_ids(value)
    elif isinstance(detail, list | tuple):
        for value in detail:
            yield from _topic_ids(value)


Event = EntryBegun | EntryEnded | EntriesSettled


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run, read from its file. ``header`` is empty for a run that ended before its first line.

    ``unread`` names each line that cannot be read, with the reason. ``unsure``: one of them stands before the
    run's end, so that the run may have left more than is known.

    ``ended``: whether the run closed its file. ``status`` is its exit status, None if not recorded. ``counts`` is
    the number of rows with each result, empty if not recorded.
    """

    path: Path
    header: Mapping[str, Any]
    events: tuple[Event, ...]
    ended: bool
    status: int | None
    counts: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    unsure: bool = False

    @property
    def topic_ids(self) -> frozenset[str]:
        """The ids of all topics that the run names; empty where it names none by id."""
        found: set[str] = set()
        for event in self.events:
            if isinstance(event, EntryBegun):
                found.update(row.topic_id for row in event.rows)
                found.update(_topic_ids(event.detail))
        return frozenset(found - {""})

    @property
    def directories(self) -> frozenset[str]:
        """The directory ids of the cluster's nodes when it began; empty where they were not told."""
        return frozenset(map(str, self.header.get("directories", ())))

    @property
    def run_id(self) -> str:
        return str(self.header.get("run", ""))

    def entries(self, *actions: str) -> Iterator[tuple[EntryBegun, EntryEnded | None]]:
        """The run's entries of these actions, each with its last recorded end."""
        ends = {event.entry: event for event in self.events if isinstance(event, EntryEnded)}
        for event in self.events:
            if isinstance(event, EntryBegun) and event.action in actions:
                yield event, ends.get(event.entry)

    @property
    def operator(self) -> str:
        """Who ran it, and where: ``user@host``."""
        return f"{self.header.get('user', '?')}@{self.header.get('host', '?')}"


def read_runs(cluster_id: str, root: Path | None = None) -> tuple[RunRecord, ...]:
    """Every run recorded for the cluster in the state directory, oldest first.

    Raises JournalError, also if its directory cannot be read, and InputError if the named state directory is
    missing or not safe.
    """
    return tuple(read_run(path) for path in _run_files(cluster_id, root))


def _run_files(cluster_id: str, root: Path | None) -> list[Path]:
    if root is None:
        records_access()  # a directory that is missing must not read as "nothing was sent"
    directory = cluster_directory(cluster_id, root)
    try:
        paths = sorted(directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise JournalError(f"{directory}: cannot be read: {error.strerror}") from None
    return [path for path in paths if path.suffix == ".jsonl"]


def journal_files(cluster_id: str) -> tuple[tuple[str, int], ...]:
    """Names and sizes of the files of the cluster's runs: equal where nothing was recorded since. Empty without
    any, and where they cannot be read.
    """
    with contextlib.suppress(OSError, JournalError):
        directory = cluster_directory(cluster_id)
        return tuple(sorted((path.name, path.stat().st_size) for path in directory.glob("*.jsonl")))
    return ()


SETTLED = "settled"
"""The file that names a run: no older run left anything open."""


def read_unsettled_runs(cluster_id: str, root: Path | None = None) -> tuple[RunRecord, ...]:
    """As :func:`read_runs`, without old runs that left nothing open. Raises the same errors, and JournalError where
    a run may have left something that cannot be read.
    """
    directory = cluster_directory(cluster_id, root)
    paths = _run_files(cluster_id, root)
    names = [path.name for path in paths]
    try:
        through = (directory / SETTLED).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        through = ""
    # If the named run's file is gone, the numbering may have changed too: then all runs are read.
    first = names.index(through) + 1 if through in names else 0
    runs = tuple(read_run(path) for path in paths[first:])
    if unsure := [run for run in runs if run.unsure]:
        raise JournalError("; ".join(line for run in unsure for line in unread_lines(run)))
    return runs


def unread_lines(run: RunRecord) -> Iterator[str]:
    """Which lines of the run cannot be read, and what to do."""
    if not run.unread:
        return
    more = len(run.unread) - UNREAD_SHOWN
    shown = (*run.unread[:UNREAD_SHOWN], *((f"and {counted(more, 'line')} more",) if more > 0 else ()))
    yield f"{run.path}: {', '.join(shown)}"
    if run.unsure:
        yield (
            "what was recorded there is not known; ktriage journal shows the rest. If you know that this run left"
            " nothing unfinished, move the file away"
        )


UNREAD_SHOWN = 3


def remember_settled(own: Path) -> None:
    """Writes down that no run before the one with the file ``own``, which has the lock, left anything open.

    It only saves reading: if it cannot be written, the next run reads more.
    """
    earlier = [path.name for path in own.parent.glob("*.jsonl") if path.name < own.name]
    if not earlier:
        return
    new = own.parent / f"{SETTLED}.new"
    with contextlib.suppress(OSError):
        new.write_text(max(earlier) + "\n", encoding="utf-8")
        new.chmod(own.stat().st_mode & 0o777)  # the same readers as the runs
        new.replace(own.parent / SETTLED)


def read_run(path: Path) -> RunRecord:
    """One run's file. Raises JournalError if it cannot be read at all."""
    header: Mapping[str, Any] = {}
    events: list[Event] = []
    ended, status = False, None
    counts: Mapping[str, int] = {}
    unread: list[str] = []
    unsure = False
    for number, text in _lines(path):
        try:
            line = orjson.loads(text)
            kind = _kind(line)
            if kind == "run":
                header = line
            elif kind == "reason":
                header = {**header, "reason": line["reason"]}
            elif kind == "end":
                ended, status = True, line.get("status")
                counts = {str(name): int(count) for name, count in line.get("counts", {}).items()}
            elif kind in _EVENTS:
                events.append(_EVENTS[kind](line))
        except (JournalError, KeyError, TypeError, ValueError, AttributeError) as error:
            unread.append(f"line {number}: {_why_unread(error)}")
            unsure = unsure or not ended  # nothing is sent after the end
    return RunRecord(path, header, tuple(events), ended, status, counts, tuple(unread), unsure)


def _why_unread(error: Exception) -> str:
    if isinstance(error, JournalError):
        return str(error)
    if isinstance(error, orjson.JSONDecodeError):
        return "broken, it is not JSON"
    if isinstance(error, KeyError):
        return f"broken, it has no {error.args[0]!r}"
    return "broken, it is no record of a journal"


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        whole, _, torn = path.read_bytes().rpartition(b"\n")
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from None
    lines = whole.split(b"\n") if whole else []
    if lines and not torn and not _is_json(lines[-1]):
        lines.pop()  # a power loss can break the last line; then nothing was sent after it
    yield from enumerate(lines, 1)


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except ValueError:
        return False
    return True


def _kind(line: Any) -> str:
    version = line["v"]
    if type(version) is not int or version > FORMAT_VERSION:
        raise JournalError(
            f"journal format {version}: this version of the tool reads {FORMAT_VERSION}; use the one that wrote it"
        )
    return str(line["kind"])


def _before(line: Mapping[str, Any]) -> EntryBegun:
    rows = tuple(written_order(row) for row in line.get("rows", ()))
    return EntryBegun(line["entry"], line["at"], line["action"], rows, line.get("detail", {}))


def _after(line: Mapping[str, Any]) -> EntryEnded:
    applied, refused, unknown = (line.get(key, ()) for key in ROW_LISTS)
    return EntryEnded(
        line["entry"],
        line["at"],
        frozenset(TopicPartition(row[0], row[1]) for row in applied),
        _reasons(refused),
        _reasons(unknown),
        line.get("result", {}),
    )


def _reasons(rows: Any) -> dict[TopicPartition, str]:
    return {TopicPartition(row[0], row[1]): str(row[2]) if len(row) > 2 else "" for row in rows}


def _settled(line: Mapping[str, Any]) -> EntriesSettled:
    rows = frozenset(TopicPartition(row[0], row[1]) for row in line.get("rows", ()))
    return EntriesSettled(line["at"], str(line.get("why", "")), frozenset(line.get("entries", ())), rows)


_EVENTS: Mapping[str, Callable[[Mapping[str, Any]], Event]] = {
    "before": _before,
    "after": _after,
    "settled": _settled,
}


class ClusterMarks(NamedTuple):
    """What tells a cluster from another one with the same cluster id, as two have that were formatted with the
    default of an image.

    ``topic_ids`` are those of all its topics, None where they are not known, or not all of them. ``directories``
    are the directory ids of its nodes (DescribeQuorum); empty where they are not known.
    """

    topic_ids: frozenset[str] | None = None
    directories: frozenset[str] = frozenset()

    @classmethod
    def of(cls, partitions: Partitions | None, quorum: object) -> ClusterMarks:
        """Those of a list of all partitions and of a description of the quorum, as far as they were read."""
        directories = quorum.directories if isinstance(quorum, Quorum) else frozenset()
        return cls(None if partitions is None else partitions.topic_ids, directories)


NO_MARKS = ClusterMarks()
"""Nothing was read of the cluster: every run in the journal may have been on it."""


class OtherRuns(NamedTuple):
    """Runs in a cluster's journal that have none of its marks.

    ``elsewhere`` were on another cluster. ``unsure`` name only topics that the cluster does not have, and no
    directory of a node can be compared: the topics were deleted since, or it was another cluster.
    """

    elsewhere: tuple[RunRecord, ...] = ()
    unsure: tuple[RunRecord, ...] = ()

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        return (*self.elsewhere, *self.unsure)


NO_OTHERS = OtherRuns()


def of_other_clusters(
    runs: Sequence[RunRecord], marks: ClusterMarks
) -> tuple[tuple[RunRecord, ...], OtherRuns]:
    """The runs that may be of the cluster with these marks, and the others. One topic or one directory in common
    makes a run the cluster's: topics are deleted, and disks are replaced.
    """
    own: list[RunRecord] = []
    elsewhere: list[RunRecord] = []
    unsure: list[RunRecord] = []
    for run in runs:
        if not _of_other_cluster(run, marks):
            own.append(run)
        else:
            (elsewhere if run.directories and marks.directories else unsure).append(run)
    return tuple(own), OtherRuns(tuple(elsewhere), tuple(unsure))


def _of_other_cluster(run: RunRecord, marks: ClusterMarks) -> bool:
    if run.directories & marks.directories:
        return False
    if run.topic_ids:
        return marks.topic_ids is not None and run.topic_ids.isdisjoint(marks.topic_ids)
    return bool(run.directories and marks.directories)


def other_runs_lines(others: OtherRuns) -> Iterator[str]:
    """Words for runs that have none of the marks of the cluster."""
    for runs, sure in ((others.elsewhere, True), (others.unsure, False)):
        if not runs:
            continue
        cluster_id = runs[0].header.get("clusterId", "")
        count = f"{len(runs):,} runs" if runs[1:] else "1 run"
        verb = ("were" if sure else "name") if runs[1:] else ("was" if sure else "names")
        what = (
            "on another cluster with the same id: this cluster has none of the topics that are named there, and"
            " none of the directories that its nodes had"
            if sure
            else "only topics that this cluster does not have: they were deleted since, or it is another cluster"
            " with the same id"
        )
        yield (
            f"left out: {count} in the journal of {cluster_id} {verb} {what}"
            f" (ktriage journal --cluster-id {cluster_id} shows all)"
        )
