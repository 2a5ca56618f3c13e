"""What the handlers of every served node share: the simulation, its clock, and what exists only on the wire."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.loop import MILLISECOND
from backends.simulator.network import NetworkNode, NetworkRole
from backends.simulator.served.api_versions import Versions
from backends.simulator.served.client_state import ClientState
from backends.simulator.served.clock import Clock
from backends.simulator.world import World

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServedContext:
    """``offered`` is what ApiVersions says at a node of each role. ``began_ms`` is virtual time 0 in ms since
    the epoch. ``metadata_log`` is what controllers answer Fetch with. ``ports`` is filled while the
    nodes begin to listen.
    """

    cluster_id: str
    world: World
    clock: Clock
    offered: Mapping[NetworkRole, Versions]
    began_ms: int
    metadata_log: EncodedMetadataLog
    client_state: ClientState = field(default_factory=ClientState)
    ports: dict[NetworkNode, int] = field(default_factory=dict)

    def nodes(self, role: NetworkRole) -> Sequence[NetworkNode]:
        """The nodes of that role in the scenario."""
        return [node for node in self.ports if node.role is role]

    def addresses(self, role: NetworkRole) -> str:
        """``host:port`` of every node of that role, separated by commas."""
        return ",".join(f"{HOST}:{self.ports[node]}" for node in self.nodes(role))

    def in_epoch_ms(self, virtual_ms: int) -> int:
        """A time of the simulation as ms since the epoch; -1 stays -1."""
        return virtual_ms if virtual_ms < 0 else self.began_ms + virtual_ms

    def wall_clock_ms(self, virtual_ms: int) -> int:
        """As :meth:`in_epoch_ms`, for a time that is compared with now: as long ago as it is in virtual time."""
        if virtual_ms < 0:
            return virtual_ms
        return int(time.time() * 1000) - (self.clock.now // MILLISECOND - virtual_ms)
