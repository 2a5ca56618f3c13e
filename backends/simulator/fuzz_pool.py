"""Many seeds at once, in processes of their own."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

from backends.simulator.fuzz import FuzzResult, fuzz

LOOK_SECONDS = 0.2
"""How often whoever waits for a result looks whether it should stop."""


AT_ONCE = 64
"""Processes at the most, whatever is asked for."""


def fuzz_seeds(
    seeds: range, jobs: int, stop: Callable[[], bool] = lambda: False, *, seconds: int = 60
) -> Iterator[FuzzResult]:
    """One result a seed, in their order, each of ``seconds`` of virtual time; fewer where ``stop`` says so.

    No process is left behind, whatever ends the iteration.
    """
    jobs = min(jobs, len(seeds), AT_ONCE)
    if jobs <= 1:
        for seed in seeds:
            if stop():
                return
            yield fuzz(seed, seconds)
        return
    with _untouched_by_the_terminal():
        pool = multiprocessing.get_context("spawn").Pool(jobs)
    with pool:
        waiting = pool.imap(_FuzzSeed(seconds), seeds)
        for _ in seeds:
            while not stop():
                try:
                    result = waiting.next(LOOK_SECONDS)
                except multiprocessing.TimeoutError:
                    continue
                yield result
                break
            else:
                return


class _FuzzSeed:
    """One seed, in whichever process."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def __call__(self, seed: int) -> FuzzResult:
        return fuzz(seed, self._seconds)


@contextmanager
def _untouched_by_the_terminal() -> Iterator[None]:
    """Processes that are made meanwhile never see Ctrl-C or a closed terminal: the one that made them ends them.

    They inherit what is blocked, so there is no moment in which a signal would find them without a handler.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))
    try:
        # It is started with the first process otherwise, and unblocks SIGINT.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
