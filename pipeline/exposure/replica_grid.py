"""The replicas of partitions as a grid, by their place in the assignment and by row, and the names of what can fail
with them; and which rows of a batch are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.plan.row_checks import QUARANTINED, flaws
from pipeline.tables.schema_conversion import conformed
from recovery.arrays.nested_arrays import Array, Items, fields, numbers, truths

Racks = Mapping[str, Mapping[int, str | None]]
"""Of each cluster the racks of its brokers; None, or no broker: it is not known."""


class Names(NamedTuple):
    """Of each replica the index of its name in ``texts``, -1 without a name. The texts ascend, so that two names
    have the same order in every batch.
    """

    code: Array
    texts: Any


class CheckedRows(NamedTuple):
    """``sound`` rows of a batch, and which are ``online``. ``broken``: how many others there are, by cluster
    and reason, as columns.
    """

    sound: Any
    broken: Mapping[str, Any]

    @property
    def online(self) -> Array:
        return truths(pc.not_equal(self.sound["leader"], -1))


def checked(batch: Any) -> CheckedRows:
    """Of a batch of rows of a snapshot."""
    flaw = flaws(batch)
    table = pa.table({"cluster_id": batch["cluster_id"], "reason": flaw}).filter(pc.is_valid(flaw))
    found = table.group_by(table.column_names).aggregate([([], "count_all")]).combine_chunks()
    cluster, reason, rows = (found[name].combine_chunks() for name in (*table.column_names, "count_all"))
    kind = pa.repeat(QUARANTINED, len(rows))
    broken = {"cluster_id": cluster, "kind": kind, "reason": reason, "partitions": rows}
    return CheckedRows(batch.filter(pc.is_null(flaw)), broken)


def shaped(columns: Mapping[str, Any], schema: pa.Schema) -> Any:
    """A batch of that schema; a column that is not given is null, one that the schema lacks is left out."""
    return conformed(pa.RecordBatch.from_pydict(dict(columns)), schema)


def grid(replicas: Items, values: Array, nothing: Any) -> Array:
    """The values of replicas by their place in the assignment and by row; ``nothing`` behind a row's last one."""
    filled = np.full((replicas.sizes.max(initial=0), len(replicas.sizes)), nothing, values.dtype)
    filled[replicas.at, replicas.owner] = values
    return filled


def racks_of(batch: Any, replicas: Items, racks: Racks) -> Any:
    """The rack of each replica; null if it is unknown."""
    clusters = batch["cluster_id"].dictionary_encode()
    broker = numbers(fields(replicas.values)["broker"], -1)
    pairs = pa.array((numbers(clusters.indices, -1)[replicas.owner] << 32) | broker).dictionary_encode()
    known = [racks.get(name, {}) for name in clusters.dictionary.to_pylist()]
    found = [known[pair >> 32].get(pair & 0xFFFFFFFF) for pair in pairs.dictionary.to_pylist()]
    return pa.array(found, pa.string()).take(pairs.indices)


def names_of(replicas: Items, texts: Any) -> Names:
    """``texts``: the name of each replica, null without a name."""
    coded = texts.dictionary_encode()
    order = pc.sort_indices(coded.dictionary)
    # The last place is read by -1.
    rank = np.full(len(order) + 1, -1)
    rank[order.to_numpy()] = np.arange(len(order))
    return Names(grid(replicas, rank[numbers(coded.indices, -1)], -1), coded.dictionary.take(order))
