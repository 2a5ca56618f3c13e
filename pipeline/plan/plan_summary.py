"""The summary of a plan: each task summarises its rows, and the driver adds these parts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.plan.row_checks import QUARANTINED
from recovery.arrays.nested_arrays import fields, items, numbers
from recovery.strategy import DecisionKind

WORST = 100
"""How many of the rows that lose most are named."""

FLAWS = 1000
"""How many pairs of a cluster and a reason for quarantine are named."""

_WORST = ("cluster_id", "topic", "partition", "chosen", "at_least", "at_most", "reason")
_ORDER = [
    # What is lost for certain, then what may be any number, then the most that may be lost.
    *((name, "descending") for name in ("at_least", "unlimited", "at_most")),
    *((name, "ascending") for name in ("cluster_id", "topic", "partition")),
]
_LOSSES = ("elect", "lossless", "unknown", "at_least", "at_most", "disagree")
_SUM = pa.decimal128(38)
"""The sum of many offsets may not fit into 64 bits."""

Part = dict[str, list[list[Any]]]
"""What a task answers, for JSON. ``verdicts``, ``losses`` and ``quarantined``: counts after their keys. ``worst``:
the rows that lose most.
"""


def summarised(batch: Any) -> Part:
    """Of a batch of :data:`~pipeline.tables.schemas.PLANNED`."""
    chosen = _chosen(batch.filter(pc.equal(batch["verdict"], DecisionKind.ELECT.value)))
    broken = pa.table(batch.filter(pc.equal(batch["verdict"], QUARANTINED)))
    verdicts = pa.table(batch).group_by(["cluster_id", "verdict"]).aggregate([([], "count_all")])
    flaws = broken.group_by(["cluster_id", "reason"]).aggregate([([], "count_all")])
    return {
        "verdicts": _rows(verdicts),
        "losses": _rows(_losses(chosen)),
        "quarantined": _rows(flaws),
        "worst": _worst(chosen),
    }


def _chosen(elected: Any) -> pa.Table:
    """The columns of the rows in which somebody is elected, with the loss of the chosen one."""
    candidates = items(elected["candidates"])
    columns = fields(candidates.values)
    mine = np.flatnonzero(numbers(columns["broker"], -1) == numbers(elected["chosen"], -1)[candidates.owner])
    place = np.full(elected.num_rows, -1)
    place[candidates.owner[mine]] = mine
    loss = fields(columns["loss"].take(pa.array(place, mask=place < 0)))
    columns = {name: elected[name] for name in ("cluster_id", "topic", "partition", "chosen", "reason")}
    other = elected["other_ranking_leader"]
    return pa.table(
        columns | {"at_least": loss["at_least"], "at_most": loss["at_most"], "disagree": pc.is_valid(other)}
    )


def _losses(chosen: pa.Table) -> pa.Table:
    at_most = chosen["at_most"]
    counted = {
        "cluster_id": chosen["cluster_id"],
        "lossless": pc.fill_null(pc.equal(at_most, 0), False).cast(pa.int64()),
        "unknown": pc.is_null(at_most).cast(pa.int64()),
        "at_least": chosen["at_least"].cast(_SUM),
        "at_most": at_most.cast(_SUM),
        "disagree": chosen["disagree"].cast(pa.int64()),
    }
    sums = pa.table(counted).group_by("cluster_id")
    return sums.aggregate([([], "count_all"), *((name, "sum") for name in _LOSSES[1:])])


def _worst(chosen: pa.Table) -> list[list[Any]]:
    losing = chosen.filter(pc.fill_null(pc.greater(chosen["at_most"], 0), True)).select(_WORST)
    unlimited = pc.is_null(losing["at_most"]).cast(pa.int8())
    order = pc.sort_indices(losing.append_column("unlimited", unlimited), sort_keys=_ORDER)
    return _rows(losing.take(order[:WORST]))


def _rows(table: pa.Table) -> list[list[Any]]:
    columns = [column.to_pylist() for column in table.columns]
    return [list(map(_plain, row)) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value


def summary(parts: Sequence[Part]) -> dict[str, list[dict[str, Any]]]:
    """The parts of all tasks together, for the result."""
    worst = sorted((row for part in parts for row in part["worst"]), key=_rank)
    return {
        "verdicts": _added(parts, "verdicts", 2, ("cluster_id", "verdict", "partitions")),
        "losses": _added(parts, "losses", 1, ("cluster_id", *_LOSSES)),
        "quarantined": _added(parts, "quarantined", 2, ("cluster_id", "reason", "rows"))[:FLAWS],
        "worst": [dict(zip(_WORST, row, strict=True)) for row in worst[:WORST]],
    }


def _rank(row: Sequence[Any]) -> tuple[Any, ...]:
    """As :data:`_ORDER`."""
    cluster_id, topic, partition, _, at_least, at_most, _ = row
    return -at_least, at_most is not None, -(at_most or 0), cluster_id, topic, partition


def _added(parts: Sequence[Part], name: str, keys: int, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows with the same first ``keys`` values added, sorted by these. The sum of nothing is null."""
    total: dict[tuple[Any, ...], list[Any]] = {}
    for part in parts:
        for row in part[name]:
            before = total.setdefault(tuple(row[:keys]), [None] * (len(row) - keys))
            for place, value in enumerate(row[keys:]):
                if value is not None:
                    before[place] = value + (before[place] or 0)
    return [dict(zip(columns, (*key, *total[key]), strict=True)) for key in sorted(total)]
