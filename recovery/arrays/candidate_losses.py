"""What each candidate would destroy: :func:`recovery.loss.loss` for many candidates at once.

In most partitions the known logs are equal and nothing would be lost, so only pairs that differ are compared.
A pair is a candidate and another replica of its row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from recovery.arrays.nested_arrays import Array, any_of, expand, lists, structs
from recovery.arrays.replica_columns import ReplicaColumns, brokers
from recovery.model import NO_EPOCH

_EVERYTHING = 2**62
_ALONE = 2**33
"""Above every epoch and every broker."""


class SpanArrays(NamedTuple):
    """Epoch spans that other replicas have and a candidate (``of``) does not; ``sure``: certainly lost, else
    possibly.
    """

    of: Array
    epoch: Array
    start: Array
    end: Array
    sure: Array

    def where(self, which: Array) -> SpanArrays:
        return SpanArrays(*(column[which] for column in self))

    @property
    def length(self) -> Array:
        length: Array = self.end - self.start
        return length


def losses(replicas: ReplicaColumns, candidates: Array, compacted: Array) -> Any:
    """A column with the loss of each candidate; ``candidates`` are replicas. Of the rows that are ``compacted``, or
    may be, no upper limit is known: a snapshot does not tell what their logs still hold.
    """
    count = len(candidates)
    owner, unheard = _unheard(replicas, candidates)
    bounded: Array = ~any_of(owner, np.ones(len(owner), bool), count)
    bounded &= ~(compacted & (replicas.sizes > 1))[replicas.owner[candidates]]
    pieces = _pieces(replicas, candidates, *_differing(replicas, candidates))
    lost = union(pieces.where(pieces.sure))
    at_most = _sum(union(pieces), count)
    start = replicas.log_start[candidates]
    everything, nothing = np.full(len(lost.of), _EVERYTHING), np.zeros(len(lost.of), np.int64)
    return structs(
        {
            "at_least": pa.array(_sum(lost, count)),
            "at_most": pa.array(at_most, mask=~bounded),
            "tail": _span_lists(clip(lost, start[lost.of], everything), count),
            "head": _span_lists(clip(lost, nothing, start[lost.of]), count),
            "unanswered": brokers(owner, unheard, count),
        }
    )


def _sum(pieces: SpanArrays, count: int) -> Array:
    total = np.zeros(count, np.int64)
    np.add.at(total, pieces.of, pieces.length)
    return total


def _span_lists(pieces: SpanArrays, count: int) -> Any:
    spans = {
        "epoch": pa.array(pieces.epoch.astype(np.int32)),
        "start": pa.array(pieces.start),
        "end": pa.array(pieces.end),
    }
    return lists(pieces.of, structs(spans), count)


def _others(replicas: ReplicaColumns, candidates: Array, which: Array) -> tuple[Array, Array]:
    """The pairs of those candidates: the index in ``candidates``, and the other replica."""
    row = replicas.owner[candidates[which]]
    place, other = expand(replicas.first[row], replicas.sizes[row])
    place = which[place]
    pair = other != candidates[place]
    return place[pair], other[pair]


def _unheard(replicas: ReplicaColumns, candidates: Array) -> tuple[Array, Array]:
    """For each candidate the brokers whose logs are not known."""
    doubtful = any_of(replicas.owner, ~replicas.known, replicas.rows)
    place, other = _others(replicas, candidates, np.flatnonzero(doubtful[replicas.owner[candidates]]))
    unheard = ~replicas.known[other] | ~replicas.known[candidates[place]]
    return place[unheard], replicas.broker[other[unheard]]


def _differing(replicas: ReplicaColumns, candidates: Array) -> tuple[Array, Array]:
    """The pairs of known logs that differ."""
    known = np.flatnonzero(replicas.known)
    first = np.full(replicas.rows, -1)
    first[replicas.owner[known][::-1]] = known[::-1]
    apart = any_of(
        replicas.owner[known], ~_alike(replicas, known, first[replicas.owner[known]]), replicas.rows
    )
    compared = np.flatnonzero(apart[replicas.owner[candidates]] & replicas.known[candidates])
    place, other = _others(replicas, candidates, compared)
    known_too = replicas.known[other]
    place, other = place[known_too], other[known_too]
    differs = ~_alike(replicas, candidates[place], other)
    return place[differs], other[differs]


def _alike(replicas: ReplicaColumns, one: Array, other: Array) -> Array:
    """Whether two replicas have the same records, as far as their epochs were read."""
    spans = replicas.spans
    sizes = np.diff(spans.first)
    alike: Array = sizes[one] == sizes[other]
    for column in (replicas.log_start, replicas.number("last_epoch"), replicas.number("floor")):
        alike &= column[one] == column[other]
    left = np.flatnonzero(alike)
    pair, mine = expand(spans.first[one[left]], sizes[one[left]])
    _, theirs = expand(spans.first[other[left]], sizes[other[left]])
    for column in (spans.epoch, spans.start, spans.end):
        alike[left[pair[column[mine] != column[theirs]]]] = False
    return alike


def _pieces(replicas: ReplicaColumns, candidates: Array, place: Array, other: Array) -> SpanArrays:
    """What the other replicas have and the candidates have not (:func:`recovery.loss._add_lost`)."""
    chosen = candidates[place]
    parting = _divergence(replicas, chosen, other)
    spans, under = _spans_of(replicas, other)
    pair = spans.of
    start, floor = replicas.log_start[chosen][pair], replicas.number("floor")[chosen][pair]
    last, limit = replicas.number("last_epoch")[chosen][pair], replicas.log_end[other][pair]
    nothing = np.zeros(len(pair), np.int64)
    meets, blind = parting[pair] >= 0, spans.epoch < NO_EPOCH
    newer = ~meets & ~blind & (spans.epoch > last) & (last != NO_EPOCH)
    older = ~meets & ~blind & ~newer
    doubtful, certain = spans._replace(sure=np.zeros(len(pair), bool)), spans
    before = spans._replace(sure=~blind)
    found = (
        clip(before, nothing, np.minimum(parting[pair], start), meets),
        # A record without a known epoch may already be counted in another replica's span.
        clip(certain, parting[pair], limit, meets & ~under),
        doubtful.where(~meets & blind),
        certain.where(newer),
        clip(doubtful, start, floor, older),
        clip(certain, nothing, start, older),
        clip(certain, np.maximum(start, floor), limit, older),
    )
    whole = SpanArrays(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
    return whole._replace(of=place[whole.of])


def _spans_of(replicas: ReplicaColumns, logs: Array) -> tuple[SpanArrays, Array]:
    """Every span of the logs, ``of`` is the index of its log; and which spans are below the floor, without an
    epoch.

    Those have a number below NO_EPOCH instead, which they share where the records are the same: the logs go on with
    the same epoch.
    """
    spans, floor = replicas.spans, replicas.number("floor")[logs]
    start = replicas.log_start[logs]
    blind = np.flatnonzero(start < floor)
    of, at = expand(spans.first[logs], np.diff(spans.first)[logs])
    alone = -_ALONE - replicas.broker[logs]
    named = np.flatnonzero(np.diff(spans.first)[logs])
    alone[named] = NO_EPOCH - 1 - spans.epoch[spans.first[logs[named]]]
    whole = SpanArrays(
        np.concatenate([blind, of]),
        np.concatenate([alone[blind], spans.epoch[at]]),
        np.concatenate([start[blind], spans.start[at]]),
        np.concatenate([floor[blind], spans.end[at]]),
        np.ones(len(blind) + len(of), bool),
    )
    return whole, np.arange(len(whole.of)) < len(blind)


def _divergence(replicas: ReplicaColumns, one: Array, other: Array) -> Array:
    """:func:`recovery.loss.divergence` of each pair, -1 if they share no epoch."""
    spans = replicas.spans
    sizes = np.diff(spans.first)
    pair, mine = expand(spans.first[one], sizes[one])
    twin, theirs = expand(spans.first[other], sizes[other])
    # An epoch is at least -1, and is at most once in a lineage.
    _, here, there = np.intersect1d(
        pair << 32 | spans.epoch[mine] + 1,
        twin << 32 | spans.epoch[theirs] + 1,
        assume_unique=True,
        return_indices=True,
    )
    parting = np.full(len(one), -1)
    # Common epochs are sorted by pair and epoch, so the highest is written last.
    parting[pair[here]] = np.minimum(spans.end[mine[here]], spans.end[theirs[there]])
    return parting


def clip(pieces: SpanArrays, low: Array, high: Array, which: Array | None = None) -> SpanArrays:
    """The parts from ``low`` up to ``high`` (:func:`recovery.loss._clip`)."""
    start, end = np.maximum(pieces.start, low), np.minimum(pieces.end, high)
    in_range = start < end if which is None else (start < end) & which
    return pieces._replace(start=start, end=end).where(in_range)


def union(pieces: SpanArrays) -> SpanArrays:
    """The spans merged for each candidate and epoch, so that overlaps count once
    (:func:`recovery.loss.union`).
    """
    if not len(pieces.of):
        return pieces
    pieces = pieces.where(np.lexsort((pieces.start, pieces.epoch, pieces.of)))
    group = np.ones(len(pieces.of), bool)
    group[1:] = (pieces.of[1:] != pieces.of[:-1]) | (pieces.epoch[1:] != pieces.epoch[:-1])
    reached = _running_maximum(pieces.end, np.cumsum(group) - 1)
    new = group.copy()
    new[1:] |= pieces.start[1:] > reached[:-1]
    begins = np.flatnonzero(new)
    last = np.concatenate([begins[1:], [len(new)]]) - 1
    return pieces.where(begins)._replace(end=reached[last])


def _running_maximum(values: Array, group: Array) -> Array:
    """The largest so far in each group; groups ascend.

    Computed with the ranks of the values, which cannot overflow.
    """
    known, place = np.unique(values, return_inverse=True)
    highest: Array = known[np.maximum.accumulate(group * len(known) + place) - group * len(known)]
    return highest
