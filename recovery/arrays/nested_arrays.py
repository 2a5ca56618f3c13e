"""Nested Arrow columns as flat numpy arrays: every item knows its row, so that many rows are computed at
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray
"""Integers or booleans, one per item."""


class Items(NamedTuple):
    """The items of a column of lists. ``owner``: the row of each; ``at``: its index in that row; ``first``:
    where each row's items begin, and the end; ``present``: which rows have a list; ``values``: the items as
    an Arrow array.
    """

    owner: Array
    at: Array
    first: Array
    present: Array
    values: Any

    @property
    def sizes(self) -> Array:
        return np.diff(self.first)


def items(lists: Any) -> Items:
    """Splits a column of lists into items; a null list has no items."""
    sizes = numbers(pc.list_value_length(lists), 0)
    first = bounds(sizes)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return Items(owner, np.arange(len(owner)) - first[owner], first, valid(lists), lists.flatten())


def bounds(sizes: Array) -> Array:
    """Where each list begins, and the end."""
    return np.concatenate([[0], np.cumsum(sizes)])


def fields(structs: Any) -> Mapping[str, Any]:
    """The columns of a struct; null where the struct is null."""
    names = [field.name for field in structs.type]
    return dict(zip(names, structs.flatten(), strict=True))


def numbers(column: Any, missing: int) -> Array:
    """Integers of 64 bits, with ``missing`` for null."""
    filled: Array = pc.fill_null(column.cast(pa.int64()), missing).to_numpy(zero_copy_only=False)
    return filled


def truths(column: Any) -> Array:
    """Booleans; null is false."""
    filled: Array = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return filled


def valid(column: Any) -> Array:
    """Which are not null."""
    found: Array = column.is_valid().to_numpy(zero_copy_only=False)
    return found


def any_of(owner: Array, which: Array, rows: int) -> Array:
    """Which rows own one of those items."""
    found = np.zeros(rows, bool)
    found[owner[which]] = True
    return found


def keys(owner: Array, broker: Array) -> Array:
    """A number for each pair of row and broker, for lookups with ``numpy.isin``."""
    return (owner << 32) | (broker & 0xFFFFFFFF)


def within(owner: Array, broker: Array, among: Items) -> Array:
    """Which brokers are in their row's list."""
    mine, listed = keys(owner, broker), keys(among.owner, numbers(among.values, -1))
    if not len(listed):
        return np.zeros(len(mine), bool)
    # Rows ascend, so a stable sort and a search are much quicker than numpy's isin, which hashes each key.
    listed.sort(kind="stable")
    at = np.minimum(np.searchsorted(listed, mine), len(listed) - 1)
    found: Array = listed[at] == mine
    return found
