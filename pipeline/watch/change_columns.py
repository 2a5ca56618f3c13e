"""PartitionChangeRecords as columns: those that are alike but for the brokers in them are decoded at once.

A change is given by its bytes behind partition and topic id, which are tagged fields (KIP-482).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from recovery.controller.registration import NO_CHANGE, LeaderRecoveryState, PartitionChange
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.record_schemas import UNCHANGED_LEADER

MOST_BROKERS = 15
"""Of a list in a row here. A change with a longer one is for the fold."""

_LISTS = {0: "isr", 6: "elr", 7: "last_known_elr"}
"""By the tag of the field."""
_LEADER, _ELR, _ELR_SINCE = 1, 6, 2
_INT = 4
_MOST_LAYOUTS = 64
_NO_BROKER = -(2**31)


class BrokerLists(NamedTuple):
    """A row for each list, filled up behind its end; a count of -1: there is no list."""

    rows: Any
    counts: Any

    @classmethod
    def empty(cls, size: int) -> BrokerLists:
        return cls(np.full((size, MOST_BROKERS), _NO_BROKER, np.int32), np.full(size, -1))

    @classmethod
    def of(cls, lists: Sequence[tuple[int, ...]]) -> BrokerLists:
        """Of those lists; one with more than MOST_BROKERS is left out."""
        found, lengths = cls.empty(len(lists)), np.array([len(one) for one in lists], np.int64)
        for length in np.unique(lengths).tolist():
            if length <= MOST_BROKERS:
                places = np.flatnonzero(lengths == length)
                found.put(places, [lists[place] for place in places.tolist()], length)
        return found

    def put(self, places: Any, brokers: Any, count: int) -> None:
        """Lists of ``count`` brokers each."""
        self.rows[places, :count] = brokers
        self.counts[places] = count

    def then(self, others: BrokerLists) -> BrokerLists:
        return BrokerLists(
            np.concatenate((self.rows, others.rows)), np.concatenate((self.counts, others.counts))
        )

    def have(self, places: Any, brokers: Any) -> Any:
        """Whether each of those lists has that broker."""
        return (self.rows[places] == brokers[:, None]).any(axis=1)

    def tuples(self, places: Any) -> list[tuple[int, ...]]:
        rows, counts = self.rows[places].tolist(), self.counts[places].tolist()
        return [tuple(row[:count]) for row, count in zip(rows, counts, strict=True)]


class ChangeColumns(NamedTuple):
    """What each change sets. ``leader`` is UNCHANGED_LEADER if it sets none. ``lists``: ISR, ELR and LastKnownELR,
    by the name of the field. ``others``: by the place of the change what it sets besides. ``loud``: it may begin
    an incident, or cannot be read here.
    """

    leader: Any
    lists: dict[str, BrokerLists]
    others: dict[int, PartitionChange]
    loud: Any


class _Layout(NamedTuple):
    """Where the brokers stand: of a list its place and its length. ``fixed``: the bytes that are no brokers."""

    leader: int | None
    lists: dict[str, tuple[int, int]]
    fixed: Any


def change_columns(changes: Any, version: int, decode: Callable[[bytes], PartitionChange]) -> ChangeColumns:
    """``changes``: an Arrow array of bytes. ``decode`` reads what is rare; it may raise MalformedRecordError."""
    size = len(changes)
    found = ChangeColumns(
        np.full(size, UNCHANGED_LEADER, np.int32),
        {name: BrokerLists.empty(size) for name in _LISTS.values()},
        {},
        np.zeros(size, bool),
    )
    bounds = np.frombuffer(changes.buffers()[1], np.int32)[changes.offset :][: size + 1]
    data = np.frombuffer(changes.buffers()[2], np.uint8)
    lengths = bounds[1:] - bounds[:-1]
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        alike = data[bounds[places][:, None] + np.arange(length)]
        for place in _put_alike(found, places, alike, version):
            _put_other(found, place, changes[place].as_py(), decode)
    found.loud[(found.leader < 0) & (found.leader != UNCHANGED_LEADER)] = True
    return found


def _put_alike(found: ChangeColumns, places: Any, alike: Any, version: int) -> list[int]:
    """Reads changes of one length; returns the places of those that are left."""
    left: list[int] = []
    for _ in range(_MOST_LAYOUTS):
        if not len(places):
            return left
        layout = _layout(alike[0].tobytes(), version)
        if layout is None:
            left.append(int(places[0]))
            places, alike = places[1:], alike[1:]
            continue
        mine = (alike[:, layout.fixed] == alike[0, layout.fixed]).all(axis=1)
        _put_brokers(found, places[mine], alike[mine], layout)
        places, alike = places[~mine], alike[~mine]
    return [*left, *places.tolist()]


def _put_brokers(found: ChangeColumns, places: Any, alike: Any, layout: _Layout) -> None:
    if layout.leader is not None:
        found.leader[places] = _ints(alike, layout.leader, 1)[:, 0]
    for name, (at, count) in layout.lists.items():
        found.lists[name].put(places, _ints(alike, at, count), count)


def _ints(alike: Any, at: int, count: int) -> Any:
    return np.ascontiguousarray(alike[:, at : at + count * _INT]).view(">i4")


def _layout(change: bytes, version: int) -> _Layout | None:
    """None if it has another field, a null, a long list, or anything unexpected."""
    leader: int | None = None
    lists: dict[str, tuple[int, int]] = {}
    fixed = np.ones(len(change), bool)
    last = -1
    try:
        at = 1
        for _ in range(change[0]):
            tag, size = change[at], change[at + 1]
            at += 2
            if tag == _LEADER and size == _INT:
                leader, brokers, start = at, 1, at
            else:
                brokers, start = change[at] - 1, at + 1
                lists[_LISTS[tag]] = (start, brokers)
                if not 0 <= brokers <= MOST_BROKERS or size != 1 + brokers * _INT:
                    return None
            if tag <= last or (tag >= _ELR and version < _ELR_SINCE):
                return None
            fixed[start : start + brokers * _INT] = False
            at, last = at + size, tag
    except (IndexError, KeyError):
        return None
    return _Layout(leader, lists, fixed) if at == len(change) else None


def _put_other(
    found: ChangeColumns, place: int, change: bytes, decode: Callable[[bytes], PartitionChange]
) -> None:
    try:
        decoded = decode(change)
    except MalformedRecordError:
        found.loud[place] = True
        return
    if decoded.leader is not None:
        found.leader[place] = decoded.leader
    for name in _LISTS.values():
        brokers = getattr(decoded, name)
        if brokers is None:
            continue
        if len(brokers) > MOST_BROKERS:
            found.loud[place] = True
            return
        found.lists[name].put(place, brokers, len(brokers))
    other = decoded._replace(leader=None, isr=None, elr=None, last_known_elr=None)
    if other != NO_CHANGE:
        found.others[place] = other
    found.loud[place] = decoded.leader_recovery_state is LeaderRecoveryState.RECOVERING
