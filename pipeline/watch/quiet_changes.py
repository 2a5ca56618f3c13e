"""Folds the records of a micro-batch: the changes of most partitions as columns, the others one by one.

A partition is quiet in a part of the log if it is in no incident there and none of its changes begins one. Nothing
about it is reported, so that only its state at the end counts: the last value of each field, and two epochs that
are counts. All other records go through :class:`IncidentFold`, which has the rules. What is taken for quiet must be
quiet; what is not may be.

A record about many partitions (a deleted topic, an emptied ELR) lies between two such parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery.controller.registration import (
    NO_CHANGE,
    LeaderRecoveryState,
    PartitionChange,
    Registration,
    merge,
)
from recovery.metadata_log.change_reader import CHANGE_AT, SUBJECT_AT
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.incident_fold import IncidentFold
from recovery.metadata_log.log_changes import MetadataLogRecord, PartitionSubject
from recovery.metadata_log.record_codec import FRAME_VERSION
from recovery.metadata_log.records import HIGHEST_VERSIONS, RecordType
from recovery.model import NO_LEADER

FEWEST = 100
"""Fewer records are folded one by one."""

MOST = 100_000
"""Records of a part. It ends earlier after the last partition that is created in it: the fold takes all changes of
these.
"""

_NO_END = 2**31 - 1
"""Arrow 26 reads beyond the bytes if a slice has no end."""

_TRANSACTIONS = (RecordType.BEGIN_TRANSACTION, RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION)
_OF_MANY = (RecordType.REMOVE_TOPIC, RecordType.CLEAR_ELR)
_CHANGES = [
    bytes((FRAME_VERSION, RecordType.PARTITION_CHANGE, version))
    for version in range(HIGHEST_VERSIONS[RecordType.PARTITION_CHANGE] + 1)
]


class _Tail(NamedTuple):
    """What a change sets, None where it sets nothing. ``other``: the change without these, None if that is nothing.
    ``loud``: it may begin an incident.
    """

    leader: int | None
    isr: tuple[int, ...] | None
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    other: PartitionChange | None
    loud: bool


_UNREADABLE = _Tail(None, None, None, None, None, loud=True)


def as_records(records: pa.Table) -> list[MetadataLogRecord]:
    """The records one by one."""
    columns = (records[name].to_pylist() for name in ("offset", "time_ms", "batch", "record"))
    return list(map(MetadataLogRecord, *columns))


def fold_columns(fold: IncidentFold, records: pa.Table) -> None:
    """Folds whole batches, in the order of the log; columns as :data:`pipeline.watch.packed_records.RECORDS`."""
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
    at = pc.indices_nonzero(pc.and_(pc.is_in(heads, value_set=pa.array(_CHANGES, pa.binary())), whole))
    if len(at) < FEWEST:
        yield from as_records(part)
        return
    changes = values.take(at)
    changed = _Changed(fold, changes)
    created = values.take(_places(values, (RecordType.PARTITION,))).to_pylist()
    loud = changed.loud({value[SUBJECT_AT:CHANGE_AT] for value in created})
    places = at.to_numpy()
    quiet = np.zeros(len(part), bool)
    quiet[places[~loud[changed.subject_of]]] = True
    yield from as_records(part.filter(pa.array(~quiet)))
    changed.put_quiet(loud)
    last = np.flatnonzero(quiet)
    if len(last):
        fold.passed(part["offset"][int(last[-1])].as_py(), part["time_ms"][int(last[-1])].as_py())


class _Changed:
    """The partitions that a part changes, and its changes: ``subject_of`` and ``tail_of`` each have an index for
    each change.
    """

    def __init__(self, fold: IncidentFold, changes: Any) -> None:
        self._fold = fold
        subjects = pc.dictionary_encode(pc.binary_slice(changes, SUBJECT_AT, CHANGE_AT))
        tails = pc.dictionary_encode(
            pc.binary_join_element_wise(
                pc.binary_slice(changes, 0, SUBJECT_AT), pc.binary_slice(changes, CHANGE_AT, _NO_END), b""
            )
        )
        self._where = subjects.dictionary.to_pylist()
        self.subject_of = subjects.indices.to_numpy()
        self.tail_of = tails.indices.to_numpy()
        self._subjects = [fold.partition_subject(where) for where in self._where]
        self._before = [fold.registration(subject) for subject in self._subjects]
        self._tails = [self._tail(tail) for tail in tails.dictionary.to_pylist()]
        self._leaders = [-1 if one is None else one.leader for one in self._before]
        self._isrs = [() if one is None else one.isr for one in self._before]
        self._elrs = [() if one is None else one.elr for one in self._before]
        self._last_known: dict[int, tuple[int, ...]] = {}
        self._others: dict[int, list[PartitionChange]] = {}

    def _tail(self, tail: bytes) -> _Tail:
        try:
            change = self._fold.partition_fields(tail)
        except MalformedRecordError:
            return _UNREADABLE
        assert isinstance(change, PartitionChange)
        other = change._replace(leader=None, isr=None, elr=None, last_known_elr=None)
        return _Tail(
            change.leader,
            change.isr,
            change.elr,
            change.last_known_elr,
            None if other == NO_CHANGE else other,
            change.leader == NO_LEADER or change.leader_recovery_state is LeaderRecoveryState.RECOVERING,
        )

    def loud(self, created: set[bytes]) -> Any:
        """Of each partition whether it may be in an incident, or is ``created``: then the fold takes its changes.
        Follows the changes for that.
        """
        loud = [
            self._may_be_in_incident(subject, before) or where in created
            for subject, before, where in zip(self._subjects, self._before, self._where, strict=True)
        ]
        leaders, isrs, elrs, tails = self._leaders, self._isrs, self._elrs, self._tails
        for subject, number in zip(self.subject_of.tolist(), self.tail_of.tolist(), strict=True):
            leader, isr, elr, last_known_elr, other, may_begin = tails[number]
            if leader is not None:
                if leader != leaders[subject] and leader not in isrs[subject] and leader not in elrs[subject]:
                    loud[subject] = True
                leaders[subject] = leader
            if may_begin:
                loud[subject] = True
            if isr is not None:
                isrs[subject] = isr
            if elr is not None:
                elrs[subject] = elr
            if last_known_elr is not None:
                self._last_known[subject] = last_known_elr
            if other is not None:
                self._others.setdefault(subject, []).append(other)
        return np.array(loud, bool)

    def _may_be_in_incident(self, subject: PartitionSubject, before: Registration | None) -> bool:
        """Also if it is not known: then the fold decides."""
        return (
            before is None
            or not before.has_leader
            or before.leader_recovery_state is LeaderRecoveryState.RECOVERING
            or self._fold.in_incident(subject)
        )

    def put_quiet(self, loud: Any) -> None:
        """The states of the quiet partitions after all changes."""
        count = len(self._subjects)
        with_leader = np.array([tail.leader is not None for tail in self._tails], bool)[self.tail_of]
        partition_epochs = np.bincount(self.subject_of, minlength=count).tolist()
        leader_epochs = np.bincount(self.subject_of, with_leader, minlength=count).astype(np.int64).tolist()
        for number in np.flatnonzero(~loud).tolist():
            before = self._before[number]
            assert before is not None
            after = before
            for other in self._others.get(number, ()):
                after = merge(after, other)
            after = after._replace(
                leader=self._leaders[number],
                isr=self._isrs[number],
                elr=self._elrs[number],
                last_known_elr=self._last_known.get(number, before.last_known_elr),
                leader_epoch=before.leader_epoch + leader_epochs[number],
                partition_epoch=before.partition_epoch + partition_epochs[number],
            )
            self._fold.states.put(self._subjects[number], after)


def _places(values: Any, kinds: Sequence[RecordType]) -> Any:
    """Where the records of those types are."""
    heads = pa.array([bytes((kind,)) for kind in kinds], pa.binary())
    return pc.indices_nonzero(pc.is_in(pc.binary_slice(values, 1, 2), value_set=heads)).to_numpy()
