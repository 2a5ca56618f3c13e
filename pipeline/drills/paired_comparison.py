"""Compares recovery methods on the same incidents: differences paired by seed, with bootstrap intervals.

The incidents of a drill differ much more from each other than two methods differ on one incident. So a method is
compared with the baseline incident by incident, and the interval is that of the mean difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.drills.recovery_arms import Arm
from pipeline.results import rows_of_runs
from pipeline.storage import StoragePath
from pipeline.tables.schemas import DRILL_INCIDENTS

Array = np.ndarray

COMPARED_MEASURES = ("lost_acknowledged", "unavailable_s")
"""Records that were acknowledged with acks=all and lost, and partition-seconds without a leader."""

RESAMPLES = 1000
AT_ONCE = 2_000_000
"""Counts that are drawn at once; this bounds the memory."""

SEED = 1
"""Of the bootstrap: the same incidents give the same intervals."""

WORST_SEEDS = 3

_CASE = ["scenario", "min_isr", "arm", "seed"]

Incident = Mapping[str, Any]


class PairedDifferences(NamedTuple):
    """``rows``: for each scenario (and "all"), min ISR and method the difference from the ``baseline``; ``worst``:
    for each method the incidents in which it lost most.
    """

    baseline: str
    rows: list[dict[str, Any]]
    worst: list[dict[str, Any]]


def read_incidents(root: StoragePath, run_ids: Collection[str]) -> pa.Table:
    """The incidents of those runs, each once and in order; one that could be run in any of them could be run.
    Raises PipelineError.
    """
    rows = pa.concat_tables(rows_of_runs(root, DRILL_INCIDENTS, run_ids))
    rows = rows.sort_by([(name, "ascending") for name in (*_CASE, "error")])
    numbered = rows.select(_CASE).append_column("row", pa.array(range(len(rows)), pa.int64()))
    first = numbered.group_by(_CASE).aggregate([("row", "min")])["row_min"]
    return rows.take(first.combine_chunks().sort())


def compare_paired(incidents: Sequence[Incident]) -> PairedDifferences:
    """Compares every method with unclean elections, which is what Kafka's released tools offer; if the drill has
    none, with its first method. ``incidents``: those that could be run.
    """
    arms = list(dict.fromkeys(row["arm"] for row in incidents))
    baseline = Arm.RANDOM_UNCLEAN.value if Arm.RANDOM_UNCLEAN in arms or not arms else arms[0]
    return PairedDifferences(baseline, list(_differences(incidents, baseline)), list(_worst(incidents, arms)))


def _differences(incidents: Sequence[Incident], baseline: str) -> Iterator[dict[str, Any]]:
    reference = {_incident(row): row for row in incidents if row["arm"] == baseline}
    cells: dict[tuple[str, int, str], list[tuple[Incident, Incident]]] = {}
    for row in incidents:
        other = reference.get(_incident(row))
        if row["arm"] != baseline and other is not None:
            for scenario in (row["scenario"], "all"):
                cells.setdefault((scenario, row["min_isr"], row["arm"]), []).append((row, other))
    random = np.random.default_rng(SEED)
    for (scenario, min_isr, arm), pairs in sorted(cells.items()):
        cell: dict[str, Any] = {"scenario": scenario, "min_isr": min_isr, "arm": arm, "pairs": len(pairs)}
        for name in COMPARED_MEASURES:
            difference = np.array([row[name] - other[name] for row, other in pairs], float)
            cell[name] = float(difference.mean())
            cell[f"{name}_low"], cell[f"{name}_high"] = bootstrap_interval(difference, random)
            cell[f"{name}_less"], cell[f"{name}_more"] = (
                int((difference < 0).sum()),
                int((difference > 0).sum()),
            )
        yield cell


def _incident(row: Incident) -> tuple[str, int, int]:
    return row["scenario"], row["min_isr"], row["seed"]


def bootstrap_interval(values: Array, random: np.random.Generator) -> tuple[float | None, float | None]:
    """The 95 % percentile interval of the mean (Efron 1979); None: one value has no spread.

    How often each value is drawn is multinomial, so equal values are drawn together.
    """
    size = len(values)
    if size < 2:
        return None, None
    distinct, counts = np.unique(values, return_counts=True)
    step = max(1, AT_ONCE // len(distinct))
    means = np.concatenate(
        [
            random.multinomial(size, counts / size, min(step, RESAMPLES - done)) @ distinct / size
            for done in range(0, RESAMPLES, step)
        ]
    )
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def _worst(incidents: Sequence[Incident], arms: Sequence[str]) -> Iterator[dict[str, Any]]:
    for arm in arms:
        losing = [row for row in incidents if row["arm"] == arm and row["lost_acknowledged"] > 0]
        for row in sorted(losing, key=lambda row: -row["lost_acknowledged"])[:WORST_SEEDS]:
            yield {
                name: row[name]
                for name in ("arm", "scenario", "min_isr", "seed", "lost_acknowledged", "replay")
            }
