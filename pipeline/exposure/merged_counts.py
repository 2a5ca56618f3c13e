"""Adds up the counts of all tasks, and marks what the summary tells.

The tasks pack their counts, a row of bytes for each part of the keys, and one task of a part adds them. A million
partitions have some 300,000 counts by topic and broker: as rows they would cost Spark more than all the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.arrow_streams import read_stream, streams_by_part
from pipeline.exposure.failure_counts import TOPIC
from pipeline.exposure.fleet import COUNTED
from pipeline.exposure.what_if import WHAT_IF
from pipeline.plan.row_checks import QUARANTINED
from pipeline.tables.schemas import EFFECTS
from recovery.arrays.nested_arrays import Array, bounds, numbers, valid

WORST = 10
"""How many failures of a kind, and topics, the summary has of a cluster."""

WORST_FIRST = ("acknowledged_at_risk", "offline", "under_min_isr", "partitions")
"""The effects by which failures and topics are ranked, the most important first; more is worse."""

PACKED = pa.schema([("part", pa.int32()), ("counts", pa.binary())])

MERGED = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("broker", pa.int32()),  # of the counts by topic
        ("failed", pa.list_(pa.string())),  # of all others
        *((name, pa.int64()) for name in EFFECTS),
        ("place", pa.int32()),  # among the ten worst of its kind; null: it is not among them
        ("failures_offline", pa.int64()),  # of the cluster's worst single failure alone: how many there are
        ("failures_at_risk", pa.int64()),
    ]
)
"""The sums, each key once. The places of topics are those within a part."""

_KEY = ["cluster_id", "kind", "topic", "first", "second"]
_ORDER = [(name, "descending") for name in WORST_FIRST]
_ROWS = 50_000


def packed(batches: Iterable[Any], parts: int) -> Iterator[Any]:
    """Turns batches of :data:`~pipeline.exposure.failure_counts.COUNTS` into batches of :data:`PACKED`. A part has
    all failures of a cluster, and all counts of a topic.
    """
    tables = [_flat(batch) for batch in batches if batch.num_rows]
    if not tables:
        return
    whole = pa.concat_tables(tables).combine_chunks()
    part = _parts(whole, parts)
    rows = [{"part": number, "counts": counts} for number, counts in streams_by_part(whole, part, "lz4")]
    yield pa.RecordBatch.from_pylist(rows, PACKED)


def merged(batches: Iterable[Any]) -> Iterator[Any]:
    """Turns batches of :data:`PACKED`, with every row of their parts, into batches of :data:`MERGED`."""
    tables = [read_stream(content) for batch in batches for content in batch["counts"].to_pylist()]
    if not tables:
        return
    whole = _added(pa.concat_tables(tables))
    of_topics, broken = pc.equal(whole["kind"], TOPIC), pc.equal(whole["kind"], QUARANTINED)
    failures = whole.filter(pc.invert(pc.or_(of_topics, broken)))
    for table in (_failures(failures), _topics(whole.filter(of_topics)), _nested(whole.filter(broken))):
        yield from table.to_batches(_ROWS)


def _flat(batch: Any) -> pa.Table:
    """The same with the names of what fails as columns, by which Arrow can group."""
    failed = batch["failed"]
    sizes, values = numbers(pc.list_value_length(failed), 0), failed.flatten()
    at = bounds(sizes)[:-1]
    names = (values.take(pa.array(at + n, mask=sizes <= n)) for n in range(2))
    columns = {name: batch[name] for name in ("cluster_id", "kind", "topic")}
    columns |= dict(zip(("first", "second"), names, strict=True))
    return pa.table(columns | {name: batch[name] for name in EFFECTS})


def _parts(table: pa.Table, parts: int) -> Array:
    """The part of each row: of a topic by its name, of anything else by the cluster."""
    codes, texts = [], []
    for name in ("cluster_id", "topic"):
        coded = table[name].combine_chunks().dictionary_encode()
        codes.append(numbers(coded.indices, len(coded.dictionary)))
        texts.append([*coded.dictionary.to_pylist(), ""])
    pair, place = np.unique(codes[0] * len(texts[1]) + codes[1], return_inverse=True)
    keys = (f"{texts[0][n // len(texts[1])]}\n{texts[1][n % len(texts[1])]}" for n in pair.tolist())
    found: Array = np.array([crc32(key.encode()) % parts for key in keys])[place]
    return found


def _added(table: pa.Table) -> pa.Table:
    found = table.group_by(_KEY, use_threads=False).aggregate([(name, "sum") for name in EFFECTS])
    sums = {name: pc.fill_null(found[f"{name}_sum"], 0) for name in EFFECTS}
    return pa.table({name: found[name] for name in _KEY} | sums).combine_chunks()


def _failures(table: pa.Table) -> pa.Table:
    """With the places, and the counts of each cluster at its worst single failure."""
    together = pc.add(1, pc.is_valid(table["second"]).cast(pa.int8()))
    table = table.append_column("together", together)
    groups = [(name, "ascending") for name in ("cluster_id", "together", "kind")]
    names = [("first", "ascending"), ("second", "ascending")]
    table = table.sort_by([*groups, *_ORDER, *names])
    place = _places(table, [name for name, _ in groups])
    asked = pc.equal(table["kind"], WHAT_IF).to_numpy()
    single = ~asked & (table["together"].to_numpy() == 1)
    counts = _of_clusters(table.filter(pa.array(single)), np.flatnonzero(single), table.num_rows)
    return _nested(table, (place <= WORST) & ~asked, place, counts)


def _topics(table: pa.Table) -> pa.Table:
    table = table.append_column("broker", table["first"].cast(pa.int32()))
    cluster, names = [("cluster_id", "ascending")], [("topic", "ascending"), ("broker", "ascending")]
    table = table.sort_by([*cluster, *_ORDER, *names])
    place = _places(table, ["cluster_id"])
    return _nested(table, place <= WORST, place)


def _places(table: pa.Table, columns: list[str]) -> Array:
    """The place of each row in its group, from 1; rows of a group are together."""
    if not table.num_rows:
        return np.zeros(0, np.int64)
    begins = np.ones(table.num_rows, bool)
    begins[1:] = False
    for name in columns:
        code = numbers(table[name].combine_chunks().dictionary_encode().indices, -1)
        begins[1:] |= code[1:] != code[:-1]
    at = np.arange(table.num_rows)
    found: Array = at - np.maximum.accumulate(np.where(begins, at, 0)) + 1
    return found


def _of_clusters(single: pa.Table, at: Array, rows: int) -> dict[str, Any]:
    """The counts of :mod:`pipeline.exposure.fleet`, null except at each cluster's worst single failure. ``at``:
    where those failures are among all ``rows``.
    """
    columns = {name: np.zeros(rows, np.int64) for name in ("failures_offline", "failures_at_risk")}
    order = [("cluster_id", "ascending"), *((name, "descending") for name in (*COUNTED, "kind", "first"))]
    sorted_ = pc.sort_indices(single, sort_keys=order).to_numpy()
    first = sorted_[_places(single.take(pa.array(sorted_)), ["cluster_id"]) == 1]
    cluster = numbers(single["cluster_id"].combine_chunks().dictionary_encode().indices, -1)
    there = np.zeros(rows, bool)
    there[at[first]] = True
    for name, effect in zip(columns, ("offline", "acknowledged_at_risk"), strict=True):
        counted = np.bincount(cluster, single[effect].to_numpy() > 0).astype(np.int64)
        columns[name][at[first]] = counted[cluster[first]]
    return {name: pa.array(values, mask=~there) for name, values in columns.items()}


def _nested(
    table: pa.Table,
    listed: Array | None = None,
    place: Array | None = None,
    more: dict[str, Any] | None = None,
) -> pa.Table:
    """The table as :data:`MERGED`; ``listed``: which rows have their ``place``."""
    table = table.combine_chunks()
    columns = {name: table[name] for name in table.column_names if name in MERGED.names} | (more or {})
    if place is not None and listed is not None:
        columns["place"] = pa.array(place, pa.int32(), mask=~listed)
    if "broker" not in columns:
        columns["failed"] = _lists(table["first"].combine_chunks(), table["second"].combine_chunks())
    arrays = [columns.get(field.name, pa.nulls(table.num_rows, field.type)) for field in MERGED]
    return pa.table(arrays, schema=MERGED)


def _lists(first: Any, second: Any) -> Any:
    """A list of one name, or of two."""
    both = valid(second)
    offsets = bounds(1 + both.astype(np.int64))
    at = np.zeros(offsets[-1], np.int64)
    at[offsets[:-1]] = np.arange(len(first))
    at[offsets[:-1][both] + 1] = np.flatnonzero(both) + len(first)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.concat_arrays([first, second]).take(pa.array(at))
    )
