"""Many incidents at once, in processes of their own: most of an incident is waiting for what does not answer."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.wire.fork_server import ForkServer
from tests.wire.random_incidents import IncidentResult, incident

_ready: ForkServer | None = None


def incidents(seeds: Iterable[int], at_once: int) -> Iterator[IncidentResult]:
    """One of each seed, as they end; ``at_once`` processes, each with one cluster and one run of the tool."""
    with ProcessPoolExecutor(at_once, multiprocessing.get_context("spawn")) as pool:
        for ended in as_completed([pool.submit(one, seed) for seed in seeds]):
            yield ended.result()


def one(seed: int) -> IncidentResult:
    """One incident in this process, whose runs are forked from one that is kept."""
    global _ready  # noqa: PLW0603  # a process of the pool has nowhere else to keep it
    if _ready is None:
        _ready = ForkServer()
    try:
        with tempfile.TemporaryDirectory() as directory:
            return asyncio.run(incident(seed, Path(directory), _ready))
    except Exception as error:  # the other seeds are worth their while all the same
        _ready = None
        return IncidentResult(seed, (f"the incident broke off: {error!r}",), 0, 0, (), False, 0)
