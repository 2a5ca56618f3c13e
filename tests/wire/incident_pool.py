"""Runs many incidents in parallel processes, because an incident mostly waits for brokers that do not answer."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.wire.fork_server import ForkServer
from tests.wire.random_incidents import IncidentResult, incident

_fork_server: ForkServer | None = None


def incidents(seeds: Iterable[int], at_once: int) -> Iterator[IncidentResult]:
    """One result for each seed, as they end; ``at_once`` processes, each with one cluster and one command."""
    with ProcessPoolExecutor(at_once, multiprocessing.get_context("spawn")) as pool:
        for ended in as_completed([pool.submit(one, seed) for seed in seeds]):
            yield ended.result()


def one(seed: int) -> IncidentResult:
    """Runs one incident in this process; its commands are forked from one fork server."""
    global _fork_server  # noqa: PLW0603  # a pool process has no other place for it
    if _fork_server is None:
        _fork_server = ForkServer()
    try:
        with tempfile.TemporaryDirectory() as directory:
            return asyncio.run(incident(seed, Path(directory), _fork_server))
    except Exception as error:  # the other seeds continue
        _fork_server = None
        return IncidentResult(seed, (f"the incident failed: {error!r}",), 0, 0, (), False, 0)
