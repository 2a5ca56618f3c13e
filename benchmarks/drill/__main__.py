"""What each way of recovering loses: ``python -m benchmarks.drill [--seeds N]``; ``docs/drill.md`` has a result.

Every incident is recovered in every way on the simulator, in Spark's tasks. Prints the means with 95 % intervals,
the differences on the same incidents, and the worst incidents with the commands that replay them, in Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from backends.simulator.scenario.files import names
from benchmarks.drill.incident import SHAPES, IncidentShape
from benchmarks.drill.method_comparison import (
    FEW_INCIDENTS,
    MEASURES,
    Grid,
    baseline_of,
    differences,
    incident_rows,
    means,
    worst,
)
from benchmarks.drill.recovery_arms import Arm
from benchmarks.pipeline.results_file import load_now
from pipeline.spark_session import SparkSettings, session
from recovery.wording.quantity_text import counted

WORST_SEEDS = 3
FAILURES_LISTED = 20


def main() -> int:
    """Runs the drill; 1 if an incident could not be run."""
    grid, load = _grid(), load_now()
    with session("drill", SparkSettings(brief=True)) as spark:
        began = time.monotonic()
        rows = incident_rows(spark, grid).cache()
        ran = rows.count()
        seconds = time.monotonic() - began
        print(
            f"{counted(ran, 'incident')}, {ran / seconds:,.1f} a second without Spark's start; load average at the"
            f" start {load}"
        )
        for line in _report(rows, grid):
            print(line)
        failed = rows.where("error <> ''").select("error", "replay").orderBy("replay").take(FAILURES_LISTED)
    for row in failed:
        sys.stderr.write(f"could not be run: {row.error}\n  {row.replay}\n")
    return 1 if failed else 0


def _grid() -> Grid:
    """Default: every kind of incident, every method, and min ISR 1 and 2; for a scenario its own min ISR."""
    shapes, methods = [shape.value for shape in IncidentShape], [arm.value for arm in Arm]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drill", description=__doc__)
    parser.add_argument(
        "--scenario", action="append", metavar="NAME", help=f"{', '.join(shapes)}, or a scenario"
    )
    parser.add_argument("--arm", action="append", choices=methods)
    parser.add_argument("--min-isr", action="append", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=40, help="of each combination")
    asked = parser.parse_args()
    scenarios = tuple(asked.scenario or shapes)
    known = (*shapes, *names())
    for name in scenarios:
        if name not in known and not name.endswith((".yaml", ".yml")):
            parser.error(f"--scenario {name!r}: there are {', '.join(known)}, or give a .yaml file")
    levels = tuple(asked.min_isr or ((1, 2) if SHAPES.issuperset(scenarios) else (None,)))
    return Grid(scenarios, tuple(asked.arm or methods), levels, asked.seed, asked.seeds)


def _report(rows: Any, grid: Grid) -> Iterator[str]:
    yield from _tables(means(rows), "incidents", ("incidents", "failed", "losing"), MEASURES)
    baseline = baseline_of(grid.arms)
    compared = differences(rows, baseline)
    if compared:
        yield f"\nDifferences from {baseline} on the same incidents:"
    counts = ("lost_acknowledged_less", "lost_acknowledged_more", "unavailable_s_less", "unavailable_s_more")
    yield from _tables(compared, "pairs", ("pairs", *counts), ("lost_acknowledged", "unavailable_s"))
    for row in worst(rows, WORST_SEEDS):
        yield f"{row['lost_acknowledged']:,} acknowledged records lost: {row['replay']}"


def _tables(
    cells: Iterable[Mapping[str, Any]], size: str, counts: Sequence[str], measures: Sequence[str]
) -> Iterator[str]:
    """A table for each scenario and min ISR; ``size``: the column with the number of incidents."""
    titles: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        level = "" if cell["min_isr"] < 0 else f", min ISR {cell['min_isr']}"
        titles.setdefault(f"{cell['scenario']}{level}", []).append(cell)
    for title, inside in titles.items():
        few = (
            " (intervals too narrow: few incidents)"
            if min(cell[size] for cell in inside) < FEW_INCIDENTS
            else ""
        )
        yield f"\n{title}{few}\n"
        yield f"| way | {' | '.join((*counts, *measures))} |"
        yield f"|---|{'---:|' * len((*counts, *measures))}"
        for cell in inside:
            values = (*(f"{cell[name]:,}" for name in counts), *(_interval(cell, name) for name in measures))
            yield f"| {cell['arm']} | {' | '.join(values)} |"


def _interval(cell: Mapping[str, Any], name: str) -> str:
    """Such as 12.3 ± 0.4; "?": no incident could be run; without an interval: a single incident has none."""
    value, half = cell[name], cell[f"{name}_ci"]
    if value is None:
        return "?"
    return f"{value:,.2f}" if half is None else f"{value:,.2f} ± {half:,.2f}"


if __name__ == "__main__":
    sys.exit(main())
