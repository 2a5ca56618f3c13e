"""What earlier runs left open: assignments that were reordered and not restored, and requests without a
recorded end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from backends.base.answers import ELECTION_ALIVE_FOR
from backends.garbage_collection import without_collection
from console.journal.journal_lines import ELECT, FOUND_ORDER, REORDER, RESTORE, KafkaElectionKind
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
from recovery.assignment_order import WrittenOrder
from recovery.model import PartitionState, TopicPartition
from recovery.unread_disks import ReadDisk, UnreadDisk

RESCUE, NO_RESCUE = "rescue", "no-rescue"
"""Rescues and elections without a rescue: ``resume`` has nothing to finish here."""
RESTORE_RECORDS = "restore-records"
"""Writes rescued records back: open until the same command has written all of them. What was written is in a
journal of its own in the rescue directory.
"""
COMMIT_OFFSETS, WRITE_MARKERS = "commit-offsets", "write-markers"
"""Fixes of consumer groups and of hanging transactions: the cluster shows what was done, so the same command
continues them.
"""
HEAL = "heal"
"""One entry around all moves of replicas of a run, open until its throttles are removed."""
KEEP_LOG = "keep-log"
"""One entry around the elections of a run and the moves that take silent brokers out of the assignments, so that
their logs are kept: open until each of these brokers is out, or cannot be taken out.
"""
REASSIGN, CANCEL_REASSIGNMENT, UNREGISTER = "reassign", "cancel-reassignment", "unregister-broker"
"""Moves of replicas: the cluster shows what was done, and the entry around them what is left to do."""
REPLACE = "replace-controller"
"""One entry for a whole controller replacement: open until its last step is done."""
CONFIRM = "confirm-steps"
"""An operator confirmed steps of a replacement that the cluster cannot show."""
_APART = (REPLACE, HEAL, KEEP_LOG)
"""Entries around several requests, each kind with a place of its own in :class:`Unfinished`."""
_NOTHING_TO_RESUME = frozenset(
    {
        RESCUE,
        NO_RESCUE,
        PLANNED,
        COMMIT_OFFSETS,
        WRITE_MARKERS,
        REASSIGN,
        CANCEL_REASSIGNMENT,
        UNREGISTER,
        DISK_READ,
        DISK_WAIVED,
    }
)


class OpenOrder(NamedTuple):
    """An assignment that may still have the order that was written for an election.

    ``applied``: whether the cluster accepted the order; None: not known. ``election_at``: since when an election
    of the partition is in doubt (it was not answered and may still be carried out); None: there is none. If a run
    on another host wrote the order, its journal is not here, and this is the time when the order was first read.
    ``write_at``: the same for the write of this order, which may be carried out after the order was restored: since
    it began while its end is not recorded, as of a run that was killed.
    """

    run_id: str
    entry: str
    at: str
    written: WrittenOrder
    applied: bool | None
    election_at: datetime | None = None
    write_at: datetime | None = None

    @property
    def write_until(self) -> datetime | None:
        """Until when its write may still be carried out; None: it is not in doubt."""
        return None if self.write_at is None else self.write_at + timedelta(seconds=ELECTION_ALIVE_FOR)

    @property
    def unanswered_until(self) -> datetime | None:
        """Until when its write, or an election of the partition, may be carried out; None: all was answered."""
        sent = [at for at in (self.write_at, self.election_at) if at is not None]
        return max(sent) + timedelta(seconds=ELECTION_ALIVE_FOR) if sent else None

    def none_sent_after(self, now: datetime) -> OpenOrder:
        """The same, with no request sent after ``now``."""
        election, write = (None if at is None else min(at, now) for at in (self.election_at, self.write_at))
        return self._replace(election_at=election, write_at=write)

    def may_come_after(self, at: datetime) -> bool:
        """Whether its write may still be carried out after a restore that was sent at that time."""
        return self.write_until is not None and at < self.write_until


class OpenElection(NamedTuple):
    """An election that was not answered, of a partition whose order this journal did not change for it: the chosen
    replica stood first already, the cluster elects designated leaders by name, or the election was of Kafka's own
    ``kind``. ``sent_at`` as ``election_at``.
    """

    run_id: str
    written: WrittenOrder
    sent_at: datetime
    kind: KafkaElectionKind | None = None

    @property
    def until(self) -> datetime:
        """Until when it may still be carried out."""
        return self.sent_at + timedelta(seconds=ELECTION_ALIVE_FOR)

    def needed(self, state: PartitionState) -> bool:
        """Whether the partition is still without the leader that the election would give it."""
        if self.kind is KafkaElectionKind.PREFERRED:
            return state.leader != state.replicas[0]
        return state.offline

    def none_sent_after(self, now: datetime) -> OpenElection:
        """The same, not sent after ``now``."""
        return self._replace(sent_at=min(self.sent_at, now))


class OpenEntry(NamedTuple):
    """Another request that was about to be sent, without a recorded end."""

    run_id: str
    entry: str
    at: str
    action: str
    detail: Mapping[str, Any]


_REFUSED_FOR_GOOD = frozenset(
    {"INVALID_TIMESTAMP", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD"}
)
STOPPED = "stopped before its turn"


def refused_for_good(answer: str) -> bool:
    """Whether the same batch gets this answer to Produce again: the topic's settings refuse it."""
    return answer.split(" ", maxsplit=1)[0].rstrip(":") in _REFUSED_FOR_GOOD


