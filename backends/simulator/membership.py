"""The quorum of a simulated cluster: the live adapter's, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from backends.base.membership import (
    ChangeAnswer,
)
from backends.live.membership import LiveMembership
from recovery.membership.quorum import MembershipRules

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
    from backends.simulator.adapter import SimulatorBackend
    from recovery.metadata_log.history import MetadataHistory

P = ParamSpec("P")
T = TypeVar("T")


class SimulatedMembership:
    """Implements :class:`backends.base.membership.Membership` on a simulation."""

    simulated = True
    asks_brokers = True

    def __init__(self, backend: SimulatorBackend) -> None:
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

    @staticmethod
    def _timed(
        call: Callable[Concatenate[LiveMembership, P], Coroutine[Any, Any, T]], *, changes: bool = False
    ) -> Callable[Concatenate[SimulatedMembership, P], Coroutine[Any, Any, T]]:
        """The live quorum's call, in virtual time."""

        async def timed(self: SimulatedMembership, /, *given: P.args, **named: P.kwargs) -> T:
            return await self._ask(lambda live: call(live, *given, **named), changes=changes)

        return timed

    describe = _timed(LiveMembership.describe)
    controllers = _timed(LiveMembership.controllers)
    probe = _timed(LiveMembership.probe)
    nodes = _timed(LiveMembership.nodes)
    every_address = _timed(LiveMembership.every_address)
    add_voter = _timed(LiveMembership.add_voter, changes=True)
    remove_voter = _timed(LiveMembership.remove_voter, changes=True)
    unregister_controller = _timed(LiveMembership.unregister_controller, changes=True)

    async def open(self) -> str:
        """Open the adapter if it is not open."""
        await self._backend.open()
        return self._backend.cluster_id

    async def close(self) -> None:
        """Nothing: the adapter closes the simulation."""

    async def pause(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self._backend.advance(seconds)

    async def metadata_log(self) -> MetadataLogReader:
        """The log as the active controller tells it, with virtual times. Raises NotAllowed."""
        return _VirtualLog(self._backend, await self._ask(lambda live: live.metadata_log()))

    async def metadata_log_bytes(self) -> MetadataLogBytes:
        """The same in Kafka's bytes. Raises NotAllowed."""
        return _VirtualLogBytes(self._backend, await self._ask(lambda live: live.metadata_log_bytes()))

    async def upgrade_feature(
        self, feature: str, level: int, recorder: Recorder | None, *, dry_run: bool
    ) -> ChangeAnswer:
        """Send UpdateFeatures once."""
        return await self._ask(
            lambda live: live.upgrade_feature(feature, level, recorder, dry_run=dry_run), changes=not dry_run
        )


class _VirtualLog:
    """Virtual time passes while others ask, so a reading waits for news in real time."""

    def __init__(self, backend: SimulatorBackend, log: MetadataLogReader) -> None:
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

    def __init__(self, backend: SimulatorBackend, log: MetadataLogBytes) -> None:
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
