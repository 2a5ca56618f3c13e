"""The options of every ``ktriage pipeline`` job, and how a job is stopped. Imports neither Spark nor Arrow."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from types import FrameType

from console.errors import InputError
from console.program import Program
from console.signals import STOPPING, Stopped
from pipeline.errors import PipelineError
from recovery.wording.missing_extra import missing_extra


@dataclass(frozen=True, slots=True)
class JobOptions:
    """``out``: the URI for results. ``driver_memory``: a size such as 2g. ``rows``: how many rows of each
    table are shown, 0 for all.

    Raises InputError for an invalid size, and for a wheel that would not be used.
    """

    program: Program
    out: str
    master: str | None
    driver_memory: str
    wheel: str | None
    rows: int
    json: bool

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+[kmgt]", self.driver_memory.lower()):
            raise InputError(f"--driver-memory {self.driver_memory!r}: give a size such as 2g or 512m")
        if self.wheel is not None and (self.master or "").startswith("sc://"):
            raise InputError(
                "--wheel: a server of Spark Connect has ktriage in its own Python: docs/pipeline.md, Spark Connect"
            )
        if self.wheel is not None and not __name__.startswith("ktriage."):
            raise InputError(
                "--wheel: this ktriage runs from its repository, where modules have other names than in the wheel;"
                f" install the wheel and use that ktriage: pip install '{self.wheel}[spark]'"
            )


def require_pyarrow(what: str, extra: str = "large") -> None:
    """Raises InputError if Arrow or Delta Lake's library is missing; ``extra`` is the one that has all of the
    work's libraries. Call it before modules that import them.
    """
    for module in ("pyarrow", "deltalake"):
        if find_spec(module) is None:
            raise InputError(missing_extra(f"{what} needs", module, extra))


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turns an error of the pipeline's input into InputError."""
    try:
        yield
    except PipelineError as error:
        raise InputError(str(error)) from None


class _Interrupted(BaseException):
    """Not an Exception, because py4j catches every Exception and raises its own."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Runs a job: a signal ends it at once, and an error of the pipeline's input becomes InputError. The job
    sends nothing to a cluster, so nothing has to be finished first. Raises Stopped and InputError.
    """
    require_pyarrow("the pipeline", "spark")
    received: list[int] = []

    def leave(signum: int, _frame: FrameType | None) -> None:
        received.append(signum)
        raise _Interrupted

    handled = [signum for signum in STOPPING if signal.getsignal(signum) is not signal.SIG_IGN]
    before = {signum: signal.signal(signum, leave) for signum in handled}
    try:
        yield
    except BaseException as error:
        # py4j and Spark turn the interruption into their own errors; the signal is what counts.
        if not received and isinstance(error, PipelineError):
            raise InputError(str(error)) from None
        if not received:
            raise
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if received:
        raise Stopped(received[0], in_flight=False)
