"""A cluster of which only the controllers are asked: it has a quorum to offer, and nothing else (KIP-919)."""

from __future__ import annotations

from backends.live.controllers import Controllers
from backends.live.membership import LiveMembership
from backends.live.settings import ClientSettings


class ControllersOnly:
    """What ``--bootstrap-controller`` leads to; ``settings.bootstrap`` are controllers' addresses."""

    simulated = False

    def __init__(self, settings: ClientSettings) -> None:
        self.title = ",".join(str(address) for address in settings.bootstrap)
        self.membership = LiveMembership(self.title, None, Controllers(settings, settings.bootstrap))

    async def close(self) -> None:
        """Let go of every connection."""
        await self.membership.close()