class OpenRestore(NamedTuple):
    """A restore of rescued records that was killed, or that left some of them out.

    ``words`` are its target and selection, as options of ``ktriage restore``; ``records`` were to be written.
    Where the topic does not take them for good, these are the options that write them to a new topic. ``waits``:
    why the same command would write nothing now, "" where it goes on.
    """

    run_id: str
    entry: str
    at: str
    directory: str
    words: tuple[str, ...]
    records: int
    waits: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command that finishes it, without the cluster."""
        return ("restore", self.directory, *self.words)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Everything that is open. Without the lock, a run that is still going on may be among it.

    ``confirmed`` are the steps that an operator confirmed, by the replacement's plan. ``heals`` are moves of
    replicas whose throttles may still be set. ``keeps`` are brokers to be taken out of assignments, so that their
    logs are kept. ``restores`` are finished by their own command. ``plan_file`` is the
    plan of the latest run that left orders or requests: its other elections were not sent; "" if there is none.
    ``elections`` need no undoing, so they hold up no other change; until they are dead their result is not known.
    ``operators`` are the person and the host of each run, by its id. ``unread_disks`` hold up nothing either: they
    are to be read before their brokers start (:mod:`recovery.unread_disks` says what became of them);
    ``read_disks`` were. ``others`` are runs that left something and have none of the cluster's marks: nothing of
    them is here.
    """

    orders: tuple[OpenOrder, ...]
    entries: tuple[OpenEntry, ...]
    replacements: tuple[OpenEntry, ...] = ()
    confirmed: Mapping[str, frozenset[int]] = field(default_factory=dict)
    heals: tuple[OpenEntry, ...] = ()
    restores: tuple[OpenRestore, ...] = ()
    plan_file: str = ""
    elections: tuple[OpenElection, ...] = ()
    operators: Mapping[str, str] = field(default_factory=dict)
    unread_disks: tuple[UnreadDisk, ...] = ()
    keeps: tuple[OpenEntry, ...] = ()
    read_disks: tuple[ReadDisk, ...] = ()
    others: OtherRuns = NO_OTHERS

    @property
    def nothing(self) -> bool:
        """Whether no run is to be finished."""
        requests = self.orders or self.elections or self.entries
        return not (requests or self.replacements or self.heals or self.restores or self.keeps)

    def none_sent_after(self, now: datetime) -> Unfinished:
        """The same, with the requests that seem to be sent later counted as sent ``now``: the clock was set back
        since.
        """
        return replace(
            self,
            orders=tuple(order.none_sent_after(now) for order in self.orders),
            elections=tuple(election.none_sent_after(now) for election in self.elections),
        )

    def of_other_runs(self, run_id: str) -> Unfinished:
        """What the other runs left open. The replacement that this run is working on is not counted as
        theirs.
        """
        replaces = any(entry.run_id == run_id for entry in self.replacements)
        return Unfinished(
            tuple(order for order in self.orders if order.run_id != run_id),
            tuple(entry for entry in self.entries if entry.run_id != run_id),
            () if replaces else self.replacements,
            self.confirmed,
            tuple(entry for entry in self.heals if entry.run_id != run_id),
            tuple(restore for restore in self.restores if restore.run_id != run_id),
            self.plan_file,
            tuple(election for election in self.elections if election.run_id != run_id),
            self.operators,
            self.unread_disks,
            tuple(entry for entry in self.keeps if entry.run_id != run_id),
            self.read_disks,
        )


