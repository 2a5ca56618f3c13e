"""What a running broker knows: who it is, and the newest metadata that it has read."""

from __future__ import annotations

from backends.simulator.network import NetworkNode
from backends.simulator.network import broker as node
from recovery.controller.cluster_image import ClusterImage

UNREGISTERED = -1


class BrokerState:
    """Shared by the parts of one broker process; only the process itself changes it.

    ``epoch`` is the broker epoch, UNREGISTERED before the first registration. ``offset`` is how far the broker has
    read the metadata log, -1 before the first batch; ``image`` is the metadata there. ``running``: it was unfenced.
    """

    __slots__ = ("epoch", "id", "image", "node", "offset", "running")

    def __init__(self, broker: int, running: tuple[int, ClusterImage] | None) -> None:
        self.id = broker
        self.node: NetworkNode = node(broker)
        self.epoch, self.image = running or (UNREGISTERED, ClusterImage({}, {}))
        self.offset = 0 if running else -1
        self.running = running is not None
