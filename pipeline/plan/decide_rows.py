"""The choice of leaders for a batch of snapshot rows, as rows of the plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.plan.row_checks import QUARANTINED, flaws
from pipeline.tables.schemas import PLANNED
from recovery.arrays.nested_arrays import Array, any_of, items, truths
from recovery.arrays.replica_columns import brokers
from recovery.arrays.row_decisions import VERDICTS, RankedRows, clean_electors, decisions
from recovery.plan.topic_marks import MAY_BE_COMPACTED
from recovery.ranking import Ranking
from recovery.strategy import Strategy


def planned(batch: Any, ranking: Ranking, strategy: Strategy) -> list[Any]:
    """Turns a batch of snapshot rows into batches of :data:`PLANNED`.

    A broken row gets the verdict "quarantined", its flaw as the reason, and nothing else.
    """
    flaw = flaws(batch)
    sound = pc.is_null(flaw)
    broken = batch.filter(pc.invert(sound))
    decided = _decided(batch.filter(sound), ranking, strategy)
    return [decided, quarantined(broken, flaw.drop_null())] if broken.num_rows else [decided]


def quarantined(batch: Any, flaw: Any) -> Any:
    """Rows that cannot be planned, as a batch of :data:`PLANNED`; ``flaw``: the reason for each."""
    count = batch.num_rows
    nobody = brokers(np.zeros(0, np.int64), np.zeros(0, np.int64), count)
    return _batch(
        batch,
        {
            "verdict": pa.array([QUARANTINED] * count),
            "chosen": pa.array(np.full(count, -1)),
            "election_order": nobody,
            "waits_for": nobody,
            "clean_electors": nobody,
            "reason": flaw,
        },
    )


def _batch(batch: Any, decided: dict[str, Any]) -> Any:
    """A batch of :data:`PLANNED`: the decided columns, else the batch's own, else nulls."""
    names = set(batch.schema.names)
    columns = []
    for field in PLANNED:
        if field.name in decided:
            columns.append(decided[field.name].cast(field.type))
        elif field.name in names:
            columns.append(batch[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=PLANNED)


def _decided(batch: Any, ranking: Ranking, strategy: Strategy) -> Any:
    rows = RankedRows(batch, ranking, _may_be_compacted(batch))
    decided = decisions(rows, strategy)
    columns = {
        "verdict": pa.array([one.value for one in VERDICTS]).take(pa.array(decided.verdict)),
        "chosen": pa.array(decided.leader),
        "election_order": decided.election_order,
        "waits_for": decided.waits_for,
        "reason": decided.reason,
        "other_ranking_leader": decided.other_ranking_leader,
        "clean_electors": clean_electors(batch),
        "candidates": rows.candidates,
        "silent": rows.silent,
    }
    return _batch(batch, columns)


def _may_be_compacted(batch: Any) -> Array:
    """The rows of which a snapshot does not tell what their logs still hold."""
    marks = items(batch["marks"])
    which = pc.is_in(marks.values, pa.array([mark.value for mark in MAY_BE_COMPACTED]))
    return any_of(marks.owner, truths(which), batch.num_rows)
