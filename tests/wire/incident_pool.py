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

_fork_servers: list[ForkServer] = []


def incidents(seeds: Iterable[int], at_once: int) -> Iterator[IncidentResult]:
    """One result for each seed, as they end; ``at_once`` processes, each with one cluster and its commands."""
    with ProcessPoolExecutor(at_once, multiprocessing.get_context("spawn")) as pool:
        for ended in as_completed([pool.submit(one, seed) for seed in seeds]):
            yield ended.result()


def one(seed: int) -> IncidentResult:
    """Runs one incident in this process; its commands are forked from the process's own fork servers."""
    if not _fork_servers:
        _fork_servers.append(ForkServer())
    try:
        with tempfile.TemporaryDirectory() as directory:
            return asyncio.run(incident(seed, Path(directory), _fork_servers))
    except Exception as error:  # the other seeds continue
        _fork_servers.clear()
        return IncidentResult(seed, (f"the incident failed: {error!r}",), 0, 0, (), False, 0)
