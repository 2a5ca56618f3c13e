"""Writes the markers that hanging transactions lost: COMMIT where they were committed, ABORT where aborted."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from backends.base.transactions import Marker
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question
from console.errors import InputError, NotDone, Status
from console.jobs.consumers.group_offsets import refuse_unknown
from console.jobs.consumers.hanging_transactions import (
    JudgedTransaction,
    PartitionsTransactions,
    read_transactions,
)
from console.journal.change_kinds import WRITE_MARKERS
from console.plan_file_checks import refuse_other_cluster
from console.reading.consumer_reading import ConsumerReading, contradicted, read_back_as_consumer
from console.rescue_files.rescued_branch import RescueContents, refuse_other_rescue
from recovery.consumer_sight import Expected
from recovery.model import TopicPartition, Unknown
from recovery.plan.values import BarePlan, Plan
from recovery.wording.quantity_text import counted

READ_BACK_ATTEMPTS, PAUSE = 20, 0.25
"""How often a partition is read again until the transaction is closed, and the seconds in between."""


class MissingMarker(NamedTuple):
    """A marker that will be written. ``named``: an operator named the outcome; it is not certain otherwise."""

    row: JudgedTransaction
    leader: int
    marker: Marker
    named: bool = False


class NotEnded(NamedTuple):
    """A transaction that is left as it is, or was not ended, and why in one line."""

    tp: TopicPartition
    producer_id: int
    why: str


@dataclass(frozen=True, slots=True)
class PreparedMarkers:
    """What would be written, and what would not."""

    cluster_id: str
    found: PartitionsTransactions
    markers: tuple[MissingMarker, ...]
    left: tuple[NotEnded, ...]


@dataclass(frozen=True, slots=True)
class WrittenMarkers:
    """The result; ``after`` is what the leaders tell afterwards, ``consumer`` what consumers are given of the
    partitions whose transactions were ended.
    """

    prepared: PreparedMarkers
    sent: bool = False
    failures: tuple[NotEnded, ...] = ()
    after: PartitionsTransactions | None = None
    consumer: ConsumerReading | None = None


class NamedOutcome(NamedTuple):
    """The outcome that an operator names for a producer's transactions; no others are ended then."""

    producer_id: int
    commit: bool


