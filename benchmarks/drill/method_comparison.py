"""A drill on Spark: a row for each case, and queries over them: means by method, and differences between two
methods on the same incidents. Equal seeds are equal incidents, which differ more from each other than methods do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import pyarrow as pa

from benchmarks.drill.drill_run import DrillRow, run_arms
from benchmarks.drill.recovery_arms import Arm

CASES_A_TASK = 50
FEW_INCIDENTS = 30
"""With fewer, an interval that takes the mean as normally distributed is too narrow."""

MEASURES = (
    "lost_acknowledged",
    "lost_other",
    "rescuable",
    "lost_for_good",
    "unavailable_s",
    "decisions",
    "waits",
    "offline_after",
)
COMPARED = ("lost_acknowledged", "unavailable_s")

_TYPES = {str: "string", int: "bigint", float: "double"}
SCHEMA = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in get_type_hints(DrillRow).items())


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination; ``first`` and ``seeds`` are the range of seeds."""

    scenarios: tuple[str, ...]
    arms: tuple[str, ...]
    min_isr: tuple[int | None, ...]
    first: int
    seeds: int

    @property
    def incidents(self) -> int:
        """How many cases there are."""
        return len(self.scenarios) * len(self.arms) * len(self.min_isr) * self.seeds


def incident_rows(spark: Any, grid: Grid) -> Any:
    """A :class:`DrillRow` for each case, as a DataFrame. A case that fails is a row, never a failed task."""
    arms = grid.arms
    tasks = max(2, grid.incidents // CASES_A_TASK)
    incidents = (
        spark.range(grid.first, grid.first + grid.seeds)
        .crossJoin(spark.createDataFrame([(name,) for name in grid.scenarios], "scenario string"))
        .crossJoin(spark.createDataFrame([(level,) for level in grid.min_isr], "min_isr int"))
        .repartition(tasks)
    )

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for case in batch.to_pylist():
                rows = run_arms(case["scenario"], arms, case["min_isr"], case["id"])
                yield pa.RecordBatch.from_pylist([row._asdict() for row in rows])

    return incidents.mapInArrow(run, SCHEMA)


def means(rows: Any) -> list[dict[str, Any]]:
    """By scenario (and "all"), min ISR and method: how many incidents were run, how many could not be run, how
    many lose acknowledged records, and of each measure the mean with half of its 95 % interval.
    """
    fine = "FILTER (WHERE error = '')"
    measured = ", ".join(
        f"avg({name}) {fine} {name}, 1.96 * stddev_samp({name}) {fine} / sqrt(count(*) {fine}) {name}_ci"
        for name in MEASURES
    )
    return _queried(
        rows,
        "SELECT if(grouping(scenario) = 1, 'all', scenario) scenario, min_isr, arm,"  # noqa: S608  # our names
        f" count_if(error = '') incidents, count_if(error <> '') failed, count_if(lost_acknowledged > 0) losing,"
        f" {measured}"
        " FROM {rows} GROUP BY GROUPING SETS ((scenario, min_isr, arm), (min_isr, arm)) ORDER BY ALL",
    )


def differences(rows: Any, baseline: str) -> list[dict[str, Any]]:
    """By scenario (and "all"), min ISR and method: how much more than the ``baseline`` it loses and is offline on
    the same incidents, the mean with half of its 95 % interval, and in how many incidents it is less and more.
    """
    compared = ", ".join(
        f"avg(one.{name} - other.{name}) {name},"
        f" 1.96 * stddev_samp(one.{name} - other.{name}) / sqrt(count(*)) {name}_ci,"
        f" count_if(one.{name} < other.{name}) {name}_less, count_if(one.{name} > other.{name}) {name}_more"
        for name in COMPARED
    )
    return _queried(
        rows,
        "SELECT if(grouping(one.scenario) = 1, 'all', one.scenario) scenario, one.min_isr, one.arm,"  # noqa: S608  # our names
        " count(*) pairs,"
        f" {compared} FROM {{rows}} one JOIN {{rows}} other USING (scenario, min_isr, seed)"
        " WHERE one.error = '' AND other.error = '' AND other.arm = {baseline} AND one.arm <> {baseline}"
        " GROUP BY GROUPING SETS ((one.scenario, one.min_isr, one.arm), (one.min_isr, one.arm)) ORDER BY ALL",
        baseline=baseline,
    )


def baseline_of(arms: Sequence[str]) -> str:
    """Unclean elections, which are what Kafka's released tools offer; if the drill has none, its first method."""
    return Arm.RANDOM_UNCLEAN.value if Arm.RANDOM_UNCLEAN.value in arms else arms[0]


def worst(rows: Any, count: int) -> list[dict[str, Any]]:
    """Of each method the incidents that lost most acknowledged records, with the commands that replay them."""
    return _queried(
        rows,
        "SELECT arm, lost_acknowledged, replay FROM (SELECT *, row_number() OVER (PARTITION BY arm"
        " ORDER BY lost_acknowledged DESC, scenario, min_isr, seed) place FROM {rows} WHERE lost_acknowledged > 0)"
        " WHERE place <= {count} ORDER BY arm, lost_acknowledged DESC, replay",
        count=count,
    )


def _queried(rows: Any, text: str, **values: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in rows.sparkSession.sql(text, rows=rows, **values).collect()]
