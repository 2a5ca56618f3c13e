"""The kinds of change: what each records, in words, and what a run that was killed leaves of it.

The journal, ``resume``, the report of an incident, the hand-over and the reminder of every command read this. A new
kind of change is a new :class:`ChangeKind` in :data:`KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple

from backends.base.check_report import CLUSTER_RESOURCE, TOPICS
from console.journal.planned_elections import PLANNED
from console.journal.run_records import EntryBegun, EntryEnded
from console.journal.unread_disks import DISK_READ, DISK_WAIVED, disk_partitions
from recovery.heal_plan import ReplicaMove
from recovery.log_preservation import taken_out
from recovery.membership.voters import ReplicaKey
from recovery.model import TopicPartition
from recovery.requests_in_doubt import ELECT, FOUND_ORDER, REORDER, REVERT, SentRequest
from recovery.wording.quantity_text import both, counted, either, ids, more, printable, some_of

RESCUE, NO_RESCUE = "rescue", "no-rescue"
RESTORE_RECORDS = "restore-records"
COMMIT_OFFSETS, WRITE_MARKERS = "commit-offsets", "write-markers"
HEAL, REASSIGN, CANCEL_REASSIGNMENT = "heal", "reassign", "cancel-reassignment"
KEEP_LOG, UNREGISTER = "keep-log", "unregister-broker"
REPLACE, CONFIRM = "replace-controller", "confirm-steps"
NOT_REBUILT = "notRebuilt"
"""In the detail of a replacement: somebody has looked that nobody has rebuilt the quorum."""
ADD_VOTER, REMOVE_VOTER, UPGRADE_FEATURE = "add-voter", "remove-voter", "upgrade-feature"
UNREGISTER_CONTROLLER = "unregister-controller"

ORDERS_ROOM = "elect.revert_orders"
"""In console.jobs: what reverts orders, waits for elections and closes requests whose end is not known."""
NOT_KNOWN = "the result is not known"
SHOWN = 5
"""So many names, and so many lines, of what is unfinished; the others are counted."""
Detail = Mapping[str, Any]
Row = tuple[str, ...]


class Left(Enum):
    """What an entry without a recorded end leaves."""

    NOTHING = auto()
    """The cluster shows what was done, and the same command continues it."""
    REQUEST = auto()
    """A request whose end is not known: the next change, or ``resume``, looks at the cluster and closes it."""
    ORDERS = auto()
    """Orders of assignments that were written for an election (:mod:`recovery.requests_in_doubt`): ``resume``
    undoes them, once nothing of the election can come any more.
    """
    ELECTIONS = auto()
    """A request as above, and elections that may still be carried out: ``resume`` waits for them."""
    WORK = auto()
    """Work that several requests make up: open until ``resume``, or the same change, has done the rest."""
    RECORDS = auto()
    """Records to be written: finished by the command that began it."""


def _nothing(_: EntryBegun) -> str:
    return ""


def _no_rows(_: EntryBegun, __: EntryEnded | None) -> Iterator[Row]:
    return iter(())


class Right(NamedTuple):
    """A permission that a change needs: an operation on a resource, and what for."""

    operation: str
    resource: str
    use: str

    @classmethod
    def alter(cls, use: str) -> Right:
        return cls("ALTER", CLUSTER_RESOURCE, use)


class OpenChange(NamedTuple):
    """A change that is not finished, as the journal tells: what one entry, begun ``at`` that time, left open.

    ``requests``: what is open of its elections, partition by partition. ``ended``: its end is recorded, and leaves
    them. ``command``: the words that finish it, without the cluster; ``waits``: why that command would do nothing
    now, "" where it goes on.
    """

    kind: ChangeKind
    run_id: str
    entry: str
    at: str
    detail: Detail
    requests: tuple[SentRequest, ...] = ()
    ended: bool = False
    command: tuple[str, ...] = ("resume",)
    waits: str = ""

    @property
    def action(self) -> str:
        return self.kind.action

    @property
    def file(self) -> Path:
        """The plan of a controller replacement."""
        return Path(str(self.detail.get("file", "")))

    @property
    def end_unknown(self) -> bool:
        """Whether it is a request that is closed once somebody has looked at the cluster."""
        return not self.ended and self.kind.left in (Left.REQUEST, Left.ELECTIONS)


RunName = Callable[[str, str], str]
"""The name of a run in a sentence, from its id and a time in it ("" for none)."""
UnfinishedLines = Callable[[RunName, Sequence[OpenChange], datetime], Iterator[str]]


def _end_unknown(run: RunName, changes: Sequence[OpenChange], _now: datetime) -> Iterator[str]:
    for change in changes[:SHOWN]:
        yield f"{run(change.run_id, change.at)} sent a request whose end is not known: {printable(change.action)}"


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """One kind of change, or of note, by the ``action`` that the journal records.

    ``about`` follows the action in the journal's line. ``sentence`` takes the place of both: of notes, which send
    nothing and have no result. ``unfinished``: the lines that say what the open changes of this kind are, as it
    stands at a time. ``rows`` are what it changed and with which result, under ``columns`` in a report, by
    ``row_line`` in the journal. ``rescue``: its detail names a directory of rescued records. ``rights``: what
    the cluster must permit for it. ``finished_by``: the module of ``console.jobs`` whose ``finish`` ends what it
    left unfinished (:mod:`console.change.finish_earlier`), "" where a command of its own does that.
    """

    action: str
    left: Left = Left.NOTHING
    about: Callable[[EntryBegun], str] = _nothing
    sentence: Callable[[EntryBegun], str] | None = None
    unfinished: UnfinishedLines = _end_unknown
    columns: tuple[str, ...] = ()
    row_line: str = ""
    rows: Callable[[EntryBegun, EntryEnded | None], Iterator[Row]] = _no_rows
    rescue: bool = False
    rights: tuple[Right, ...] = ()
    finished_by: str = ORDERS_ROOM

    @property
    def opens(self) -> bool:
        """Whether an entry of it is open until its end is recorded."""
        return self.left in (Left.REQUEST, Left.ELECTIONS, Left.WORK)

    @property
    def is_note(self) -> bool:
        """Whether it sends nothing."""
        return self.sentence is not None

    def text(self, begun: EntryBegun) -> str:
        """One line that says what was to be done."""
        if self.sentence is not None:
            return self.sentence(begun)
        count = f" of {counted(len(begun.rows), 'partition')}" if begun.rows else ""
        return f"{begun.action}{count}{self.about(begun)}"


def kind_of(action: str) -> ChangeKind:
    """A request that this version does not know is one whose end has to be looked at."""
    return KINDS.get(action) or ChangeKind(action, Left.REQUEST)


# Elections.


def _election(begun: EntryBegun) -> str:
    kind = begun.detail.get("election")
    return f", {kind}" if kind else ""


def _planned(begun: EntryBegun) -> str:
    return f" by {begun.detail['file']}" if "file" in begun.detail else ""


def _orders_left(run: RunName, changes: Sequence[OpenChange], now: datetime) -> Iterator[str]:
    requests = [request for change in changes for request in change.requests]
    # A partition whose order was written twice, and once without an answer, is one assignment.
    assignments = list(dict.fromkeys(request.written.tp for request in requests))
    untils = [request.until for request in requests if request.until is not None]
    doubt = f"; its requests without an answer {_may_be_carried_out(max(untils), now)}" if untils else ""
    first = changes[0]
    yield (
        f"{run(first.run_id, first.at)} may have left {counted(len(assignments), 'assignment')} in the order of an"
        f" election: {some_of(assignments, SHOWN)}{doubt}"
    )


def _elections_left(run: RunName, changes: Sequence[OpenChange], now: datetime) -> Iterator[str]:
    requests = [request for change in changes for request in change.requests]
    if requests:
        tps = [request.written.tp for request in requests]
        until = max(request.until for request in requests if request.until is not None)
        first = next(change for change in changes if change.requests)
        yield (
            f"{run(first.run_id, '')} had no answer to the election of {counted(len(tps), 'partition')}:"
            f" {some_of(tps, SHOWN)}; it {_may_be_carried_out(until, now)}"
        )


def _may_be_carried_out(until: float, now: datetime) -> str:
    """What may still become of requests without an answer."""
    last = datetime.fromtimestamp(until, UTC)
    moment = f"{last:%H:%M:%S} UTC ({last:%Y-%m-%d})"
    if now < last:
        return f"may be carried out until {moment}"
    return f"could be carried out until {moment}; that time has passed, and resume checks what became of them"


def _found_order(begun: EntryBegun) -> str:
    return f"found the order of an election by another run on {counted(len(begun.rows), 'partition')}"


# Rescue and restore.


def _into(begun: EntryBegun) -> str:
    return f" into {begun.detail['directory']}" if "directory" in begun.detail else ""


def _no_rescue(begun: EntryBegun) -> str:
    lossy = counted(int(begun.detail.get("partitions", 0)), "partition")
    return f"not read before the elections: what they cut off of {lossy}"


def _records(begun: EntryBegun) -> str:
    detail = begun.detail
    topics = ", ".join(map(str, detail.get("topics", ())))
    source = " (the source)" if detail.get("target") == "source" else ""
    return f": {detail.get('records', '?')} of {detail.get('directory', '?')} to {topics}{source}"


def _records_left(run: RunName, changes: Sequence[OpenChange], _now: datetime) -> Iterator[str]:
    for change in changes[:SHOWN]:
        records = counted(int(change.detail.get("records", 0)), "rescued record")
        _, directory, *words = change.command
        yield printable(
            f"a restore of {run(change.run_id, change.at)} was not finished: {records} of {directory}"
            f" ({' '.join(words)}); {change.waits or 'this command writes what is missing'}"
        )
    yield from more(len(changes) - SHOWN, " restores that were not finished")


def _disk(what: str) -> Callable[[EntryBegun], str]:
    def sentence(begun: EntryBegun) -> str:
        detail = begun.detail
        partitions = counted(len(disk_partitions(detail)), "partition")
        done = what.format(detail.get("directory", "?"))
        return f"the disk of broker {detail.get('broker', '?')} {done}: {partitions}"

    return sentence


# Consumer groups and transactions.


def _offsets(begun: EntryBegun) -> str:
    number = len(begun.detail.get("offsets", ()))
    return f" of {counted(number, 'partition of a group', 'partitions of groups')}"


def _markers(begun: EntryBegun) -> str:
    return f" of {counted(len(begun.detail.get('markers', ())), 'transaction')}"


def _offset_rows(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    failed = {(one.get("group"), one.get("partition")): one for one in _list(ended, "notCommitted")}
    done = "put back by --undo" if begun.detail.get("undo") else "set"
    for one in begun.detail.get("offsets", ()):
        name = f"{one.get('topic')}-{one.get('partition')}"
        problem = failed.get((one.get("group"), name))
        before, after = (one.get(key, {}).get("offset", "?") for key in ("before", "after"))
        yield str(one.get("group")), name, str(before), str(after), _result(ended, problem, done)


def _marker_rows(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    failed = {(one.get("producerId"), one.get("partition")): one for one in _list(ended, "notWritten")}
    for one in begun.detail.get("markers", ()):
        name = f"{one.get('topic')}-{one.get('partition')}"
        problem = failed.get((one.get("producerId"), name))
        producer = f"{one.get('producerId')}, epoch {one.get('producerEpoch')}"
        if one.get("transactionalId"):
            producer = f"{one['transactionalId']} ({producer})"
        yield producer, name, str(one.get("result")), _result(ended, problem, "written")


def _list(ended: EntryEnded | None, key: str) -> list[Detail]:
    return [] if ended is None else list(ended.result.get(key, ()))


def _result(ended: EntryEnded | None, problem: Detail | None, done: str) -> str:
    if ended is None:
        return NOT_KNOWN
    return done if problem is None else f"not {done}: {problem.get('why', '?')}"


# Moves of replicas.


def _moves(begun: EntryBegun) -> str:
    detail = begun.detail
    gone = f" for broker {', '.join(map(str, detail['gone']))}" if "gone" in detail else ""
    rows = detail.get("moves", detail.get("partitions"))
    return f" {detail.get('broker', '?')}" if rows is None else f" of {counted(len(rows), 'partition')}{gone}"


def _heal_left(run: RunName, changes: Sequence[OpenChange], _now: datetime) -> Iterator[str]:
    for change in changes:
        yield (
            f"{run(change.run_id, change.at)} that moved replicas was not finished: copies may be in progress,"
            " and throttles of replication may be set"
        )


def _move_rows(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    ends = {one.get("partition"): one for one in _list(ended, "ended")}
    undo = " by heal undo" if begun.detail.get("undo") else ""
    for move in begun.detail.get("moves", ()):
        name = f"{move.get('topic')}-{move.get('partition')}"
        end = ends.get(name, {})
        reported = f"{end['end']}{undo}" if end.get("end") else NOT_KNOWN
        result = ": ".join(filter(None, (reported, end.get("why"))))
        yield name, ids(move.get("before", ())), ids(move.get("after", ())), result


def _unregistered(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[Row]:
    problem = None if ended is None else str(ended.result.get("problem", ""))
    yield str(begun.detail.get("broker", "?")), NOT_KNOWN if problem is None else problem or "done"


# Logs that are kept.


class KeepMove(NamedTuple):
    """A move that takes silent brokers out. ``leader_epoch`` is that before the election."""

    move: ReplicaMove
    leader_epoch: int


def keep_moves(detail: Detail) -> Iterator[KeepMove]:
    """The moves of an entry's detail."""
    for row in detail.get("moves", ()):
        tp = TopicPartition(str(row["topic"]), int(row["partition"]))
        before, after = tuple(map(int, row["before"])), tuple(map(int, row["after"]))
        move = ReplicaMove(tp, str(row["topicId"]), before, after, int(row["bytes"]))
        yield KeepMove(move, int(row["leaderEpoch"]))


