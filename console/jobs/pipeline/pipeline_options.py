"""The options that the Spark jobs of ``ktriage pipeline`` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import typer

from console.cli.base.declaration import REQUIRED, option, with_options
from console.cli.base.declared import OutputForm
from console.cli.base.run import Output
from console.jobs.pipeline.job_options import JobOptions, interruptible
from console.jobs.pipeline.pipeline_results import RESULT_ROWS

SOURCE = option(
    "--in URI", "The directory of the snapshots that ktriage snapshot wrote. May be repeated.", REQUIRED
)
CLUSTER_IDS = option("--cluster-id ID", "Only this cluster. May be repeated. Default: every cluster.")
AT = option(
    "--at TIME", "Use the state of each cluster at this time (ISO 8601, UTC). Default: the newest snapshot."
)


@dataclass(frozen=True, slots=True)
class _SparkJob:
    """Where the result goes, and where Spark runs."""

    out: str = option(
        "--out URI", "The directory for results. Each job makes its own directory in it.", REQUIRED
    )
    master: str | None = option("--master URL", "The Spark cluster. Default: local[*], this machine.")
    driver_memory: str = option(
        "--driver-memory SIZE", "Memory of the Spark driver on this machine: 2g, 512m.", "2g"
    )
    wheel: str | None = option("--wheel FILE", "With --master: ktriage's own wheel, for the executors.")


@dataclass(frozen=True, slots=True)
class _ShownRows:
    rows: int = RESULT_ROWS


def spark_job(function: Callable[..., int], *, shows_rows: bool = True) -> Callable[..., int]:
    """A typer command that takes the options of every Spark job, then the function's own options.

    ``shows_rows``: False for a job that prints what it reads instead of a result.
    """

    def call(ctx: typer.Context, values: dict[Any, Any]) -> int:
        shared = asdict(values.pop(_SparkJob))
        rows = values.pop(_ShownRows).rows if shows_rows else 0
        json = values.pop(OutputForm).output == Output.JSON
        with interruptible():
            return function(JobOptions(ctx.obj, **shared, rows=rows, json=json), **values)

    return with_options(
        function, (_SparkJob,), ((_ShownRows, OutputForm) if shows_rows else (OutputForm,)), call
    )