@dataclass(frozen=True, slots=True)
class FixTransactions(Change[Backend, PreparedMarkers, WrittenMarkers]):
    """Ends the hanging transactions on the plan's partitions, or on those of ``topics``.

    ``title`` names the cluster in the question. ``rescue`` holds markers that were cut off. ``shown``: what was
    confirmed on a screen before; nothing else is sent.
    """

    plan: Plan | BarePlan | None
    topics: tuple[str, ...]
    title: str
    reason: str
    outcome: NamedOutcome | None = None
    dry_run: bool = False
    rescue: RescueContents | None = None
    shown: PreparedMarkers | None = None

    def without_lock(self, cluster_id: str) -> None:
        if self.plan is not None:
            refuse_other_cluster(self.plan, cluster_id)
        refuse_other_rescue(self.rescue, cluster_id)

    async def prepare(
        self, cluster: Backend, cluster_id: str, operator: Operator[PreparedMarkers]
    ) -> PreparedMarkers:
        partitions = None if self.plan is None else plan_partitions(self.plan, self.topics)
        found = await read_transactions(
            cluster, partitions, self.topics, operator.progress, self.rescue, plan=self.plan
        )
        if self.outcome is not None:
            self._refuse_absent_producer(found, self.outcome.producer_id)
        prepared = prepared_markers(cluster_id, found, self.outcome)
        return prepared if self.shown is None else _unchanged(self.shown, prepared)

    def _refuse_absent_producer(self, found: PartitionsTransactions, producer_id: int) -> None:
        if any(row.transaction.producer_id == producer_id for row in found.rows):
            return
        where = ", ".join(self.topics) or "the plan's partitions"
        unread = counted(len(found.unread), "partition")
        gap = f" ({unread} could not be read)" if found.unread else ""
        raise InputError(f"no open transaction of producer {producer_id} on {where}{gap}; nothing was sent")

    def nothing_to_send(self, prepared: PreparedMarkers) -> WrittenMarkers | None:
        return WrittenMarkers(prepared) if self.dry_run or not prepared.markers else None

    def question(self, prepared: PreparedMarkers) -> Question:
        number = len(prepared.markers)
        kinds = Counter("COMMIT" if one.marker.commit else "ABORT" for one in prepared.markers)
        which = " and ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items(), reverse=True))
        text = (
            f"{counted(number, 'marker')} ({which}) will be written on cluster {prepared.cluster_id}"
            f" ({self.title}). A marker cannot be taken back."
        )
        return Question.number(text, "the number of markers", number)

    async def recheck(
        self,
        cluster: Backend,
        prepared: PreparedMarkers,
        answer: str,
        operator: Operator[PreparedMarkers],
    ) -> PreparedMarkers:
        return _unchanged(prepared, await self.prepare(cluster, prepared.cluster_id, operator))

    async def execute(
        self, cluster: Backend, prepared: PreparedMarkers, run: ChangeRun[PreparedMarkers]
    ) -> WrittenMarkers:
        by_leader: dict[int, list[MissingMarker]] = defaultdict(list)
        for one in prepared.markers:
            by_leader[one.leader].append(one)
        failures: list[NotEnded] = []
        with run.stop.in_flight():
            for leader, missing in by_leader.items():
                if run.stop:
                    markers = [one.marker for one in missing]
                    failures.extend(NotEnded(m.tp, m.producer_id, "stopped before its turn") for m in markers)
                    continue
                failures.extend(await _write(cluster, leader, missing, run))
        written = [one.marker for one in prepared.markers]
        after = await _read_back(cluster, written)
        # A leader may have done it without an answer.
        reported = {(failure.tp, failure.producer_id): failure for failure in failures}
        left = [reported.get((one.tp, one.producer_id), one) for one in _still_open(written, after)]
        ended = {} if run.stop else _for_consumers(prepared.markers, left, after)
        return WrittenMarkers(prepared, True, tuple(left), after, await read_back_as_consumer(cluster, ended))

    def conclusion(self, result: WrittenMarkers) -> Conclusion:
        prepared = result.prepared
        counts = {
            "written": len(prepared.markers) - len(result.failures) if result.sent else 0,
            "failed": len(result.failures),
        }
        whole = prepared.found.complete and not prepared.left and not result.failures
        whole = whole and not contradicted(result.consumer)
        return Conclusion(Status.DONE if whole else Status.PARTLY, counts)


def _for_consumers(
    markers: Sequence[MissingMarker], left: Sequence[NotEnded], after: PartitionsTransactions
) -> dict[TopicPartition, Expected]:
    """The first transaction that was ended, of each partition where all were; without an offset where consumers
    wait at an earlier one of somebody else.
    """
    still_open = {one.tp for one in left}
    first: dict[TopicPartition, int] = {}
    for one in markers:
        tp, start = one.marker.tp, one.row.transaction.start_offset
        if tp not in still_open:
            first[tp] = min(start, first.get(tp, start))
    waiting: dict[TopicPartition, int] = {}
    for row in after.rows:
        tp, start = row.transaction.tp, row.transaction.start_offset
        waiting[tp] = min(start, waiting.get(tp, start))
    return {
        tp: Expected(ended=start if waiting.get(tp, start + 1) > start else None)
        for tp, start in first.items()
    }


def _unchanged(shown: PreparedMarkers, now: PreparedMarkers) -> PreparedMarkers:
    if [one.marker for one in now.markers] != [one.marker for one in shown.markers]:
        raise NotDone("the open transactions changed while the question stood open; nothing was sent")
    return now


def plan_partitions(plan: Plan | BarePlan, topics: Sequence[str]) -> tuple[TopicPartition, ...]:
    """The plan's partitions, of the topics named or of all. Raises InputError for a topic that it has not."""
    refuse_unknown("topic", topics, {row.tp.topic for row in plan.rows}, "in the plan")
    return tuple(row.tp for row in plan.rows if not topics or row.tp.topic in topics)


