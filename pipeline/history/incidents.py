"""Incidents: successive snapshots in which a partition is in a bad state, with bounds for their duration.

A run that continues an earlier one begins with the states that it left, and reads rows only of the snapshots since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.history.islands import BAD, UNKNOWN, Islands, ShardPartitions, carried_over
from pipeline.history.moment_columns import NEVER, MomentColumns, microseconds, names_of
from pipeline.history.state_rows import KINDS
from pipeline.tables.history_schemas import HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import MOMENT, without_run
from recovery.arrays.nested_arrays import Array, any_of, items, numbers

Action = tuple[str, str, int, datetime, str, str]
"""What this host's journal says that somebody did: cluster, topic, partition, when, who, and how."""

OUTCOMES = ("unknown", "deleted", "recovered", "ongoing")
_UNKNOWN, _DELETED, _RECOVERED, _ONGOING = range(4)
WAYS = ("elected from the ISR", "elected from the ELR", "elected outside ISR and ELR")
_ISR, _ELR, _OUTSIDE = range(3)

SAME = ("cluster_id", "topic", "partition", "kind", "began_at")
"""What an incident of two runs has in common."""
_ACTOR = ("who", "act")


class Ends(NamedTuple):
    """Of each incident its outcome, and times in µs since 1970; NEVER: it is not known."""

    outcome: Array
    began: Array
    shown_until: Array
    ended: Array
    sound: Array


def incidents(kind: int, found: Islands, partitions: ShardPartitions, moments: MomentColumns) -> pa.Table:
    """One row per incident of that kind, without who ended it.

    ``at_least_s`` and ``at_most_s`` bound its duration. At least: from the first snapshot that shows it to
    the last. At most: from the snapshot before the first to the one after the last; null if one of these is
    missing, or if there is a gap. ``outcome``: recovered, ongoing, deleted, or unknown if there is a gap
    before the next snapshot, or the next snapshot does not show it.
    """
    at = np.flatnonzero((found.state == BAD) & ~found.deleted)
    ends = _ends(found, at, moments)
    row, bounded = found.row[at], ends.ended != NEVER
    columns = {
        **_keys(partitions, row, kind, moments),
        "began_at": _time(ends.began),
        "last_seen_at": _time(ends.shown_until),
        "ended_at": _time(ends.ended),
        "at_least_s": _seconds(ends.began, ends.shown_until, ends.shown_until != NEVER),
        "at_most_s": _seconds(ends.sound, ends.ended, bounded & (ends.sound != NEVER)),
        "outcome": names_of(OUTCOMES, ends.outcome).cast(pa.string()),
        "how": _how(kind, ends.outcome, partitions, row, found.leader[_after(at, found)]),
        **{name: pa.nulls(len(at), pa.string()) for name in _ACTOR},
        "topic_id": partitions.topic_id.take(pa.array(row)).cast(pa.string()),
    }
    return pa.table(columns, schema=without_run(INCIDENTS))


def _ends(found: Islands, at: Array, moments: MomentColumns) -> Ends:
    closed, vanished = found.closed[at], found.vanished_at[at] >= 0
    after = _after(at, found)
    following, begun_after, remade = found.state[after], found.first[after], found.remade[after]
    ongoing = ~found.follows[at] & moments.newest[found.last[at]] & ~vanished
    outcome = np.select(
        [closed & remade, closed & (following == UNKNOWN), closed & found.deleted[after], closed, ongoing],
        [_DELETED, _UNKNOWN, _DELETED, _RECOVERED, _ONGOING],
        default=_UNKNOWN,
    )
    return Ends(
        outcome,
        moments.at[found.first[at]],
        # The last snapshot that still shows it: the one before the end, or the last before the gap.
        np.select(
            [closed, vanished],
            [moments.before[begun_after], moments.before[found.vanished_at[at]]],
            default=moments.segment_end[found.first[at]],
        ),
        np.where(closed & (remade | (following != UNKNOWN)), moments.at[begun_after], NEVER),
        found.sound_at[at],
    )


def _after(at: Array, found: Islands) -> Array:
    """The place of the next island of each; of the last one anything."""
    return (at + 1) % max(len(found.state), 1)


