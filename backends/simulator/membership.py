"""The quorum of a simulated cluster: the live adapter's, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from backends.base.membership import (
    CHANGE_TIMEOUT,
    ChangeAnswer,
    ClusterNode,
    Controller,
    NodeProbe,
)
from backends.simulator.simulation import Simulation
from recovery.membership.quorum import MembershipRules, Quorum
from recovery.model import Unknown

if TYPE_CHECKING:
    from backends.base.metadata_log_reader import (
        LogBytes,
        LogSnapshot,
        MetadataLogBytes,
        MetadataLogReader,
        ReadProgress,
    )
    from backends.base.protocol import Recorder
    from backends.live.adapter import LiveBackend
    from backends.live.membership import LiveMembership
    from recovery.membership.voters import ReplicaKey, Voter
    from recovery.metadata_log.history import MetadataHistory

T = TypeVar("T")


class VirtualAdapter(Protocol):
    """What :class:`SimulatedMembership` needs of the adapter."""

    @property
    def title(self) -> str: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def simulation(self) -> Simulation:
        """Raises Unreachable before ``open``."""
        ...

    async def open(self) -> object:
        """Open the simulation where it is not."""
        ...

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass, and save the state."""
        ...

    async def run(self, ask: Callable[[LiveBackend], Coroutine[Any, Any, T]], *, changes: bool = False) -> T:
        """What the live adapter answers, in virtual time."""
        ...


class SimulatedMembership:
    """Implements :class:`backends.base.membership.Membership` on a simulation."""

    simulated = True
    asks_brokers = True

    def __init__(self, backend: VirtualAdapter) -> None:
        self.title = backend.title
        self._backend = backend

    @property
    def rules(self) -> MembershipRules:
        """As the scenario's cluster has them."""
        return self._backend.simulation.world.quorum.context.rules

    async def _ask(self, ask: Callable[[LiveMembership], Awaitable[T]], *, changes: bool = False) -> T:
        async def asked(live: LiveBackend) -> T:
            await live.membership.open()
            return await ask(live.membership)

        return await self._backend.run(asked, changes=changes)

    async def open(self) -> str:
        """Open the adapter if it is not open."""
        await self._backend.open()
        return self._backend.cluster_id

    async def close(self) -> None:
        """Nothing: the adapter closes the simulation."""

    async def pause(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self._backend.advance(seconds)

    async def describe(self) -> Quorum:
        """As its leader sees it."""
        return await self._ask(lambda live: live.describe())

    async def controllers(self) -> tuple[Controller, ...] | Unknown:
        """Asked of a controller."""
        return await self._ask(lambda live: live.controllers())

    async def at_named_addresses(self) -> Mapping[str, Quorum | Unknown]:
        """A simulated cluster is named as a whole."""
        return {}

    async def probe(self, host: str, port: int, node_id: int | None = None) -> NodeProbe | Unknown:
        """The node that listens at that address."""
        return await self._ask(lambda live: live.probe(host, port, node_id))

    async def nodes(self) -> tuple[ClusterNode, ...]:
        """Brokers and controllers, each asked at its own address."""
        return await self._ask(lambda live: live.nodes())

    async def metadata_log(self) -> MetadataLogReader:
        """The log as the active controller tells it, with virtual times. Raises NotAllowed."""
        return _VirtualLog(self._backend, await self._ask(lambda live: live.metadata_log()))

    async def metadata_log_bytes(self) -> MetadataLogBytes:
        """The same in Kafka's bytes. Raises NotAllowed."""
        return _VirtualLogBytes(self._backend, await self._ask(lambda live: live.metadata_log_bytes()))

    async def add_voter(
        self, voter: Voter, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        """Send AddRaftVoter once."""
        return await self._ask(lambda live: live.add_voter(voter, recorder, timeout=timeout), changes=True)

    async def remove_voter(
        self, key: ReplicaKey, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        """Send RemoveRaftVoter once."""
        return await self._ask(lambda live: live.remove_voter(key, recorder, timeout=timeout), changes=True)

    async def upgrade_feature(
        self, feature: str, level: int, recorder: Recorder | None, *, dry_run: bool
    ) -> ChangeAnswer:
        """Send UpdateFeatures once."""
        return await self._ask(
            lambda live: live.upgrade_feature(feature, level, recorder, dry_run=dry_run), changes=not dry_run
        )


class _VirtualLog:
    """Virtual time passes while others ask, so a reading waits for news in real time."""

    def __init__(self, backend: VirtualAdapter, log: MetadataLogReader) -> None:
        self._backend = backend
        self._log = log

    @property
    def history(self) -> MetadataHistory:
        return self._log.history

    @property
    def snapshot_offset(self) -> int:
        return self._log.snapshot_offset

    async def probe(self) -> None:
        """As the protocol says."""
        await self._backend.run(lambda _: _coroutine(self._log.probe()))

    async def read(self, *, wait: float = 0.0, progress: ReadProgress | None = None) -> int:
        """As the protocol says."""
        found = await self._backend.run(lambda _: _coroutine(self._log.read(progress=progress)))
        if wait and not found:
            await asyncio.sleep(wait)
            found = await self._backend.run(lambda _: _coroutine(self._log.read(progress=progress)))
        return found


class _VirtualLogBytes:
    """As :class:`_VirtualLog`."""

    def __init__(self, backend: VirtualAdapter, log: MetadataLogBytes) -> None:
        self._backend = backend
        self._log = log

    async def read(self, offset: int, epoch: int, *, wait: float = 0.0) -> LogBytes | LogSnapshot:
        """As the protocol says."""
        found = await self._backend.run(lambda _: _coroutine(self._log.read(offset, epoch)))
        if wait and not found.data:
            await asyncio.sleep(wait)
            found = await self._backend.run(lambda _: _coroutine(self._log.read(offset, epoch)))
        return found


async def _coroutine(asked: Awaitable[T]) -> T:
    return await asked
