"""Random histories of many seeds, in parallel processes."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

from backends.simulator.fuzz import FuzzResult, fuzz
from backends.simulator.incident_fuzz import fuzz_incident

STOP_CHECK_SECONDS = 0.2
"""Seconds between two checks of ``stop`` while a result is awaited."""


AT_ONCE = 64
"""The largest number of processes."""


def fuzz_seeds(
    seeds: range,
    jobs: int,
    stop: Callable[[], bool] = lambda: False,
    *,
    seconds: int = 60,
    incidents: bool = False,
    operator: bool = False,
) -> Iterator[FuzzResult]:
    """One result per seed, in order, each of ``seconds`` of virtual time. ``stop`` ends the iteration early.
    ``incidents``: of :mod:`backends.simulator.incident_fuzz`; ``operator``: these, with an operator.

    No process is left behind, however the iteration ends.
    """
    jobs = min(jobs, len(seeds), AT_ONCE)
    one = _FuzzSeed(seconds, incidents=incidents, operator=operator)
    if jobs <= 1:
        for seed in seeds:
            if stop():
                return
            yield one(seed)
        return
    with _signals_blocked():
        pool = multiprocessing.get_context("spawn").Pool(jobs)
    with pool:
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


class _FuzzSeed:
    """Runs one seed, also in a worker process."""

    def __init__(self, seconds: int, *, incidents: bool, operator: bool) -> None:
        self._seconds = seconds
        self._incidents = incidents
        self._operator = operator

    def __call__(self, seed: int) -> FuzzResult:
        if self._incidents or self._operator:
            return fuzz_incident(seed, self._seconds, operator=self._operator)
        return fuzz(seed, self._seconds)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Processes started meanwhile never receive Ctrl-C or SIGHUP; their parent ends them.

    They inherit the blocked signals, so no signal can arrive before a handler is set.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))
    try:
        # Otherwise it would start with the first process, and unblock SIGINT.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
