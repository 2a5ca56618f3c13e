"""Islands: successive snapshots in which the state of a partition does not change, for one kind of incident.

Everything is columns: an item of each is one row of a snapshot, or one island.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.history.moment_columns import NEVER, MomentColumns
from pipeline.history.state_rows import COPIES, DELETED, FLAW, KINDS, MIN_ISR_UNKNOWN, NAMELESS, encoded
from recovery.arrays.nested_arrays import Array, numbers, truths, valid

SOUND, BAD, UNKNOWN = range(3)
"""What a snapshot says of a partition for one kind of incident. UNKNOWN: it does not show it."""


class ShardPartitions(NamedTuple):
    """The partition of each row, also of the rows of an earlier run, which come last. ``line``: a number for each
    partition.
    """

    cluster: Array
    topic: Any
    topic_id: Any
    partition: Array
    line: Array
    isr: Any
    elr: Any


class ReadRows(NamedTuple):
    """Rows in the order of their partitions, and of each partition in the order of time. ``row``: its place in
    :class:`ShardPartitions`; ``leader``: -2 if it is not known.
    """

    row: Array
    line: Array
    moment: Array
    bits: Array
    leader: Array


class CarriedRows(NamedTuple):
    """The states that an earlier run left, as if the first and the last snapshot that show them were read.
    ``kind``: its place in :data:`~pipeline.history.state_rows.KINDS`.
    """

    row: Array
    line: Array
    moment: Array
    kind: Array
    state: Array
    known_before: Array


class KindRows(NamedTuple):
    """What rows say for one kind, in the order of :class:`ReadRows`. ``remade``: the topic is another than in the
    row before: it was deleted and made again with the same name.
    """

    row: Array
    line: Array
    moment: Array
    state: Array
    deleted: Array
    leader: Array
    known_before: Array
    remade: Array


class StateRows(NamedTuple):
    """The rows of one shard. ``flaws``: how many rows of a cluster are broken for which reason, as (cluster, flaw,
    copies, rows).
    """

    partitions: ShardPartitions
    read: ReadRows
    carried: CarriedRows
    flaws: list[tuple[int, int, int, int]]


def state_rows(states: pa.Table, carried: pa.Table, moments: MomentColumns) -> StateRows:
    """The rows that are read, :data:`~pipeline.history.state_rows.SHOWN_STATES` with topics as dictionaries, and
    those that an earlier run left. Of a partition that is twice in a snapshot there is one row, and nothing known.
    """
    clusters = {name: number for number, name in enumerate(moments.clusters)}
    left = [clusters[name] for name in carried["cluster_id"].to_pylist()]
    cluster = np.concatenate([moments.cluster_of(numbers(states["moment"], 0)), np.array(left, np.int64)])
    names = states.select(["topic", "topic_id"])
    more = pa.table([encoded(carried[name]) for name in names.schema.names], schema=names.schema)
    names = pa.concat_tables([names, more]).unify_dictionaries().combine_chunks()
    topic, topic_id = (column.combine_chunks() for column in names.columns)
    partition = np.concatenate([numbers(states["partition"], -1), numbers(carried["partition"], -1)])
    both = [
        pa.concat_arrays([table[name].combine_chunks() for table in (states, carried)])
        for name in ("isr", "elr")
    ]
    line = _lines(cluster, topic, partition)
    partitions = ShardPartitions(cluster, topic, topic_id, partition, line, *both)
    read, flaws = _read_rows(states, partitions)
    return StateRows(partitions, read, _carried_rows(carried, partitions, len(states), moments), flaws)


def _lines(cluster: Array, topic: Any, partition: Array) -> Array:
    names = (cluster << 32) | (numbers(topic.indices, -1) + 1)
    # Dense, so that a partition fits beside it.
    return (np.unique(names, return_inverse=True)[1] << 32) | (partition & 0xFFFF_FFFF)


def _read_rows(
    states: pa.Table, partitions: ShardPartitions
) -> tuple[ReadRows, list[tuple[int, int, int, int]]]:
    bits, moment = numbers(states["bits"], 0), numbers(states["moment"], 0)
    named = np.flatnonzero(bits >> FLAW != NAMELESS)
    order = named[np.lexsort((moment[named], partitions.line[named]))]
    line, moment = partitions.line[order], moment[order]
    first = np.flatnonzero(_differs(line) | _differs(moment))
    copies = np.diff(np.append(first, len(order)))
    row = order[first]
    bits = np.concatenate([bits[row], np.full(len(bits) - len(named), NAMELESS << FLAW)])
    twice = np.flatnonzero(copies > 1)
    bits[twice] = (bits[twice] & DELETED) | (COPIES << FLAW)
    nameless = np.flatnonzero(numbers(states["bits"], 0) >> FLAW == NAMELESS)
    flaws = _counted(
        partitions.cluster[np.concatenate([row, nameless])],
        bits >> FLAW,
        np.concatenate([copies, np.ones(len(nameless), np.int64)]),
    )
    leader = numbers(states["leader"], -2)[row]
    return ReadRows(row, line[first], moment[first], bits[: len(row)], leader), flaws


def _counted(cluster: Array, flaw: Array, copies: Array) -> list[tuple[int, int, int, int]]:
    broken = flaw > 0
    if not broken.any():
        return []
    found, counts = np.unique(
        np.stack([cluster[broken], flaw[broken], copies[broken]]), axis=1, return_counts=True
    )
    return [
        (int(cluster), int(flaw), int(copies), int(copies * count))
        for (cluster, flaw, copies), count in zip(found.T, counts, strict=True)
    ]


def _carried_rows(
    carried: pa.Table, partitions: ShardPartitions, before: int, moments: MomentColumns
) -> CarriedRows:
    """``before``: how many rows of other kinds come first in ``partitions``."""
    row = before + np.arange(len(carried))
    begin = moments.first[partitions.cluster[row]]
    first, last = begin + numbers(carried["first_number"], 0), begin + numbers(carried["last_number"], 0)
    kind = numbers(pc.index_in(carried["kind"], pa.array(KINDS)), -1)
    state = np.where(valid(carried["bad"]), truths(carried["bad"]).astype(np.int64), UNKNOWN)
    known_before = truths(carried["known_before"])
    several = last != first

    def twice(column: Array) -> Array:
        return np.concatenate([column, column[several]])

    moment = np.concatenate([first, last[several]])
    return CarriedRows(
        twice(row), twice(partitions.line[row]), moment, twice(kind), twice(state), twice(known_before)
    )


def rows_of_kind(rows: StateRows, kind: int, moments: MomentColumns) -> KindRows:
    """What the snapshots say, for one kind, of the partitions that were in such an incident, or whose state the
    next run has to know. These are few.
    """
    read, mine = rows.read, rows.carried.kind == kind
    state = _states(read.bits, kind)
    deleted = (read.bits & DELETED) > 0
    matters = state == BAD
    matters |= moments.newest_segment[read.moment] & (
        ~moments.segment_has_full[read.moment] | (state == UNKNOWN)
    )
    begins = np.flatnonzero(_differs(read.line))
    sizes = np.diff(np.append(begins, len(read.line)))
    chosen = np.logical_or.reduceat(matters, begins) if len(begins) else matters
    chosen = chosen | np.isin(read.line[begins], rows.carried.line[mine])
    at = np.flatnonzero(np.repeat(chosen, sizes))
    found = KindRows(
        read.row[at],
        read.line[at],
        read.moment[at],
        state[at],
        deleted[at],
        read.leader[at],
        moments.known_before[read.moment[at]],
        np.zeros(len(at), bool),
    )
    if mine.any():
        found = _with_carried(found, rows.carried, np.flatnonzero(mine))
    return found._replace(remade=_remade(found.row, found.line, rows.partitions.topic_id))


def _remade(row: Array, line: Array, topic_id: Any) -> Array:
    """Where a row has another topic id than the newest row before it that has one: that of a partition that is gone
    has none.
    """
    code = numbers(topic_id.indices, -1)[row]
    known = np.where((code >= 0) | _differs(line), np.arange(len(row)), 0)
    code = code[np.maximum.accumulate(known)]
    before = np.append(-1, code[:-1])[: len(code)]
    remade: Array = ~_differs(line) & (before >= 0) & (code != before)
    return remade


def _with_carried(found: KindRows, carried: CarriedRows, mine: Array) -> KindRows:
    count = len(mine)
    more = KindRows(
        carried.row[mine],
        carried.line[mine],
        carried.moment[mine],
        carried.state[mine],
        np.zeros(count, bool),
        # Only of an incident's first snapshot: of it nobody asks.
        np.full(count, -2),
        carried.known_before[mine],
        np.zeros(count, bool),
    )
    whole = [np.concatenate(columns) for columns in zip(found, more, strict=True)]
    order = np.lexsort((whole[2], whole[1]))
    return KindRows(*(column[order] for column in whole))


def _states(bits: Array, kind: int) -> Array:
    unknown = bits >> FLAW > 0
    if KINDS[kind] == "under min ISR":
        unknown |= (bits & MIN_ISR_UNKNOWN) > 0
    return np.where(unknown, UNKNOWN, (bits >> kind) & 1)


class Islands(NamedTuple):
    """Islands in the order of time, partition by partition, with those before and after them.

    ``deleted``: it begins with a partition that is gone, ``remade``: with another topic of the same name. ``first``
    and ``last`` are moments, and ``row`` is the row of the last one. ``leader`` is that of the first. ``sound_at``:
    the snapshot before it, in which it was not so; NEVER if no snapshot shows that. ``follows``: whether there is
    another island after it. ``closed``: this is the next snapshot of the partition, without a gap. ``vanished_at``:
    the first full snapshot afterwards that does not show the partition; -1: there is none.
    """

    row: Array
    state: Array
    deleted: Array
    remade: Array
    first: Array
    last: Array
    leader: Array
    sound_at: Array
    follows: Array
    closed: Array
    vanished_at: Array


def islands(rows: KindRows, moments: MomentColumns) -> Islands:
    """The islands of those rows."""
    segment = moments.segment[rows.moment]
    begins = _differs(rows.line) | _differs(rows.state) | _differs(segment) | rows.deleted
    begins |= rows.remade
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(begins))[: len(first)] - 1
    line, state, segment = rows.line[first], rows.state[first], segment[first]
    begun, ended = rows.moment[first], rows.moment[last]
    after = np.arange(len(first)) + 1
    after[-1:] = 0
    remade = rows.remade[first]
    # Of a topic that was made since, the snapshot before cannot show anything.
    shown = (np.append(SOUND, state[:-1])[: len(state)] != UNKNOWN) | remade
    follows = np.append(line[1:] == line[:-1], False)[: len(first)]
    same = follows & (segment[after] == segment)
    full = moments.full_after[ended]
    vanished = (full >= 0) & (~same | (full < begun[after]))
    return Islands(
        rows.row[last],
        state,
        rows.deleted[first],
        remade,
        begun,
        ended,
        rows.leader[first],
        _sound_at(rows.known_before[first], shown, begun, np.append(False, same)[: len(first)], moments),
        follows,
        same & ~vanished,
        np.where(vanished, full, -1),
    )


def _sound_at(
    known_before: Array, shown: Array, begun: Array, continues: Array, moments: MomentColumns
) -> Array:
    """``continues``: the island before it is in the same segment. The start is unknown if that one does not show
    the partition (``shown``). It is unknown too if its segment names the partition for the first time here, and has
    no earlier full snapshot.
    """
    known = np.where(continues, shown, known_before)
    return np.where(known, moments.before[begun], NEVER)


def carried_over(found: Islands, moments: MomentColumns) -> Array:
    """What a later run must know of the time before: an incident that may go on, and a state that was unknown.
    That a partition was sound follows from a full snapshot of the segment, if there is one.
    """
    sound = (found.state == SOUND) & moments.segment_has_full[found.first]
    carried: Array = ~found.follows & moments.newest_segment[found.first] & ~sound
    return carried


def _differs(numbers: Array) -> Array:
    """Where a number differs from the one before it; the first does."""
    return np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]
