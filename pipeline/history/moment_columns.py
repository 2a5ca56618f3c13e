"""The moments of every cluster's timeline as columns, which tasks look up by the moment's number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.history.timeline import Moment, SnapshotTimeline
from recovery.arrays.nested_arrays import Array

NEVER = np.iinfo(np.int64).min
"""In place of a time that is not known."""


class MomentColumns(NamedTuple):
    """The moments of ``clusters`` one after the other; those of the cluster ``n`` begin at ``first[n]``. So a
    moment is one number for all clusters.

    Times are µs since 1970, in UTC. ``segment`` is a number for all clusters too; ``segment_end`` is the time
    of its last moment, ``newest`` whether that is the newest of its cluster, with nothing lost after it.
    ``full_after``: the next full snapshot in the segment; -1: there is none. For the others see
    :class:`~pipeline.history.timeline.Moment`.
    """

    clusters: tuple[str, ...]
    first: Array
    at: Array
    before: Array
    segment: Array
    known_before: Array
    newest_segment: Array
    segment_has_full: Array
    segment_end: Array
    newest: Array
    full_after: Array

    def cluster_of(self, moments: Array) -> Array:
        """The number of each moment's cluster."""
        return np.searchsorted(self.first, moments, side="right") - 1


def moment_columns(lines: Mapping[str, SnapshotTimeline]) -> MomentColumns:
    """The moments of those clusters."""
    moments = [moment for line in lines.values() for moment in line.moments]
    sizes = [len(line.moments) for line in lines.values()]
    first = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    segment = _segments(moments, cluster)
    begins = np.flatnonzero(np.diff(segment, prepend=-1))
    at, complete = _times(moment.at for moment in moments), _flags(moments, "complete")
    last_of_cluster = segment[first[1:] - 1] if moments else segment
    return MomentColumns(
        tuple(lines),
        first,
        at,
        _times(moment.before for moment in moments),
        segment,
        _flags(moments, "known_before"),
        segment == last_of_cluster[cluster],
        _of_segments(np.logical_or, complete, begins)[segment],
        _of_segments(np.maximum, at, begins)[segment],
        _of_segments(np.logical_or, _flags(moments, "last"), begins)[segment],
        _next_full(complete, segment),
    )


def _segments(moments: Sequence[Moment], cluster: Array) -> Array:
    number = np.array([moment.segment for moment in moments], np.int64)
    if not len(number):
        return number
    found: Array = np.cumsum(np.diff(number, prepend=number[0]).astype(bool) | _changes(cluster))
    return found


def _changes(numbers: Array) -> Array:
    """Where a number differs from the one before it; the first does not."""
    return np.concatenate([[False], numbers[1:] != numbers[:-1]])


def _of_segments(function: np.ufunc, values: Array, begins: Array) -> Array:
    found: Array = function.reduceat(values, begins) if len(begins) else values
    return found


def _next_full(complete: Array, segment: Array) -> Array:
    full = np.append(np.flatnonzero(complete), len(complete))
    later = full[np.searchsorted(full, np.arange(len(complete)), side="right").clip(max=len(full) - 1)]
    same = np.append(segment, -1)[later] == segment
    return np.where(same, later, -1)


def _flags(moments: Sequence[Moment], name: str) -> Array:
    return np.array([getattr(moment, name) for moment in moments], bool)


def _times(times: Iterable[datetime | None]) -> Array:
    return np.array([NEVER if one is None else microseconds(one) for one in times], np.int64)


def names_of(values: Iterable[str], column: Any) -> Any:
    """A column of names from the numbers in ``column``."""
    return pa.DictionaryArray.from_arrays(pa.array(column, pa.int32()), pa.array(list(values), pa.string()))


def microseconds(when: datetime) -> int:
    """Since 1970; ``when`` has a time zone."""
    whole = int(when.replace(microsecond=0).timestamp())
    return whole * 1_000_000 + when.microsecond
