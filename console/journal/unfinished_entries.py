"""What earlier runs left open: one fold of the journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from backends.garbage_collection import without_collection
from console.journal.change_kinds import (
    CONFIRM,
    NOT_REBUILT,
    REPLACE,
    Left,
    OpenChange,
    kind_of,
)
from console.journal.journal_lines import KafkaElectionKind
from console.journal.planned_elections import PLANNED, led_afterwards
from console.journal.run_records import (
    NO_MARKS,
    NO_OTHERS,
    ClusterMarks,
    EntriesSettled,
    EntryBegun,
    EntryEnded,
    OtherRuns,
    RunRecord,
    of_other_clusters,
    read_unsettled_runs,
)
from console.journal.unread_disks import DISK_READ, DISK_WAIVED, DiskBook
from recovery.requests_in_doubt import RequestsInDoubt, SentRequest
from recovery.unread_disks import ReadDisk, UnreadDisk

_REFUSED_FOR_GOOD = frozenset(
    {"INVALID_TIMESTAMP", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD"}
)
STOPPED = "stopped before its turn"


def refused_for_good(answer: str) -> bool:
    """Whether the same batch gets this answer to Produce again: the topic's settings refuse it."""
    return answer.split(" ", maxsplit=1)[0].rstrip(":") in _REFUSED_FOR_GOOD


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Every change that is open, oldest first. Without the lock, a run that is still going on may have left it.

    ``confirmed`` are the steps that an operator confirmed, by the replacement's plan. ``plan_file`` is the
    plan of the latest run that left orders or requests: its other elections were not sent; "" if there is none.
    ``operators`` are the person and the host of each run, by its id. ``unread_disks`` hold up nothing: they
    are to be read before their brokers start (:mod:`recovery.unread_disks` says what became of them);
    ``read_disks`` were. ``others`` are runs that left something and have none of the cluster's marks: nothing of
    them is here.
    """

    changes: tuple[OpenChange, ...]
    confirmed: Mapping[str, frozenset[int]] = field(default_factory=dict)
    plan_file: str = ""
    operators: Mapping[str, str] = field(default_factory=dict)
    unread_disks: tuple[UnreadDisk, ...] = ()
    read_disks: tuple[ReadDisk, ...] = ()
    others: OtherRuns = NO_OTHERS

    @property
    def nothing(self) -> bool:
        """Whether no run is to be finished."""
        return not self.changes

    def of(self, *actions: str) -> tuple[OpenChange, ...]:
        """The open changes of these kinds."""
        return tuple(change for change in self.changes if change.action in actions)

    @property
    def resume(self) -> tuple[str, ...]:
        """The command that finishes it. Whoever looked that nobody has rebuilt the quorum is asked again else."""
        looked = any(change.detail.get(NOT_REBUILT) for change in self.of(REPLACE))
        return ("resume", "--not-rebuilt") if looked else ("resume",)

    @property
    def orders(self) -> tuple[SentRequest, ...]:
        """Assignments that may still have the order that was written for an election."""
        return tuple(request for change in self.changes for request in change.requests if request.ordered)

    @property
    def elections(self) -> tuple[SentRequest, ...]:
        """Elections without an answer that wrote no order: nothing is to be undone, so they hold up no other
        change; until they are dead their result is not known.
        """
        return tuple(request for change in self.changes for request in change.requests if not request.ordered)

    @property
    def entries(self) -> tuple[OpenChange, ...]:
        """Requests without a recorded end, which are closed by who looked at the cluster."""
        return tuple(change for change in self.changes if change.end_unknown)

    @property
    def replacement(self) -> OpenChange | None:
        """The newest controller replacement that was begun."""
        return next(reversed(self.of(REPLACE)), None)

    def confirmed_steps(self, plan_id: str) -> frozenset[int]:
        """The steps of a replacement's plan that an operator said are done."""
        return self.confirmed.get(plan_id, frozenset())

    def without(self, *left: Left) -> Unfinished:
        """The same without what leaves that; of elections, only the requests without a recorded end."""
        changes = []
        for change in self.changes:
            closed = Left.REQUEST in left and change.end_unknown
            if change.kind.left not in left and (change.requests or not closed):
                changes.append(change._replace(ended=change.ended or closed))
        return replace(self, changes=tuple(changes))

    def none_sent_after(self, now: datetime) -> Unfinished:
        """The same, with the requests that seem to be sent later counted as sent ``now``: the clock was set back
        since.
        """
        seconds = now.timestamp()
        return replace(
            self,
            changes=tuple(
                change._replace(requests=tuple(one.none_sent_after(seconds) for one in change.requests))
                for change in self.changes
            ),
        )

    def where(self, condition: Callable[[SentRequest], bool]) -> Unfinished:
        """The same with these requests of elections only."""
        changes = []
        for change in self.changes:
            requests = tuple(filter(condition, change.requests))
            if requests or not change.requests or change.end_unknown:
                changes.append(change._replace(requests=requests))
        return replace(self, changes=tuple(changes))

    def of_other_runs(self, run_id: str) -> Unfinished:
        """What the other runs left open. The replacement that this run is working on is not counted as
        theirs.
        """
        replaces = any(change.run_id == run_id for change in self.of(REPLACE))
        others = (
            change
            for change in self.changes
            if change.run_id != run_id and not (replaces and change.action == REPLACE)
        )
        return replace(self, changes=tuple(others), others=NO_OTHERS)


