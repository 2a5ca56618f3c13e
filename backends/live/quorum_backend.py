"""Access to the quorum alone, without the imports of the other calls, which cost start-up time."""

from __future__ import annotations

from collections.abc import Mapping

from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings, ControllerAccess
from backends.live.membership import LiveMembership
from backends.live.nodes.brokers import BrokerFleet
from backends.live.nodes.controllers import ControllerConnections


class QuorumOnly:
    """Reached through controllers alone (KIP-919), or ``through_brokers``, at ``settings.bootstrap``.

    ``overrides`` are brokers' addresses; ``controllers`` as in :class:`LiveBackend`.
    """

    simulated = False

    def __init__(
        self,
        settings: ClientSettings,
        overrides: Mapping[int, Address] | None = None,
        *,
        through_brokers: bool = False,
        controllers: ControllerAccess | None = None,
    ) -> None:
        self.title = ",".join(str(address) for address in settings.bootstrap)
        self._fleet = BrokerFleet(settings, overrides) if through_brokers else None
        seeds = () if through_brokers else settings.bootstrap
        access = controllers or ControllerAccess(settings)
        seeds = seeds if controllers is None else (*seeds, *access.settings.bootstrap)
        found = ControllerConnections(access.settings, seeds, access.overrides)
        self.membership = LiveMembership(self.title, self._fleet, found)

    async def close(self) -> None:
        """Let go of every connection."""
        await self.membership.close()
        if self._fleet is not None:
            await self._fleet.close()
