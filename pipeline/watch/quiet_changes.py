"""Folds the records of a micro-batch: the changes of most partitions as columns, the others one by one.

A partition is quiet in a part of the log if it is in no incident there and none of its changes begins one. Nothing
about it is reported, so that only its state at the end counts: the last value of each field, and two epochs that
are counts. All other records go through :class:`IncidentFold`, which has the rules. What is taken for quiet must be
quiet; what is not may be.

A record about many partitions (a deleted topic, an emptied ELR) lies between two such parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.watch.change_columns import MOST_BROKERS, BrokerLists, change_columns
from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration, merge
from recovery.metadata_log.change_reader import CHANGE_AT, SUBJECT_AT
from recovery.metadata_log.incident_fold import IncidentFold
from recovery.metadata_log.log_changes import MetadataLogRecord, PartitionSubject
from recovery.metadata_log.partition_states import EpochState
from recovery.metadata_log.record_codec import FRAME_VERSION
from recovery.metadata_log.record_schemas import UNCHANGED_LEADER
from recovery.metadata_log.records import HIGHEST_VERSIONS, RecordType
from recovery.model import NO_LEADER

FEWEST = 100
"""Fewer records are folded one by one."""

MOST = 800_000
"""Records of a part. It ends earlier after the last partition that is created in it: the fold takes all changes of
these.
"""

_NO_END = 2**31 - 1
"""Arrow 26 reads beyond the bytes if a slice has no end."""

_TRANSACTIONS = (RecordType.BEGIN_TRANSACTION, RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION)
_OF_MANY = (RecordType.REMOVE_TOPIC, RecordType.CLEAR_ELR)
_VERSION_OF = {
    bytes((FRAME_VERSION, RecordType.PARTITION_CHANGE, version)): version
    for version in range(HIGHEST_VERSIONS[RecordType.PARTITION_CHANGE] + 1)
}
"""Of a PartitionChangeRecord by its bytes before SUBJECT_AT."""


def as_records(records: pa.Table) -> list[MetadataLogRecord]:
    """The records one by one."""
    columns = (records[name].to_pylist() for name in ("offset", "time_ms", "batch", "record"))
    return list(map(MetadataLogRecord, *columns))


def fold_columns(fold: IncidentFold, records: pa.Table) -> None:
    """Folds whole batches, in the order of the log; columns as :data:`pipeline.watch.log_part.RECORDS`."""
    values = records["record"].combine_chunks()
    if records.num_rows < FEWEST or not fold.settled or len(_places(values, _TRANSACTIONS)):
        fold.extend(as_records(records))
        return
    fold.extend(_loud_records(fold, records.filter(pc.greater_equal(records["offset"], fold.goes_on))))


def _loud_records(fold: IncidentFold, records: pa.Table) -> Iterator[MetadataLogRecord]:
    """The records that the fold has to take one by one. On the way, the states get what the quiet changes do."""
    records = records.combine_chunks()
    values = records["record"].combine_chunks()
    of_many = set(_places(values, _OF_MANY).tolist())
    created = _places(values, (RecordType.PARTITION,))
    last_created = created[np.diff(created // MOST, append=len(values)) > 0] + 1
    cuts = sorted(of_many.union(range(0, len(values), MOST), last_created.tolist()) - {len(values)})
    for start, end in pairwise([*cuts, len(values)]):
        first = start + (start in of_many)
        yield from as_records(records.slice(start, first - start))
        yield from _loud_of_part(fold, records.slice(first, end - first).combine_chunks())


def _loud_of_part(fold: IncidentFold, part: pa.Table) -> Iterator[MetadataLogRecord]:
    values = part["record"].combine_chunks()
    heads = pc.binary_slice(values, 0, SUBJECT_AT)
    whole = pc.greater(pc.binary_length(values), CHANGE_AT)
    at = pc.indices_nonzero(pc.and_(pc.is_in(heads, value_set=pa.array(_VERSION_OF, pa.binary())), whole))
    head = pc.unique(heads.take(at))
    if len(at) < FEWEST or len(head) > 1:
        # Records of several versions: the cluster has just been upgraded.
        yield from as_records(part)
        return
    changed = _Changed(fold, values.take(at), head[0].as_py())
    created = values.take(_places(values, (RecordType.PARTITION,))).to_pylist()
    loud = changed.loud({value[SUBJECT_AT:CHANGE_AT] for value in created})
    quiet = np.zeros(len(part), bool)
    quiet[at.to_numpy()[~loud[changed.subject_of]]] = True
    yield from as_records(part.filter(pa.array(~quiet)))
    changed.put_quiet(loud)
    last = np.flatnonzero(quiet)
    if len(last):
        fold.passed(part["offset"][int(last[-1])].as_py(), part["time_ms"][int(last[-1])].as_py())


class _Changed:
    """The partitions that a part changes, and its changes, which all begin with ``head``. ``subject_of`` has the
    partition of each change, by its number.
    """

    def __init__(self, fold: IncidentFold, changes: Any, head: bytes) -> None:
        self._fold = fold
        subjects = pc.dictionary_encode(pc.binary_slice(changes, SUBJECT_AT, CHANGE_AT))
        tails = pc.dictionary_encode(pc.binary_slice(changes, CHANGE_AT, _NO_END))
        self._where = subjects.dictionary.to_pylist()
        self._subjects = [fold.partition_subject(where) for where in self._where]
        self._before = [fold.states.now.get(subject) for subject in self._subjects]
        self._set = change_columns(tails.dictionary, _VERSION_OF[head], partial(self._decoded, head))
        self.subject_of = subjects.indices.to_numpy()
        # From here on, the changes of each partition are together, in the order of the log.
        order = np.argsort(self.subject_of.astype(np.min_scalar_type(len(self._subjects))), kind="stable")
        self._subject, self._tail = self.subject_of[order], tails.indices.to_numpy()[order]
        self._first = np.flatnonzero(np.diff(self._subject, prepend=-1))
        self._count = np.diff(self._first, append=len(order))
        shapes = [_UNKNOWN if state is None else state.shape for state in self._before]
        # Of each field the values before the changes, and then those that the changes set.
        self._leaders = np.append(np.array([shape.leader for shape in shapes], np.int32), self._set.leader)
        self._leader_after = self._after(self._set.leader != UNCHANGED_LEADER)
        self._lists = {
            name: BrokerLists.of([getattr(shape, name) for shape in shapes]).then(lists)
            for name, lists in self._set.lists.items()
        }
        self._list_after = {name: self._after(lists.counts >= 0) for name, lists in self._set.lists.items()}

    def _decoded(self, head: bytes, tail: bytes) -> PartitionChange:
        change = self._fold.partition_fields(head + tail)
        assert isinstance(change, PartitionChange)
        return change

    def _after(self, sets: Any) -> Any:
        """The value that a field has after each change, by its place among all its values. ``sets``: which changes
        set it.
        """
        newest = np.maximum.accumulate(np.where(sets[self._tail], np.arange(len(self._tail)), -1))
        is_set = newest >= np.repeat(self._first, self._count)
        return np.where(is_set, len(self._subjects) + self._tail[newest], self._subject)

    def _before_each(self, after: Any) -> Any:
        """The same for the value before each change."""
        before = np.roll(after, 1)
        before[self._first] = self._subject[self._first]
        return before

    def loud(self, created: set[bytes]) -> Any:
        """Of each partition whether it may be in an incident, or is ``created``; if so, it is for the fold."""
        loud = np.array(
            [
                self._may_be_in_incident(subject, before) or where in created
                for subject, before, where in zip(self._subjects, self._before, self._where, strict=True)
            ]
        )
        loud[self._subject[self._set.loud[self._tail]]] = True
        leader = self._set.leader[self._tail]
        before = self._leaders[self._before_each(self._leader_after)]
        moves = np.flatnonzero((leader != UNCHANGED_LEADER) & (leader != before))
        clean = np.zeros(len(moves), bool)
        for name in ("isr", "elr"):
            before = self._before_each(self._list_after[name])
            clean |= self._lists[name].have(before[moves], leader[moves])
        loud[self._subject[moves[~clean]]] = True
        return loud

    def _may_be_in_incident(self, subject: PartitionSubject, before: EpochState | None) -> bool:
        """Also if it is not known, or has more brokers than a row of BrokerLists: then the fold decides."""
        return (
            before is None
            or not before.shape.has_leader
            or before.shape.leader_recovery_state is LeaderRecoveryState.RECOVERING
            or max(len(before.shape.isr), len(before.shape.elr), len(before.shape.last_known_elr))
            > MOST_BROKERS
            or self._fold.in_incident(subject)
        )

    def put_quiet(self, loud: Any) -> None:
        """The states of the quiet partitions after all changes."""
        quiet = np.flatnonzero(~loud)
        last = (self._first + self._count - 1)[quiet]
        with_leader = (self._set.leader != UNCHANGED_LEADER)[self._tail]
        others = self._other_changes()
        columns = (
            quiet.tolist(),
            self._leaders[self._leader_after[last]].tolist(),
            *(
                self._lists[name].tuples(self._list_after[name][last])
                for name in ("isr", "elr", "last_known_elr")
            ),
            np.add.reduceat(with_leader, self._first, dtype=np.int64)[quiet].tolist(),
            self._count[quiet].tolist(),
        )
        for number, leader, isr, elr, last_known_elr, leader_epochs, changes in zip(*columns, strict=True):
            state = self._before[number]
            assert state is not None
            after = state.shape
            for other in others.get(number, ()):
                after = merge(after, other)
            after = after._replace(
                leader=leader,
                isr=isr,
                elr=elr,
                last_known_elr=last_known_elr,
                leader_epoch=state.leader_epoch + leader_epochs,
                partition_epoch=state.partition_epoch + changes,
            )
            self._fold.states.put(self._subjects[number], after)

    def _other_changes(self) -> dict[int, list[PartitionChange]]:
        """By the number of the partition, in the order of the log."""
        found: dict[int, list[PartitionChange]] = {}
        if self._set.others:
            places = np.flatnonzero(np.isin(self._tail, list(self._set.others)))
            for number, tail in zip(self._subject[places].tolist(), self._tail[places].tolist(), strict=True):
                found.setdefault(number, []).append(self._set.others[tail])
        return found


_UNKNOWN = Registration((), (), NO_LEADER)


def _places(values: Any, kinds: Sequence[RecordType]) -> Any:
    """Where the records of those types are."""
    heads = pa.array([bytes((kind,)) for kind in kinds], pa.binary())
    return pc.indices_nonzero(pc.is_in(pc.binary_slice(values, 1, 2), value_set=heads)).to_numpy()
