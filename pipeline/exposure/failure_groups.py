"""What fails together: the replicas of each partition by the name of their broker, rack or log dir.

Every array has one value for each replica, or for each loss; rows ascend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery.arrays.nested_arrays import Array, expand, joined, numbers

Columns = Sequence[Array]


class Names(NamedTuple):
    """Of each replica the index of its name in ``texts``, -1 without a name. The texts ascend, so that two names
    have the same order in every batch.
    """

    code: Array
    texts: Any


class Losses(NamedTuple):
    """What each failure takes from each row: first the ``groups`` of replicas with one name, then each two groups
    ``first`` and ``second`` of a row. ``taken``: for each column the sum of the replicas that are lost.
    """

    row: Array
    groups: int
    first: Array
    second: Array
    taken: Columns


def sorted_names(code: Array, texts: Any) -> Names:
    """``code``: the indices in ``texts``, -1 for none."""
    order = pc.sort_indices(texts)
    # The last place is read by -1.
    rank = np.full(len(order) + 1, -1)
    rank[order.to_numpy()] = np.arange(len(order))
    return Names(rank[code], texts.take(order))


def broker_names(brokers: Array) -> Names:
    """The brokers' ids as text."""
    coded = pa.array(brokers).dictionary_encode()
    return sorted_names(numbers(coded.indices, -1), pc.cast(coded.dictionary, pa.string()))


def log_dir_names(brokers: Names, directories: Any) -> Names:
    """Such as ``3:/var/lib/kafka``; a replica whose directory is null or empty has no name."""
    coded = directories.dictionary_encode()
    known = pc.fill_null(pc.not_equal(coded.dictionary, ""), False).to_numpy(zero_copy_only=False)
    directory = numbers(coded.indices, -1)
    size = len(known)
    # A null has the code -1, which reads the last place.
    named = np.append(known, False)[directory]
    found, place = distinct(brokers.code[named] * size + directory[named], len(brokers.texts) * size)
    code = np.full(len(directory), -1)
    code[named] = place
    parts = brokers.texts.take(pa.array(found // size)), coded.dictionary.take(pa.array(found % size))
    return sorted_names(code, joined(parts[0], ":", parts[1]) if size else pa.array([], pa.string()))


def one_name(which: Array, text: str) -> Names:
    """The same name for those replicas, none for the others."""
    return Names(np.where(which, 0, -1), pa.array([text]))


def has_name(names: Names, text: str) -> Array:
    """Which replicas have that name."""
    at = names.texts.index(text).as_py()
    return names.code == at if at >= 0 else np.zeros(len(names.code), bool)


def each_replica(owner: Array, members: Columns) -> Losses:
    """Every replica is a group of its own."""
    count = len(owner)
    ends = np.repeat(*_run_ends(owner))
    first, second = expand(np.arange(count) + 1, ends - np.arange(count) - 1)
    row = np.concatenate([owner, owner[first]])
    taken = [np.concatenate([column, column[first] + column[second]]) for column in members]
    return Losses(row, count, first, second, taken)


def by_name(owner: Array, members: Columns, names: Names, single: Losses) -> tuple[Losses, Array]:
    """The losses by name, and the name of each group. ``single``: :func:`each_replica`, which is returned where
    every replica has a name that no other of its row has.
    """
    named = names.code >= 0
    if named.all() and not (names.code[single.first] == names.code[single.second]).any():
        return single, names.code
    row, code = owner[named], names.code[named]
    order = np.argsort(row * (len(names.texts) + 1) + code, kind="stable")  # quick, because rows ascend
    row, code = row[order], code[order]
    begins = np.ones(len(row), bool)
    begins[1:] = (row[1:] != row[:-1]) | (code[1:] != code[:-1])
    at = np.flatnonzero(begins)
    sums = [np.add.reduceat(column[named][order], at) if len(at) else column[:0] for column in members]
    return each_replica(row[at], sums), code[at]


def distinct(key: Array, limit: int) -> tuple[Array, Array]:
    """The different keys, ascending, and the index of each key among them; keys are from 0 to below ``limit``."""
    if limit > 16 * len(key) + 1024:
        return np.unique(key, return_inverse=True)
    there = np.zeros(limit, bool)
    there[key] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[key]


def _run_ends(rows: Array) -> tuple[Array, Array]:
    """Where each run of equal values ends, and its length."""
    changes = np.flatnonzero(rows[1:] != rows[:-1]) + 1
    ends = np.append(changes, len(rows))
    return ends, np.diff(ends, prepend=0)
