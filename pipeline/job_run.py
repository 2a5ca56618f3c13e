"""Runs a job in a Spark session and commits its result. A failed run leaves no result and says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from pipeline.errors import PipelineError
from pipeline.results import JobOutput, JobResult, RunTarget, commit
from pipeline.spark_session import SparkSettings, check_installed, session
from pipeline.tables.delta_table import create
from pipeline.tables.schemas import RUNS

JobBody = Callable[[Any, RunTarget], JobOutput]
"""The work of a job; it gets the Spark session, and where it writes."""


class JobRun(NamedTuple):
    """What a result records of its run."""

    job: str
    target: RunTarget
    made_at: datetime
    version: str


@contextmanager
def spark_explained(job: str, discard: Callable[[], None]) -> Iterator[None]:
    """Turns an error of Spark into one line, as PipelineError; ``discard`` is called after any error."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except PySparkException as error:
        discard()
        raise PipelineError(f"{job}: Spark: {failure_message(error)}") from None
    except Py4JJavaError as error:
        discard()
        lines = _messages(error.java_exception) or ["it failed"]
        raise PipelineError(f"{job}: Spark: {spark_message(lines, _innermost(lines))}") from None
    except BaseException:
        discard()
        raise


def execute(run: JobRun, settings: SparkSettings, body: JobBody) -> JobResult:
    """Runs ``body`` in a session and commits what it wrote.

    Raises PipelineError with Spark's message in one line, after removing what was written. Raises NotInstalled.
    """
    check_installed(settings)
    job, target, made_at, version = run
    # Tables that cannot be written fail before Spark starts.
    create(target.root, RUNS)
    with spark_explained(job, target.discard):
        with session(f"ktriage pipeline {job}", settings) as spark:
            done = body(spark, target)
        return commit(JobResult(target, job, made_at, version, done.asked, done.summary))


def _messages(thrown: Any) -> list[str]:
    """Every line of a Java exception and of its causes."""
    lines: list[str] = []
    while thrown is not None:
        lines += str(thrown.getMessage() or "").strip().splitlines()
        thrown = thrown.getCause()
    return lines


_OURS = f"{PipelineError.__module__}.{PipelineError.__qualname__}: "
"""The start of the last line of a Python traceback, if a task raised this error."""

_MISSING = re.compile(r"Class (org\.apache\.hadoop\.fs\.\S+) not found|No FileSystem for scheme \"?(\w+)")
"""Hadoop's message if it has no client for a store."""


def failure_message(error: Exception) -> str:
    """One line of a PySparkException."""
    lines = str(error).strip().splitlines() or ["it failed"]
    return spark_message(lines, lines[0])


def names_our_error(message: str) -> bool:
    """Whether an error of our own task is in Spark's message."""
    return any(line.startswith(_OURS) for line in message.splitlines())


_TRACEBACK = "Traceback (most recent call last):"

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)")


def spark_message(lines: Sequence[str], otherwise: str) -> str:
    """The line of Spark's output that explains the failure: the message of our own task, which names the
    file, the missing module or client, an error of Python in a task; else ``otherwise``.
    """
    ours = [line.removeprefix(_OURS) for line in lines if line.startswith(_OURS)]
    if ours:
        return ours[-1]
    absent = next(filter(None, map(_NO_MODULE.search, lines)), None)
    if absent is not None:
        return f"its Python workers have no module {absent[1]}: docs/pipeline.md, Where it runs"
    found = next(filter(None, map(_MISSING.search, lines)), None)
    if found is None:
        return _python_error(lines) or otherwise
    return (
        f"it has no client for that store ({found[1] or found[2]}), and needs Hadoop's: docs/pipeline.md, Where it"
        " runs"
    )


def _python_error(lines: Sequence[str]) -> str:
    """The error behind the last traceback of Python; "" if there is none."""
    begins = [number for number, line in enumerate(lines) if line.strip().startswith(_TRACEBACK)]
    rest = lines[begins[-1] + 1 :] if begins else ()
    return next((line for line in rest if line and not line[0].isspace()), "")


def _innermost(lines: Sequence[str]) -> str:
    """The last line with an error class of Spark, or the last line."""
    classed = [found[0] for line in lines if (found := re.search(r"\[[A-Z][A-Z_.]+\] .+", line))]
    return classed[-1] if classed else lines[-1]
