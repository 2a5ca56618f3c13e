"""Every interleaving of a designated election with another actor: one event in every setting, a request without an
answer and one event after it in every setting, any two events in some.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.soak import SoakOptions
from tests.unit.live.interleavings import Explored, explore, explore_late
from tests.unit.live.other_actor import settings

TWICE_EVERY = 100
"""In every n-th setting two events happen."""


def run(options: SoakOptions) -> int:
    """All settings, or ``rounds`` of them; prints a summary and what was wrong. 0 if nothing was."""
    began = time.monotonic()
    every = list(settings())
    chosen = [every[at] for at in options.seeds(len(every)) if at < len(every)]
    some = chosen[::TWICE_EVERY]
    jobs = options.jobs or len(os.sched_getaffinity(0))
    histories = alike = wrong = 0
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        once = pool.map(partial(explore, depth=1), chosen, chunksize=20)
        late = pool.map(explore_late, chosen, chunksize=10)
        twice = pool.map(partial(explore, depth=2), some)
        found: Explored
        for setting, found in (
            *zip(chosen, once, strict=True),
            *zip(chosen, late, strict=True),
            *zip(some, twice, strict=True),
        ):
            histories += found.histories
            alike += found.alike
            wrong += len(found.wrong)
            for problem in found.wrong[:3]:
                print(f"interleavings: {setting}: {problem}", flush=True)
    print(
        f"interleavings: {len(chosen):,} settings with one event, and with one after a request without an answer,"
        f" {len(some):,} with any two,"
        f" {histories:,} histories run and {alike:,} that go on like one of them,"
        f" {time.monotonic() - began:.0f} s: {wrong:,} went wrong"
    )
    return 1 if wrong else 0