def unfinished(cluster_id: str, root: Path | None = None, marks: ClusterMarks = NO_MARKS) -> Unfinished:
    """What the runs in the cluster's journal left open: with ``marks``, those that may have run on the cluster with
    them. Raises JournalError.
    """
    with without_collection():
        own, others = of_other_clusters(read_unsettled_runs(cluster_id, root), marks)
        left = OtherRuns(*(tuple(run for run in runs if not left_open([run]).nothing) for runs in others))
        return replace(left_open(own), others=left)


def still_in_doubt(cluster_id: str, found: Unfinished) -> bool:
    """Whether an order or an election of these changes is open still. Raises JournalError."""
    entries = {change.entry for change in found.changes if change.requests}
    return any(change.requests and change.entry in entries for change in unfinished(cluster_id).changes)


def left_open(runs: Iterable[RunRecord]) -> Unfinished:
    """What those runs, oldest first, left open together."""
    book = _Book()
    operators = {}
    for run in runs:
        operators[run.run_id] = run.operator
        for event in run.events:
            if isinstance(event, EntryBegun):
                book.begun(run.run_id, event)
            elif isinstance(event, EntryEnded):
                book.ended(event)
            else:
                book.settled(event)
    return replace(book.open(), operators=operators)


class _Book:
    """What is open so far."""

    def __init__(self) -> None:
        self._begun: dict[str, OpenChange] = {}
        self._requests = RequestsInDoubt()
        self._open: dict[str, OpenChange] = {}
        self._restores: dict[tuple[str, ...], OpenChange] = {}
        self._confirmed: dict[str, frozenset[int]] = {}
        self._plan_files: dict[str, tuple[str, str]] = {}
        self._disks = DiskBook()

    def open(self) -> Unfinished:
        requests: dict[str, list[SentRequest]] = {}
        for request in self._requests.open():
            requests.setdefault(request.entry, []).append(request)
        changes = []
        for entry, begun in self._begun.items():
            if entry in requests or entry in self._open:
                left = tuple(requests.get(entry, ()))
                changes.append(begun._replace(requests=left, ended=entry not in self._open))
        runs = {change.run_id for change in changes if change.requests or change.end_unknown}
        files = [file for run_id, file in self._plan_files.values() if run_id in runs]
        return Unfinished(
            (*changes, *self._restores.values()),
            self._confirmed,
            files[-1] if files else "",
            unread_disks=self._disks.open(),
            read_disks=self._disks.closed,
        )

    def begun(self, run_id: str, event: EntryBegun) -> None:
        kind = kind_of(event.action)
        change = OpenChange(kind, run_id, event.entry, event.at, event.detail)
        if kind.left in (Left.ORDERS, Left.ELECTIONS):
            self._begun[event.entry] = change
            election = KafkaElectionKind.of(event.detail) or ""
            self._requests.begun(event.entry, event.action, event.rows, _seconds(event.at), election)
        if kind.opens:
            self._begun[event.entry] = self._open[event.entry] = change
        elif kind.left is Left.RECORDS:
            words = map(str, event.detail.get("options", ()))
            restore = change._replace(command=("restore", str(event.detail.get("directory", "")), *words))
            self._restores[restore.command] = restore
        elif event.action == CONFIRM:
            plan, steps = str(event.detail.get("planId", "")), event.detail.get("steps", ())
            self._confirmed[plan] = self._confirmed.get(plan, frozenset()) | frozenset(steps)
        elif event.action == PLANNED:
            self._plan_files[event.entry] = run_id, str(event.detail.get("file", ""))
            self._disks.planned(event)
        elif event.action in (DISK_READ, DISK_WAIVED):
            self._disks.close(event)

    def ended(self, event: EntryEnded) -> None:
        self._open.pop(event.entry, None)
        self._plan_files.pop(event.entry, None)
        self._disks.ended(event)
        self._restore_ended(event)
        self._requests.ended(event.entry, _seconds(event.at), event.applied, event.refused, event.unknown)
        self._requests.led(led_afterwards(event.result))

    def settled(self, event: EntriesSettled) -> None:
        self._close_restores(event.entries)
        for entry in event.entries:
            self._open.pop(entry, None)
        self._requests.settled(event.entries, event.rows)

    def _restore_ended(self, event: EntryEnded) -> None:
        """It stays open with what is missing: to be written to another topic, or later."""
        mine = [one for one in self._restores.values() if one.entry == event.entry]
        self._close_restores({event.entry})
        elsewhere = event.result.get("instead", ())
        left = [why for why in event.refused.values() if not (elsewhere and refused_for_good(why))]
        for restore in mine:
            others = [
                restore._replace(command=(*restore.command[:2], *map(str, words))) for words in elsewhere
            ]
            if left:
                others.append(restore._replace(waits=next((why for why in left if why != STOPPED), "")))
            self._restores.update((one.command, one) for one in others)

    def _close_restores(self, entries: Collection[str]) -> None:
        still = (one for one in self._restores.values() if one.entry not in entries)
        self._restores = {one.command: one for one in still}


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
