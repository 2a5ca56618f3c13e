"""Random histories of many seeds, in parallel processes."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator

from testbed.histories.random_histories import HistoryResult, random_history
from testbed.histories.random_incidents import random_incident

STOP_CHECK_SECONDS = 0.2
"""Seconds between two checks of ``stop`` while a result is awaited."""


def histories_of(
    seeds: range,
    jobs: int,
    stop: Callable[[], bool] = lambda: False,
    *,
    seconds: int = 60,
    incidents: bool = False,
    operator: bool = False,
) -> Iterator[HistoryResult]:
    """One result per seed, in order, each of ``seconds`` of virtual time. ``stop`` ends the iteration early.
    ``incidents``: of :mod:`testbed.histories.random_incidents`; ``operator``: these, with an operator.

    No process is left behind, however the iteration ends.
    """
    jobs = min(jobs, len(seeds))
    one = _Seed(seconds, incidents=incidents, operator=operator)
    if jobs <= 1:
        for seed in seeds:
            if stop():
                return
            yield one(seed)
        return
    # Ctrl-C reaches every process of a terminal: the parent ends the others.
    with multiprocessing.get_context("spawn").Pool(
        jobs, signal.signal, (signal.SIGINT, signal.SIG_IGN)
    ) as pool:
        waiting = pool.imap(one, seeds)
        for _ in seeds:
            while not stop():
                try:
                    result = waiting.next(STOP_CHECK_SECONDS)
                except multiprocessing.TimeoutError:
                    continue
                yield result
                break
            else:
                return


class _Seed:
    """Runs one seed, also in a worker process."""

    def __init__(self, seconds: int, *, incidents: bool, operator: bool) -> None:
        self._seconds = seconds
        self._incidents = incidents
        self._operator = operator

    def __call__(self, seed: int) -> HistoryResult:
        if self._incidents or self._operator:
            return random_incident(seed, self._seconds, operator=self._operator)
        return random_history(seed, self._seconds)
