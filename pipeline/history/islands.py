"""The islands of each partition: successive snapshots of one segment that say the same of it.

Here as columns, and not by Spark's windows: nearly all partitions were in no incident, and windows over all rows
took longer to find that out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.history.history_queries import KINDS
from pipeline.plan.row_checks import NAMELESS
from pipeline.tables.schema_conversion import conformed
from pipeline.tables.schemas import PARTITION_STATES

Array = np.ndarray

LINES = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster_id", "topic", "topic_id")),
        *((name, pa.int32()) for name in ("partition", "number", "last_number", "segment")),
        *((name, pa.bool_()) for name in ("known_before", "has_full", "gone")),
        ("leader", pa.int32()),
        ("flaw", pa.string()),
        ("of_kind", pa.int32()),
        *((name, pa.bool_()) for name in ("bad_0", "bad_1", "bad_2")),
        *(PARTITION_STATES.schema.field(name) for name in ("isr", "elr")),
    ]
)
"""The columns of :data:`~pipeline.history.history_queries.STATES`."""

_HEAD = ("cluster_id", "topic", "partition", "segment", "known_before")
_TAIL = ("last_number", "isr", "elr", "topic_id")
_NEXT = ("number", "segment", "gone", "leader")
ISLANDS = pa.schema(
    [
        *(LINES.field(name) for name in (*_HEAD, *_TAIL)),
        *((name, pa.int32()) for name in ("first_number", "previous_segment")),
        *((f"next_{name}", LINES.field(name).type) for name in _NEXT),
        *((name, pa.bool_()) for name in ("bad", "remade", "previous_bad", "next_bad", "next_remade")),
        *((name, pa.string()) for name in ("kind", "flaw")),
        ("copies", pa.int64()),
    ]
)
"""An island: of its first row :data:`_HEAD`, of its last one :data:`_TAIL`, of the islands before and after it what
is compared. ``remade``: the topic was made again since the row before. Without a ``kind``: a row of a snapshot that
has a ``flaw``, or stands in it ``copies`` times.
"""


def islands_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of the rows of some partitions, all that there are, the islands that are an incident or that the next run may
    have to know, and the broken rows. Of rows of one partition and one snapshot nobody knows which is right.
    """
    rows = pa.Table.from_batches([conformed(batch, LINES) for batch in batches], LINES).combine_chunks()
    if not len(rows):
        return
    line = np.zeros(len(rows), np.int64)
    for name in ("cluster_id", "topic", "partition"):
        names = pc.dictionary_encode(rows[name], null_encoding="encode").combine_chunks()
        line = line * len(names.dictionary) + names.indices.to_numpy()
    number, of_kind = _numbers(rows["number"]), _numbers(rows["of_kind"])
    order = np.lexsort((of_kind, number, line))
    nameless = pc.fill_null(pc.equal(rows["flaw"], NAMELESS), False).to_numpy()[order]
    other = _differs(line[order]) | _differs(number[order]) | _differs(of_kind[order])
    first = np.flatnonzero(other | nameless)
    copies = np.diff(np.append(first, len(order)))
    chosen = order[first]
    rows, line, of_kind, nameless = rows.take(chosen), line[chosen], of_kind[chosen], nameless[first]
    broken = np.flatnonzero((copies > 1) | pc.is_valid(rows["flaw"]).to_numpy())
    yield from _batches(
        {name: rows[name].take(broken) for name in ("cluster_id", "flaw")} | {"copies": copies[broken]}
    )
    for place, kind in enumerate(KINDS):
        mine = np.flatnonzero(((of_kind < 0) | (of_kind == place)) & ~nameless)
        bad = np.where(copies[mine] > 1, -1, _numbers(rows[f"bad_{place}"])[mine])
        yield from _of_kind(kind, rows, mine, line[mine], bad)


def _of_kind(kind: str, rows: pa.Table, mine: Array, line: Array, bad: Array) -> Iterator[pa.RecordBatch]:
    """``mine``: the rows of the kind, by partition and snapshot; ``bad``: 1, 0, or -1 where it is not known."""
    if not len(mine):
        return
    at, new_line = np.arange(len(mine)), _differs(line)
    topic_id = _numbers(pc.dictionary_encode(rows["topic_id"]).combine_chunks().indices)[mine]
    # The row of a partition that is gone has no topic id: the last one counts.
    named = np.maximum.accumulate(np.where(topic_id >= 0, at, -1))
    made = np.where(named >= np.maximum.accumulate(np.where(new_line, at, 0)), topic_id[named], -1)
    remade = ~new_line & _differs(made) & (made >= 0) & (np.roll(made, 1) >= 0)
    segment, gone, has_full = (_numbers(rows[name])[mine] for name in ("segment", "gone", "has_full"))
    begins = np.flatnonzero(new_line | _differs(bad) | _differs(segment) | (gone > 0) | remade)
    ends = np.append(begins[1:], len(mine)) - 1
    opens = new_line[begins]
    closes = np.append(opens[1:], True)
    unshown = (bad[begins] < 0) | (has_full[begins] < 1)
    chosen = np.flatnonzero((bad[begins] == 1) | (closes & unshown))
    head, tail = begins[chosen], ends[chosen]
    before = pa.array(begins[chosen - 1], mask=opens[chosen])
    after = pa.array(np.append(begins, 0)[chosen + 1], mask=closes[chosen])
    place, is_bad, again = pa.array(mine), pa.array(bad == 1, mask=bad < 0), pa.array(remade)
    yield from _batches(
        {name: rows[name].take(mine[head]) for name in _HEAD}
        | {name: rows[name].take(mine[tail]) for name in _TAIL}
        | {f"next_{name}": rows[name].take(place.take(after)) for name in _NEXT}
        | {
            "first_number": rows["number"].take(mine[head]),
            "previous_segment": rows["segment"].take(place.take(before)),
            "bad": is_bad.take(pa.array(head)),
            "remade": again.take(pa.array(head)),
            "previous_bad": is_bad.take(before),
            "next_bad": is_bad.take(after),
            "next_remade": again.take(after),
            "kind": pa.repeat(kind, len(head)),
        }
    )


def _batches(columns: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """As :data:`ISLANDS`; the other columns are null."""
    count = len(next(iter(columns.values())))
    arrays = [
        pa.nulls(count, field.type) if (column := columns.get(field.name)) is None else column
        for field in ISLANDS
    ]
    yield from pa.table(arrays, ISLANDS.names).cast(ISLANDS).combine_chunks().to_batches()


def _differs(values: Array) -> Array:
    """Where a value is another than the one before it; the first is."""
    return np.append(True, values[1:] != values[:-1])


def _numbers(column: Any) -> Array:
    """Integers, -1 for null."""
    numbers: Array = pc.fill_null(column.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    return numbers
