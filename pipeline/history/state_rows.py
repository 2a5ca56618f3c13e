"""What the rows of snapshots say of partitions, in one byte for each row, computed many rows at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.history.packed_rows import NAME, SCHEMAS, STATES, partition_hashes
from pipeline.plan import row_checks
from pipeline.tables.schemas import PARTITION_STATES
from recovery.arrays.nested_arrays import Array, any_of, bounds, items, numbers, truths, valid

READ = pa.schema(
    [("snapshot", NAME), ("topic", NAME), ("topic_id", NAME)]
    + [
        PARTITION_STATES.schema.field(name)
        for name in ("partition", "deleted", "leader", "isr", "elr", "min_isr")
    ]
)
"""What is read of a row."""

KINDS = ("offline", "under min ISR", "ELR in use")
"""The kinds of incidents. The bit of the kind ``n`` is ``1 << n``: no leader; a leader and an ISR of fewer
replicas than min ISR; a leader and somebody in the ELR.
"""

BAD = 0b111
"""The bits of all kinds."""

MIN_ISR_UNKNOWN, DELETED = 1 << 3, 1 << 4

FLAW = 5
"""The bits from here on are the number of a flaw; 0: the row is sound. Of a broken row no kind is known."""

FLAWS = ("", row_checks.NAMELESS, row_checks.NO_LEADER, row_checks.BROKEN_ISR, row_checks.COPIES)
"""What each number means: those checks of the plan that concern a history."""

NAMELESS, NO_LEADER, BROKEN_ISR, COPIES = 1, 2, 3, 4


def narrowed(batch: Any, cluster: str, moments: Mapping[str, int]) -> tuple[pa.Table, Array]:
    """The rows of those snapshots, as :data:`~pipeline.history.packed_rows.STATES` and their hashes. ``batch``
    has the columns :data:`READ`, of one file of the cluster.
    """
    snapshot = encoded(batch["snapshot"])
    of_name = np.array([moments.get(name, -1) for name in snapshot.dictionary.to_pylist()] + [-1], np.int64)
    moment = of_name[numbers(snapshot.indices, -1)]
    if (moment < 0).any():
        batch, moment = batch.filter(pa.array(moment >= 0)), moment[moment >= 0]
    topic = encoded(batch["topic"])
    isr, elr = batch["isr"], batch["elr"]
    bits = _bits(batch, topic)
    bad = (bits & BAD) > 0
    columns = {
        "topic": topic,
        "topic_id": encoded(batch["topic_id"]),
        "partition": batch["partition"].cast(pa.int32()),
        "moment": pa.array(moment.astype(np.int32)),
        "bits": pa.array(bits.astype(np.uint8)),
        "leader": batch["leader"].cast(pa.int32()),
        "isr": _only(isr, bad),
        "elr": _only(elr, bad),
    }
    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(bits), np.int32)), pa.array([cluster]))
    hashes = partition_hashes(one, topic, batch["partition"])
    return pa.table(columns, schema=SCHEMAS[STATES]), hashes


def encoded(column: Any) -> Any:
    """A column with a dictionary."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    found = column if pa.types.is_dictionary(column.type) else column.cast(pa.string()).dictionary_encode()
    return found.cast(pa.dictionary(pa.int32(), pa.string()))


def _bits(batch: Any, topic: Any) -> Array:
    rows = batch.num_rows
    deleted, leader, isr = truths(batch["deleted"]), numbers(batch["leader"], -2), items(batch["isr"])
    empty = np.array([name == "" for name in topic.dictionary.to_pylist()] + [True], bool)
    nameless = empty[numbers(topic.indices, -1)] | (numbers(batch["partition"], -1) < 0)
    broken_isr = ~isr.present
    if isr.values.null_count:
        broken_isr |= any_of(isr.owner, ~valid(isr.values), rows)
    flaw = np.select(
        [nameless, deleted, leader < -1, broken_isr], [NAMELESS, 0, NO_LEADER, BROKEN_ISR], default=0
    )
    shown = (flaw == 0) & ~deleted
    led = shown & (leader != -1)
    known = valid(batch["min_isr"])
    elr = numbers(pc.list_value_length(batch["elr"]), 0)
    states = (
        shown & (leader == -1),
        led & known & (isr.sizes < numbers(batch["min_isr"], 0)),
        led & (elr > 0),
        led & ~known,
        deleted,
    )
    found: Array = flaw << FLAW
    for place, state in enumerate(states):
        found |= state.astype(np.int64) << place
    return found


def _only(lists: Any, which: Array) -> Any:
    """The lists of those rows; the others are null."""
    sizes = numbers(pc.list_value_length(lists), 0)
    values = lists.flatten().filter(pa.array(np.repeat(which, sizes))).cast(pa.int32())
    offsets = bounds(np.where(which, sizes, 0)).astype(np.int32)
    absent = ~which | ~valid(lists)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(absent))
