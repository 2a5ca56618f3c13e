"""Every interleaving of a designated election with another actor: one event in every setting, two in some."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.soak import SoakOptions
from tests.unit.live.interleavings import explore
from tests.unit.live.other_actor import settings

TWICE_EVERY = 100
"""In every n-th setting two events happen."""


def run(options: SoakOptions) -> int:
    """All settings, or ``rounds`` of them; prints a summary and what was wrong. 0 if nothing was."""
    began = time.monotonic()
    every = list(settings())
    chosen = [every[at] for at in options.seeds(len(every)) if at < len(every)]
    jobs = options.jobs or len(os.sched_getaffinity(0))
    histories = alike = wrong = 0
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        once = pool.map(partial(explore, depth=1), chosen, chunksize=20)
        twice = pool.map(partial(explore, depth=2), chosen[::TWICE_EVERY])
        for setting, found in (
            *zip(chosen, once, strict=True),
            *zip(chosen[::TWICE_EVERY], twice, strict=True),
        ):
            histories += found.histories
            alike += found.alike
            wrong += len(found.wrong)
            for problem in found.wrong[:3]:
                print(f"interleavings: {setting}: {problem}", flush=True)
    print(
        f"interleavings: {len(chosen):,} settings with one event, {len(chosen[::TWICE_EVERY]):,} with two,"
        f" {histories:,} histories run and {alike:,} that go on like one of them,"
        f" {time.monotonic() - began:.0f} s: {wrong:,} went wrong"
    )
    return 1 if wrong else 0
