"""Reads a cluster again and again, and tells what changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from backends.base.answers import ClusterInfo, Partitions
from backends.base.errors import BackendError, Unreachable
from backends.base.protocol import Backend, Stop
from recovery.cluster_changes import (
    ClusterChange,
    WatchedState,
    cluster_change_text,
    cluster_changes,
    watched_state,
)
from recovery.wording.cluster_health_text import STATES_LAST_KNOWN, stale_by_quorum

READ_SECONDS = 60.0
"""A reading that takes longer than this many seconds is cancelled, and the next one begins."""
STOP_CHECK_SECONDS = 0.2


class WatchReport(NamedTuple):
    """One thing that happened, in a line. ``change`` is None for the watch itself: the cluster could not be asked,
    or can be asked again. ``reading`` is set once after each reading, ``failed`` after each that did not succeed;
    ``text`` is "" where there is nothing to tell.
    """

    text: str
    change: ClusterChange | None = None
    reading: WatchedState | None = None
    failed: bool = False


async def open_when_it_answers(
    backend: Backend,
    interval: float,
    stop: Stop,
    say: Callable[[str], None],
    *,
    patience: float = READ_SECONDS,
) -> ClusterInfo | None:
    """The cluster of a wait that began while its brokers start: nothing listens there yet. None: it was stopped.
    Raises Unreachable where nobody was reached for ``patience`` seconds, and any other BackendError at once.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    begun = False
    while not stop:
        try:
            return await backend.open()
        except Unreachable as error:
            if loop.time() >= until:
                raise
            if not begun:
                say(f"{error}: asked again for {patience:.0f} s")
            begun = True
        await _rest(interval, stop)
    return None


async def watch(
    backend: Backend, interval: float, stop: Stop, read: Callable[[Backend], Awaitable[WatchedState]]
) -> AsyncIterator[WatchReport]:
    """Until ``stop``. ``interval`` in seconds. The first reading is what later ones are compared with; ``read``
    raises BackendError where nobody could be asked.

    A cluster that cannot be asked is reported once; then the last reading stays until it answers again.
    """
    before: WatchedState | None = None
    problem = ""
    while not stop:
        try:
            async with asyncio.timeout(READ_SECONDS):
                after = await read(backend)
        except (BackendError, TimeoutError) as error:
            first, problem = not problem, problem or str(error) or f"no answer within {READ_SECONDS:.0f} s"
            yield WatchReport(f"the cluster cannot be asked: {problem}" if first else "", failed=True)
        else:
            if problem:
                problem = ""
                yield WatchReport("the cluster can be asked again")
            if after.stale and (before is None or not before.stale):
                yield WatchReport(f"{after.stale}: {STATES_LAST_KNOWN}")
            if before is not None and before.stale and not after.stale:
                yield WatchReport("a controller leads again")
            if before is not None:
                for change in cluster_changes(before, after):
                    yield WatchReport(cluster_change_text(change, after), change)
            before = after
            yield WatchReport("", reading=after)
        await _rest(interval, stop)


async def read_leaders(backend: Backend) -> WatchedState:
    """Brokers and leaders, and nothing else. Raises BackendError."""
    cluster = await backend.cluster()
    partitions, quorum = await backend.partitions(), await backend.quorum()
    return watched(cluster, partitions, stale_by_quorum(quorum, partitions.asked))


def watched(cluster: ClusterInfo, partitions: Partitions, stale: str) -> WatchedState:
    """What somebody waits for, of one reading; ``stale``: why it may be old, or ""."""
    state = watched_state(cluster.brokers, partitions.states)
    return state._replace(stale=stale, unseen=partitions.may_hide_topics)


async def _rest(seconds: float, stop: Stop) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while not stop and loop.time() < until:  # noqa: ASYNC110  # a signal sets the stop, and no event
        await asyncio.sleep(min(STOP_CHECK_SECONDS, seconds))
