"""The options that the Spark jobs of ``ktriage pipeline`` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from console.cli.base.options import REQUIRED, Option, OutputFormat, with_options
from console.cli.base.run import Output
from console.jobs.pipeline.job_options import JobOptions, interruptible
from console.jobs.pipeline.pipeline_results import OutOption, ResultRows

MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="The Spark cluster. Default: local[*], this machine."),
]
MemoryOption = Annotated[
    str,
    typer.Option(
        "--driver-memory", metavar="SIZE", help="Memory of the Spark driver on this machine: 2g, 512m."
    ),
]
WheelOption = Annotated[
    str | None,
    typer.Option(
        "--wheel",
        metavar="FILE",
        help="With --master: ktriage's own wheel, for the executors.",
    ),
]
SourceOption = Annotated[
    list[str],
    typer.Option(
        "--in",
        metavar="URI",
        help="The directory of the snapshots that ktriage snapshot wrote. May be repeated.",
        show_default=False,
    ),
]
ClusterIds = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster-id", metavar="ID", help="Only this cluster. May be repeated. Default: every cluster."
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Use the state of each cluster at this time (ISO 8601, UTC). Default: the newest snapshot.",
    ),
]


_JOB: tuple[Option, ...] = (
    ("out", OutOption, REQUIRED),
    ("master", MasterOption, None),
    ("driver_memory", MemoryOption, "2g"),
    ("wheel", WheelOption, None),
)
_SHOWN: tuple[Option, ...] = (("rows", ResultRows, 20), ("output", OutputFormat, Output.TABLE))


def spark_job(function: Callable[..., int]) -> Callable[..., int]:
    """A typer command that takes the options of every Spark job, then the function's own options."""

    def call(ctx: typer.Context, values: dict[str, Any]) -> int:
        shared = {name: values.pop(name) for name, _, _ in _JOB}
        rows, json = values.pop("rows"), values.pop("output") == Output.JSON
        job = JobOptions(ctx.obj, **shared, rows=rows, json=json)
        with interruptible():
            return function(job, **values)

    return with_options(function, _JOB, _SHOWN, call)


def watching_job(function: Callable[..., int]) -> Callable[..., int]:
    """Like :func:`spark_job`, for a job that prints what it reads instead of a result."""

    def call(ctx: typer.Context, values: dict[str, Any]) -> int:
        shared = {name: values.pop(name) for name, _, _ in _JOB}
        job = JobOptions(ctx.obj, **shared, rows=0, json=values.pop("output") == Output.JSON)
        with interruptible():
            return function(job, **values)

    return with_options(function, _JOB, _SHOWN[1:], call)