def prepared_markers(
    cluster_id: str, found: PartitionsTransactions, outcome: NamedOutcome | None
) -> PreparedMarkers:
    """Which markers are written, and why other transactions are left: the hanging ones, or all those of the
    producer that ``outcome`` names, and nobody else's.
    """
    markers: list[MissingMarker] = []
    left: list[NotEnded] = []
    rows = found.hanging
    if outcome is not None:
        rows = tuple(row for row in found.rows if row.transaction.producer_id == outcome.producer_id)
    for row in rows:
        transaction = row.transaction
        commit = _outcome(row, outcome)
        if isinstance(commit, str):
            left.append(NotEnded(transaction.tp, transaction.producer_id, commit))
            continue
        marker = Marker(
            transaction.tp,
            transaction.producer_id,
            transaction.epoch,
            commit,
            max(0, transaction.coordinator_epoch),
        )
        certain = not isinstance(row.judgement, Unknown) and row.judgement.certain
        leader = found.partitions[transaction.tp].leader
        markers.append(MissingMarker(row, leader, marker, named=not certain))
    return PreparedMarkers(cluster_id, found, tuple(markers), tuple(left))


def _outcome(row: JudgedTransaction, named: NamedOutcome | None) -> bool | str:
    """True a COMMIT, False an ABORT; else why nothing is written."""
    judgement = row.judgement
    if isinstance(judgement, Unknown):
        return f"what became of it is not known: {judgement}"
    if not judgement.hanging:
        return f"{judgement.ending} ({judgement.evidence}): no marker is missing"
    evident = judgement.committed
    if evident is not None and judgement.certain:
        if named is not None and named.commit is not evident:
            was = "committed" if evident else "aborted"
            return f"it was {was} ({judgement.evidence}); the other outcome is not written"
        return evident
    if named is not None:
        return named.commit
    return (
        f"{judgement.ending}, not certain ({judgement.evidence}): name the outcome with --producer-id"
        f" {row.transaction.producer_id} --outcome commit (or abort)"
    )


async def _write(
    cluster: Backend, leader: int, missing: Sequence[MissingMarker], run: ChangeRun[PreparedMarkers]
) -> list[NotEnded]:
    markers = [one.marker for one in missing]
    ids = [None if one.row.coordinated is None else one.row.coordinated.transactional_id for one in missing]
    lines = [
        {
            "transactionalId": name,
            "topic": m.tp.topic,
            "partition": m.tp.partition,
            "producerId": m.producer_id,
            "producerEpoch": m.epoch,
            "result": "COMMIT" if m.commit else "ABORT",
        }
        for name, m in zip(ids, markers, strict=True)
    ]
    entry = run.journal.before(WRITE_MARKERS, {"leader": leader, "markers": lines})
    try:
        ended = await cluster.marker_writer().write(leader, markers)
        failures = [NotEnded(m.tp, m.producer_id, why) for m, why in ended.items() if why is not None]
    except BackendError as error:
        failures = [NotEnded(m.tp, m.producer_id, str(error)) for m in markers]
    refused = [{"partition": str(f.tp), "producerId": f.producer_id, "why": f.why} for f in failures]
    run.journal.after(entry, {"notWritten": refused})
    return failures


async def _read_back(cluster: Backend, markers: Sequence[Marker]) -> PartitionsTransactions:
    partitions = list(dict.fromkeys(marker.tp for marker in markers))
    found = await read_transactions(cluster, partitions)
    for _ in range(READ_BACK_ATTEMPTS):
        if not list(_still_open(markers, found)):
            break
        await asyncio.sleep(PAUSE)
        found = await read_transactions(cluster, partitions)
    return found


def _still_open(markers: Sequence[Marker], found: PartitionsTransactions) -> list[NotEnded]:
    open_ones = {(row.transaction.tp, row.transaction.producer_id) for row in found.rows}
    rows = []
    for marker in markers:
        if marker.tp in found.unread:
            why = f"could not be read back: {found.unread[marker.tp]}"
            rows.append(NotEnded(marker.tp, marker.producer_id, why))
        elif (marker.tp, marker.producer_id) in open_ones:
            rows.append(NotEnded(marker.tp, marker.producer_id, "it is still open"))
    return rows
