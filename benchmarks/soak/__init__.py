"""The long random runs: each module here has ``run(options)``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from testbed.histories.history_pool import histories_of
from testbed.histories.random_histories import HistoryResult


class SoakOptions(NamedTuple):
    """The size of a run: ``rounds`` seeds from ``first`` on, in at most ``jobs`` processes (None: the run's own).

    So a long run can be done in parts. After ``seconds`` no further seed starts, and the outcome of each part is
    kept in ``record``, in runs that support it; ``only`` is one kind of histories, of the ground truth.
    """

    rounds: int | None = None
    first: int | None = None
    jobs: int | None = None
    seconds: int | None = None
    record: Path | None = None
    only: str | None = None

    def seeds(self, rounds: int, first: int = 0) -> range:
        """The seeds; ``rounds`` and ``first`` are the run's own."""
        begin = first if self.first is None else self.first
        return range(begin, begin + (rounds if self.rounds is None else self.rounds))


class SeedsRun(NamedTuple):
    """``done`` of the seeds were run in ``jobs`` processes, in ``seconds``; ``wrong`` of them failed."""

    done: int
    wrong: int
    jobs: int
    seconds: float


def run_seeds(
    name: str,
    options: SoakOptions,
    seeds: range,
    take: Callable[[HistoryResult], None],
    *,
    virtual_seconds: int,
    operator: bool = False,
) -> SeedsRun:
    """Random histories of the simulator, by default on all cores, each given to ``take``; prints each that failed
    with the command that replays it.
    """
    jobs = options.jobs or len(os.sched_getaffinity(0))
    began = time.monotonic()
    limit = float("inf") if options.seconds is None else began + options.seconds
    done = wrong = 0
    for result in histories_of(
        seeds, jobs, lambda: time.monotonic() >= limit, seconds=virtual_seconds, operator=operator
    ):
        done += 1
        take(result)
        if result.failed:
            wrong += 1
            print(f"{name}: {result.error or result.broken[0]}\n  replay: {result.replay}", flush=True)
    return SeedsRun(done, wrong, jobs, time.monotonic() - began)