def unfinished(cluster_id: str, root: Path | None = None, marks: ClusterMarks = NO_MARKS) -> Unfinished:
    """What the runs in the cluster's journal left open: with ``marks``, those that may have run on the cluster with
    them. Raises JournalError.
    """
    with without_collection():
        own, others = of_other_clusters(read_unsettled_runs(cluster_id, root), marks)
        left = OtherRuns(*(tuple(run for run in runs if not left_open([run]).nothing) for runs in others))
        return replace(left_open(own), others=left)


def left_open(runs: Iterable[RunRecord]) -> Unfinished:
    """What those runs, oldest first, left open together."""
    book = _Book()
    operators = {}
    for run in runs:
        operators[run.run_id] = run.operator
        for event in run.events:
            if isinstance(event, EntryBegun):
                book.before(run.run_id, event)
            elif isinstance(event, EntryEnded):
                book.after(event)
            else:
                book.settled(event)
    return replace(book.open(), operators=operators)


class _Book:
    """What is open so far; orders by partition, because several runs may have reordered one partition."""

    def __init__(self) -> None:
        self._orders: dict[TopicPartition, list[OpenOrder]] = {}
        self._entries: dict[str, OpenEntry] = {}
        self._restoring: dict[str, EntryBegun] = {}
        self._confirmed: dict[str, frozenset[int]] = {}
        self._electing: dict[str, EntryBegun] = {}
        self._in_doubt: dict[TopicPartition, str] = {}
        self._elected_by: dict[str, str] = {}
        self._elections: dict[TopicPartition, OpenElection] = {}
        # Partitions whose order a run wrote: their elections are in doubt with that order.
        self._reordered: set[tuple[str, TopicPartition]] = set()
        self._restores: dict[tuple[str, ...], OpenRestore] = {}
        self._plan_files: dict[str, tuple[str, str]] = {}
        self._disks = DiskBook()

    def open(self) -> Unfinished:
        for unanswered in self._electing.values():
            self._never_ended(unanswered)
        orders = tuple(self._with_doubt(order) for orders in self._orders.values() for order in orders)
        entries = tuple(entry for entry in self._entries.values() if entry.action not in _APART)
        restores = tuple(self._restores.values())
        elections = tuple(self._elections.values())
        runs = {order.run_id for order in orders} | {entry.run_id for entry in entries}
        runs.update(election.run_id for election in elections)
        files = [file for run_id, file in self._plan_files.values() if run_id in runs]
        return Unfinished(
            orders,
            entries,
            self._of(REPLACE),
            self._confirmed,
            self._of(HEAL),
            restores,
            files[-1] if files else "",
            elections,
            unread_disks=self._disks.open(),
            keeps=self._of(KEEP_LOG),
            read_disks=self._disks.closed,
        )

    def _of(self, action: str) -> tuple[OpenEntry, ...]:
        return tuple(entry for entry in self._entries.values() if entry.action == action)

    def _with_doubt(self, order: OpenOrder) -> OpenOrder:
        at = self._in_doubt.get(order.written.tp)
        return order if at is None else order._replace(election_at=datetime.fromisoformat(at))

    def before(self, run_id: str, event: EntryBegun) -> None:
        if event.action in (REORDER, FOUND_ORDER):
            if event.action == FOUND_ORDER:
                self._in_doubt.update((row.tp, event.at) for row in event.rows)
            write_at = datetime.fromisoformat(event.at) if event.action == REORDER else None
            for row in event.rows:
                self._reordered.add((run_id, row.tp))
                order = OpenOrder(run_id, event.entry, event.at, row, None, write_at=write_at)
                self._orders.setdefault(row.tp, []).append(order)
        elif event.action == RESTORE:
            self._restoring[event.entry] = event
        elif event.action == CONFIRM:
            plan, steps = str(event.detail.get("planId", "")), event.detail.get("steps", ())
            self._confirmed[plan] = self._confirmed.get(plan, frozenset()) | frozenset(steps)
        elif event.action == PLANNED:
            self._plan_files[event.entry] = run_id, str(event.detail.get("file", ""))
            self._disks.planned(event)
        elif event.action in (DISK_READ, DISK_WAIVED):
            self._disks.close(event)
        elif event.action == RESTORE_RECORDS:
            restore = _open_restore(run_id, event)
            self._restores[restore.command] = restore
        elif event.action not in _NOTHING_TO_RESUME:
            if event.action == ELECT:
                self._electing[event.entry] = event
                self._elected_by[event.entry] = run_id
            self._entries[event.entry] = OpenEntry(run_id, event.entry, event.at, event.action, event.detail)

    def after(self, event: EntryEnded) -> None:
        self._entries.pop(event.entry, None)
        self._plan_files.pop(event.entry, None)
        self._disks.ended(event)
        self._restore_ended(event)
        electing = self._electing.pop(event.entry, None)
        if electing is not None:
            self._in_doubt.update(dict.fromkeys(event.unknown, event.at))
            self._elections_ended(electing, event)
        for tp in led_afterwards(event.result):
            # A preferred election takes the partition from one leader to another.
            election = self._elections.get(tp)
            if election is not None and election.kind is not KafkaElectionKind.PREFERRED:
                del self._elections[tp]
        for tp in event.refused:
            self._keep(tp, lambda order: order.entry != event.entry)
        self._change(event.entry, event.applied, lambda order: order._replace(applied=True, write_at=None))
        failed_at = datetime.fromisoformat(event.at)
        self._change(event.entry, event.unknown, lambda order: order._replace(write_at=failed_at))
        restoring = self._restoring.pop(event.entry, None)
        if restoring is not None:
            sent_at = datetime.fromisoformat(restoring.at)
            for row in restoring.rows:
                if row.tp in event.applied:
                    self._restored(row, sent_at)

    def _never_ended(self, electing: EntryBegun) -> None:
        """The run was killed before it recorded an answer."""
        self._in_doubt.update((row.tp, electing.at) for row in electing.rows)
        self._keep_elections(electing, electing.rows, electing.at)

    def _elections_ended(self, electing: EntryBegun, ended: EntryEnded) -> None:
        """A refused request says nothing of an earlier one that was not answered; an accepted one elected."""
        self._keep_elections(electing, [row for row in electing.rows if row.tp in ended.unknown], ended.at)
        for tp in ended.applied:
            self._elections.pop(tp, None)

    def _keep_elections(self, electing: EntryBegun, rows: Iterable[WrittenOrder], at: str) -> None:
        run_id, sent_at = self._elected_by[electing.entry], datetime.fromisoformat(at)
        for row in rows:
            if (run_id, row.tp) not in self._reordered:
                kind = KafkaElectionKind.of(electing.detail)
                self._elections[row.tp] = OpenElection(run_id, row, sent_at, kind)

    def _change(
        self, entry: str, tps: Iterable[TopicPartition], changed: Callable[[OpenOrder], OpenOrder]
    ) -> None:
        """Replaces the orders of that entry for those partitions."""
        for tp in tps:
            self._orders[tp] = [
                changed(order) if order.entry == entry else order for order in self._orders.get(tp, ())
            ]

    def settled(self, event: EntriesSettled) -> None:
        self._close_restores(event.entries)
        for entry in event.entries:
            self._entries.pop(entry, None)
            electing = self._electing.pop(entry, None)
            if electing is not None:
                self._never_ended(electing)
        for tp in event.rows:
            self._orders.pop(tp, None)
            self._elections.pop(tp, None)

    def _restore_ended(self, event: EntryEnded) -> None:
        """It stays open with what is missing: to be written to another topic, or later."""
        mine = [one for one in self._restores.values() if one.entry == event.entry]
        self._close_restores({event.entry})
        elsewhere = event.result.get("instead", ())
        left = [why for why in event.refused.values() if not (elsewhere and refused_for_good(why))]
        for restore in mine:
            others = [restore._replace(words=tuple(map(str, words))) for words in elsewhere]
            if left:
                others.append(restore._replace(waits=next((why for why in left if why != STOPPED), "")))
            self._restores.update((one.command, one) for one in others)

    def _close_restores(self, entries: Collection[str]) -> None:
        still = (one for one in self._restores.values() if one.entry not in entries)
        self._restores = {one.command: one for one in still}

    def _restored(self, row: WrittenOrder, at: datetime) -> None:
        # A later run may have taken our order for the original one: then its restore does not undo ours.
        written = (row.order, row.replicas)
        self._keep(
            row.tp,
            lambda order: (
                (order.written.order, order.written.replicas) != written or order.may_come_after(at)
            ),
        )

    def _keep(self, tp: TopicPartition, condition: Callable[[OpenOrder], bool]) -> None:
        self._orders[tp] = [order for order in self._orders.get(tp, ()) if condition(order)]


def _open_restore(run_id: str, event: EntryBegun) -> OpenRestore:
    detail = event.detail
    words = tuple(map(str, detail.get("options", ())))
    directory, records = str(detail.get("directory", "")), int(detail.get("records", 0))
    return OpenRestore(run_id, event.entry, event.at, directory, words, records)