def _silent_brokers(moves: Sequence[KeepMove]) -> list[int]:
    return sorted({broker for keep in moves for broker in taken_out(keep.move)})


def _preserved(begun: EntryBegun) -> str:
    moves = list(keep_moves(begun.detail))
    return f" of broker {both(_silent_brokers(moves))}: {counted(len(moves), 'partition')}"


def _keep_left(run: RunName, changes: Sequence[OpenChange], _now: datetime) -> Iterator[str]:
    for change in changes:
        brokers = _silent_brokers(list(keep_moves(change.detail)))
        yield (
            f"{run(change.run_id, change.at)} was to keep the logs of brokers that are down: whether each is"
            f" out of the replica sets is not known. Do not start broker {either(brokers)} before ktriage resume"
            " has looked"
        )


# The quorum.


def _voter(begun: EntryBegun) -> str:
    detail = begun.detail
    if "feature" in detail:
        return f" {detail['feature']} to {detail.get('level', '?')}"
    if "controller" in detail:
        return f" {detail['controller']}"
    if "voter" in detail:
        return f" {ReplicaKey(int(detail['voter']), str(detail.get('directoryId', '')))}"
    return ""


def _replacement_left(run: RunName, changes: Sequence[OpenChange], _now: datetime) -> Iterator[str]:
    newest = changes[-1]
    name = run(newest.run_id, newest.at)
    yield f"a controller replacement of {name} is not done: {printable(str(newest.file))}"


