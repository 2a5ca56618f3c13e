"""The course of ``ktriage pipeline``: a job is run, and what it found is shown."""

from __future__ import annotations

import re
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from types import FrameType

from console.errors import InputError
from console.program import Program
from console.provenance import now
from console.signals import STOPPING, Stopped
from console.version import version
from recovery.ranking import Ranking
from recovery.strategy import Strategy

try:
    from pipeline.errors import PipelineError
    from pipeline.job_run import JobBody, JobRun, carry_out
    from pipeline.results import JobResult, run_directory
    from pipeline.spark_session import SparkSettings
    from pipeline.storage import StoragePath, storage_path
except ModuleNotFoundError as missing:
    if missing.name != "pyarrow":
        raise
    raise InputError("the pipeline needs pyarrow, which is not installed: make pipeline-setup") from None


@dataclass(frozen=True, slots=True)
class Drilled:
    """The grid of a drill; empty: the usual one."""

    scenarios: tuple[str, ...]
    arms: tuple[str, ...]
    min_isr: tuple[int, ...]
    seed: int
    seeds: int
    merge: bool


@dataclass(frozen=True, slots=True)
class Where:
    """Where Spark runs."""

    master: str | None
    memory: str
    archive: str | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Everything that the command line says."""

    verb: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    out: str | None
    at: str | None
    cluster_ids: tuple[str, ...]
    ranking: Ranking
    strategy: Strategy
    everything: bool
    since: str | None
    journal: bool
    drilled: Drilled
    where: Where
    rows: int
    json: bool

    def means(self, cluster_id: str) -> bool:
        """Whether that cluster is asked for: without names every one is."""
        return not self.cluster_ids or cluster_id in self.cluster_ids

    @property
    def root(self) -> StoragePath:
        """Where results go. Raises InputError."""
        if self.out is None:
            raise InputError(f"pipeline {self.verb} needs --out URI")
        return storage_path(self.out)

    @property
    def roots(self) -> tuple[StoragePath, ...]:
        """Where the snapshots are. Raises InputError."""
        if not self.sources:
            raise InputError(f"pipeline {self.verb} needs --in URI, where ktriage snapshot has written")
        return tuple(storage_path(source) for source in self.sources)


def run(program: Program, wanted: Wanted) -> int:
    """Runs what is wanted; returns the exit status."""
    if not re.fullmatch(r"\d+[kmgt]", wanted.where.memory.lower()):
        raise InputError(f"--driver-memory {wanted.where.memory!r}: give a size as 2g or 512m")
    module, name = _VERBS[wanted.verb].split(":")
    signals = _Signals()
    try:
        with signals.taken():
            return int(getattr(import_module(f"console.cli.pipeline.{module}"), name)(program, wanted))
    except BaseException as error:
        if signals.seen is not None:
            # Whatever it was turned into on its way: py4j and Spark have names of their own for it.
            raise Stopped(signals.seen, in_flight=False) from None
        if isinstance(error, PipelineError):
            raise InputError(str(error)) from None
        raise


def run_job(wanted: Wanted, body: JobBody) -> JobResult:
    """Runs ``body`` where Spark is wanted; a run that fails or is stopped leaves nothing."""
    made_at = now()
    directory = run_directory(wanted.root, wanted.verb, made_at, uuid.uuid4().hex[:8])
    settings = SparkSettings(
        wanted.where.master, wanted.where.memory, sys.stderr.isatty(), archive=wanted.where.archive
    )
    return carry_out(JobRun(wanted.verb, directory, made_at, version()), settings, body)


class _Left(BaseException):
    """Passes by whoever catches every Exception and calls it otherwise, as py4j does."""


class _Signals:
    """A signal ends the run at once; nothing was sent to anybody, and what was written goes."""

    def __init__(self) -> None:
        self.seen: int | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        def leave(signum: int, _frame: FrameType | None) -> None:
            self.seen = signum
            raise _Left

        mine = [signum for signum in STOPPING if signal.getsignal(signum) is not signal.SIG_IGN]
        before = {signum: signal.signal(signum, leave) for signum in mine}
        try:
            yield
            if self.seen is not None:
                raise _Left
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)


def moment(text: str | None, option: str) -> datetime | None:
    """A time as ISO 8601 has it, UTC unless it says otherwise. Raises InputError."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text!r}: give a time as 2026-11-21T14:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


_VERBS = {
    "plan": "run_plan:plan",
    "exposure": "run_exposure:exposure",
    "history": "run_history:history",
    "drill": "run_drill:drill",
    "show": "show_result:show",
    "package": "show_result:package",
}
"""Which module and function: each job pays for its own imports."""
