"""Access to a cluster: every operation can read it, and only an armed one gets a cluster that can be changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from backends.base.errors import BackendError
from backends.base.read_only import ReadOnlyBackend, ReadOnlyMembership
from recovery.model import Unknown

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from backends.base.protocol import Backend

C = TypeVar("C")
NO_ALTER = "ALTER on the cluster is missing: Kafka would refuse every change but records written back"
DESCRIBED_WITHIN = 1.0
"""Seconds for a description of the quorum: where no controller leads, nobody answers."""


@dataclass(frozen=True, slots=True)
class Access(Generic[C]):
    """A cluster, or its quorum. ``reading`` cannot send a change.

    ``refuse`` raises a ConsoleError with the reason while changes are not allowed; it is called before each
    change. ``directories`` reads the directory ids of the cluster's nodes; none where they cannot be read.
    """

    reading: C
    _cluster: C
    refuse: Callable[[], None]
    directories: Callable[[], Awaitable[frozenset[str]]]

    def changing(self) -> C:
        """The cluster as it can be changed. Raises what ``refuse`` raises."""
        self.refuse()
        return self._cluster


def backend_access(backend: Backend, refuse: Callable[[], None]) -> Access[Backend]:
    """Access to a whole cluster."""
    return Access(ReadOnlyBackend(backend), backend, refuse, lambda: node_directories(backend))


def membership_access(membership: Membership, refuse: Callable[[], None]) -> Access[Membership]:
    """Access to a metadata quorum. A replacement takes hours: ``refuse`` is called for each change of it again."""
    return Access(
        ReadOnlyMembership(membership),
        ReadOnlyMembership(membership, refuse),
        refuse,
        lambda: quorum_directories(membership),
    )


async def node_directories(cluster: Backend) -> frozenset[str]:
    """The directory ids of the nodes that the quorum's leader lists; none where they cannot be read, and none of a
    simulated cluster: its id is made of its scenario and seed, so no other cluster has it.
    """
    if cluster.simulated:
        return frozenset()
    try:
        async with asyncio.timeout(DESCRIBED_WITHIN):
            quorum = await cluster.quorum()
    except TimeoutError:
        return frozenset()
    return frozenset() if isinstance(quorum, Unknown) else quorum.directories


async def quorum_directories(membership: Membership) -> frozenset[str]:
    """The same through the controllers."""
    if membership.simulated:
        return frozenset()
    try:
        async with asyncio.timeout(DESCRIBED_WITHIN):
            return (await membership.describe()).directories
    except (BackendError, TimeoutError):
        return frozenset()