def _steps(begun: EntryBegun) -> str:
    return f" {', '.join(map(str, begun.detail['steps']))}" if "steps" in begun.detail else ""


_THROTTLES = (
    Right.alter("assignments"),
    Right("ALTER_CONFIGS", CLUSTER_RESOURCE, "throttles of moved replicas"),
    Right("ALTER_CONFIGS", TOPICS, "throttles of moved replicas"),
)

KINDS: Mapping[str, ChangeKind] = {
    kind.action: kind
    for kind in (
        ChangeKind(PLANNED, about=_planned, rights=(Right.alter("elections"),)),
        ChangeKind(REORDER, Left.ORDERS, unfinished=_orders_left, rights=(Right.alter("assignments"),)),
        ChangeKind(FOUND_ORDER, Left.ORDERS, sentence=_found_order, unfinished=_orders_left),
        ChangeKind(
            ELECT,
            Left.ELECTIONS,
            _election,
            unfinished=_elections_left,
            rights=(Right.alter("elections"),),
        ),
        ChangeKind(REVERT, Left.ORDERS, rights=(Right.alter("assignments"),)),
        ChangeKind(
            KEEP_LOG,
            Left.WORK,
            _preserved,
            unfinished=_keep_left,
            rights=(Right.alter("assignments"),),
            finished_by="elect.preserved_logs",
        ),
        ChangeKind(
            REPLACE,
            Left.WORK,
            _planned,
            unfinished=_replacement_left,
            rights=(Right.alter("voters"),),
            finished_by="",
        ),
        ChangeKind(CONFIRM, about=_steps),
        ChangeKind(
            COMMIT_OFFSETS,
            about=_offsets,
            rows=_offset_rows,
            columns=("group", "partition", "offset before", "offset after", "result"),
            row_line="{0}, {1}: offset {2} -> {3} ({4})",
            rights=(Right("READ", "Group:*", "offsets of groups"),),
        ),
        ChangeKind(
            WRITE_MARKERS,
            about=_markers,
            rows=_marker_rows,
            columns=("producer", "partition", "ended by", "result"),
            row_line="{0}, {1}: {2} ({3})",
            rights=(Right.alter("transaction markers"),),
        ),
        ChangeKind(
            HEAL,
            Left.WORK,
            _moves,
            unfinished=_heal_left,
            rows=_move_rows,
            columns=("partition", "replicas before", "replicas after", "result"),
            row_line="{0}: replicas {1} -> {2} ({3})",
            rights=_THROTTLES,
            finished_by="heal.finish_heals",
        ),
        ChangeKind(REASSIGN, about=_moves, rights=(Right.alter("assignments"),)),
        ChangeKind(CANCEL_REASSIGNMENT, about=_moves, rights=(Right.alter("assignments"),)),
        ChangeKind(
            UNREGISTER,
            about=_moves,
            rows=_unregistered,
            columns=("broker that was unregistered", "result"),
            row_line="broker {0}: {1}",
            rights=(Right.alter("unregistering brokers"),),
        ),
        ChangeKind(RESCUE, about=_into, rescue=True),
        ChangeKind(NO_RESCUE, sentence=_no_rescue),
        ChangeKind(DISK_READ, sentence=_disk("was read into {}"), rescue=True),
        ChangeKind(DISK_WAIVED, sentence=_disk("is not to be read any more")),
        ChangeKind(
            RESTORE_RECORDS,
            Left.RECORDS,
            _records,
            unfinished=_records_left,
            rescue=True,
            rights=(Right("WRITE", TOPICS, "records that are written back"),),
        ),
        ChangeKind(ADD_VOTER, Left.REQUEST, _voter, rights=(Right.alter("voters"),)),
        ChangeKind(REMOVE_VOTER, Left.REQUEST, _voter, rights=(Right.alter("voters"),)),
        ChangeKind(UNREGISTER_CONTROLLER, about=_voter, rights=(Right.alter("voters"),)),
        ChangeKind(UPGRADE_FEATURE, Left.REQUEST, _voter, rights=(Right.alter("voters"),)),
    )
}
"""By action, in the order in which what is unfinished is said, shown in a report, and finished."""


def rights_of(actions: Iterable[str]) -> frozenset[tuple[str, str]]:
    """The operations, each with its resource, that the cluster must permit for changes of these kinds."""
    return frozenset((right.operation, right.resource) for name in actions for right in kind_of(name).rights)


def used_for(operation: str, resource: str) -> tuple[str, ...]:
    """What changes need that permission for."""
    rights = (right for kind in KINDS.values() for right in kind.rights)
    return tuple(dict.fromkeys(right.use for right in rights if right[:2] == (operation, resource)))


def unfinished_change_lines(changes: Sequence[OpenChange], run: RunName, now: datetime) -> Iterator[str]:
    """What open changes are, in a few lines, as it stands ``now``; last the requests whose end is not known."""
    by_lines: dict[UnfinishedLines, list[OpenChange]] = {}
    for kind in KINDS.values():
        mine = [change for change in changes if change.action == kind.action]
        if mine and kind.unfinished is not _end_unknown:
            by_lines.setdefault(kind.unfinished, []).extend(mine)
    for lines, mine in by_lines.items():
        yield from lines(run, mine, now)
    yield from _end_unknown(run, [change for change in changes if change.end_unknown], now)
