"""Which changes in the metadata log were requested by runs in the journal of this host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from console.errors import InputError
from console.journal.errors import JournalError
from console.journal.journal_lines import KafkaElectionKind
from console.journal.run_records import EntryBegun, EntryEnded, RunRecord, read_runs, unread_lines
from recovery.controller.registration import Registration
from recovery.metadata_log.timeline import ClusterEvent, PartitionMove
from recovery.model import TopicPartition
from recovery.requests_in_doubt import ELECT, ELECTION_ALIVE_FOR, REORDER, REVERT

UNANSWERED_MS = int(ELECTION_ALIVE_FOR * 1000)
"""Milliseconds in which a request without an answer may still be carried out."""
CLOCKS_MS = 2_000
"""The largest difference between this host's clock and the controller's that is expected."""

_Fits = Callable[[Registration, Registration], bool]


class OwnChange(NamedTuple):
    """A change of one partition that was requested between two moments (ms since 1970). ``fits``: whether a change
    (before, after) is what was requested.
    """

    since_ms: int
    until_ms: int
    fits: _Fits


class OwnChanges:
    """What runs of the journal requested, by partition."""

    def __init__(self, runs: Iterable[RunRecord] = ()) -> None:
        self._by_partition: dict[TopicPartition, list[OwnChange]] = {}
        for run in runs:
            self._add(run)

    def _add(self, run: RunRecord) -> None:
        ended: dict[str, EntryEnded] = {}
        for event in run.events:
            if isinstance(event, EntryEnded):
                # An order whose write was not answered gets a second end event once a reading shows the order.
                ended.setdefault(event.entry, event)
        for event in run.events:
            if isinstance(event, EntryBegun) and event.action in (REORDER, ELECT, REVERT):
                end = ended.get(event.entry)
                since = _ms(event.at)
                until = since + UNANSWERED_MS if end is None or end.unknown else _ms(end.at)
                for tp, fits in _requests(event, end):
                    change = OwnChange(since - CLOCKS_MS, until + CLOCKS_MS, fits)
                    self._by_partition.setdefault(tp, []).append(change)

    def count(self, event: ClusterEvent) -> int:
        """How many of the event's partitions were changed by a request of ours."""
        if not self._by_partition:
            return 0
        return sum(self._made(move, event.time_ms) for move in event.moves)

    def _made(self, move: PartitionMove, time_ms: int) -> bool:
        before, after = move.before, move.after
        if before is None or after is None:
            return False
        return any(
            change.since_ms <= time_ms <= change.until_ms and change.fits(before, after)
            for change in self._by_partition.get(move.tp, ())
        )


def own_changes(cluster_id: str) -> tuple[OwnChanges, tuple[str, ...]]:
    """What the journal of the cluster names, and why nothing is marked where the journal cannot be read. The
    metadata log can be shown all the same.
    """
    try:
        runs = read_runs(cluster_id)
        unread = tuple(line for run in runs for line in unread_lines(run))
        return OwnChanges(runs), unread
    except (InputError, JournalError) as error:
        return OwnChanges(), (f"the changes that this host requested are not marked: {error}",)


def _requests(begun: EntryBegun, end: EntryEnded | None) -> Iterable[tuple[TopicPartition, _Fits]]:
    refused = frozenset(() if end is None else end.refused)
    named = {row.tp: row for row in begun.rows}
    if KafkaElectionKind.of(begun.detail) is not None:
        # Kafka chose the leaders. Its answer to an election of all partitions leaves out those that needed none.
        elected = named if end is None else {*end.applied, *end.unknown}
        yield from ((tp, _elected(None)) for tp in elected)
        return
    for tp, row in named.items():
        if tp in refused:
            continue
        if begun.action == ELECT:
            yield tp, _elected(row.leader)
        else:
            yield tp, _ordered(row.order if begun.action == REORDER else row.replicas)
    if begun.action == ELECT and end is not None:
        yield from ((tp, _elected(None)) for tp in end.applied if tp not in named)


def _elected(leader: int | None) -> _Fits:
    return lambda before, after: (
        after.leader_epoch > before.leader_epoch and after.has_leader and leader in (None, after.leader)
    )


def _ordered(replicas: tuple[int, ...]) -> _Fits:
    return lambda before, after: before.replicas != after.replicas and after.replicas == replicas


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)