def _how(kind: int, outcome: Array, partitions: ShardPartitions, row: Array, leader: Array) -> Any:
    if KINDS[kind] != "offline":
        return pa.nulls(len(row), pa.string())
    isr, elr = (_among(column.take(pa.array(row)), leader) for column in (partitions.isr, partitions.elr))
    way = np.select([isr, elr], [_ISR, _ELR], default=_OUTSIDE)
    named = pa.array(way.astype(np.int32), mask=outcome != _RECOVERED)
    return names_of(WAYS, named).cast(pa.string())


def _among(lists: Any, broker: Array) -> Array:
    members = items(lists)
    return any_of(members.owner, numbers(members.values, -2) == broker[members.owner], len(broker))


def states_to_carry(
    kind: int, found: Islands, partitions: ShardPartitions, moments: MomentColumns
) -> pa.Table:
    """What the next run has to know of partitions for that kind."""
    at = np.flatnonzero(carried_over(found, moments))
    row = found.row[at]
    begin = moments.first[partitions.cluster[row]]
    columns = {
        **_keys(partitions, row, kind, moments),
        "bad": pa.array(found.state[at] == BAD, mask=found.state[at] == UNKNOWN),
        "first_number": pa.array((found.first[at] - begin).astype(np.int32)),
        "last_number": pa.array((found.last[at] - begin).astype(np.int32)),
        "known_before": pa.array(found.sound_at[at] != NEVER),
        "isr": partitions.isr.take(pa.array(row)),
        "elr": partitions.elr.take(pa.array(row)),
        "topic_id": partitions.topic_id.take(pa.array(row)).cast(pa.string()),
    }
    return pa.table(columns, schema=without_run(HISTORY_STATES))


def _keys(partitions: ShardPartitions, row: Array, kind: int, moments: MomentColumns) -> dict[str, Any]:
    return {
        "cluster_id": names_of(moments.clusters, partitions.cluster[row]).cast(pa.string()),
        "topic": partitions.topic.take(pa.array(row)).cast(pa.string()),
        "partition": pa.array(partitions.partition[row].astype(np.int32)),
        "kind": pa.repeat(KINDS[kind], len(row)),
    }


def _time(microseconds: Array) -> Any:
    return pa.array(microseconds, mask=microseconds == NEVER).cast(MOMENT)


def _seconds(begin: Array, end: Array, known: Array) -> Any:
    return pa.array(np.where(known, end - begin, 0) / 1e6, mask=~known)


def with_actors(found: pa.Table, actions: Sequence[Action]) -> pa.Table:
    """Adds who ended each incident: the journal's last action on that partition between the start of the incident
    and its end, or the last snapshot that still shows it. A later action may have ended it without a snapshot
    in between.
    """
    who: list[str | None] = [None] * len(found)
    act: list[str | None] = [None] * len(found)
    by_partition = _by_partition(actions)
    if by_partition:
        topics = pa.array(sorted({topic for _, topic, _ in by_partition}))
        asked = pc.and_(pc.is_in(found["topic"], topics), pc.equal(found["kind"], "offline"))
        at = np.flatnonzero(asked.to_numpy())
        keys = found.select(["cluster_id", "topic", "partition"]).take(pa.array(at)).to_pylist()
        end = numbers(pc.coalesce(found["ended_at"], found["last_seen_at"]), NEVER)
        begin = numbers(found["began_at"], NEVER)
        for place, key in zip(at.tolist(), keys, strict=True):
            during = [
                (when, name, how)
                for when, name, how in by_partition.get(tuple(key.values()), ())
                if begin[place] <= when <= end[place]
            ]
            if during:
                _, who[place], act[place] = max(during)
    for name, values in zip(_ACTOR, (who, act), strict=True):
        found = found.set_column(found.schema.get_field_index(name), name, pa.array(values, pa.string()))
    return found


def _by_partition(actions: Sequence[Action]) -> Mapping[tuple[Any, ...], list[tuple[int, str, str]]]:
    found: dict[tuple[Any, ...], list[tuple[int, str, str]]] = {}
    for cluster, topic, partition, at, who, how in actions:
        found.setdefault((cluster, topic, partition), []).append((microseconds(at), who, how))
    return found
