"""What a running broker knows: who it is, and the newest metadata that it has read."""

from __future__ import annotations

from backends.simulator.broker.broker_min_isr import BrokerMinIsr
from backends.simulator.network import NetworkNode
from backends.simulator.network import broker as node
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.rules import effective_min_isr
from recovery.model import TopicPartition

UNREGISTERED = -1


class BrokerState:
    """Shared by the parts of one broker process; only the process itself changes it.

    ``epoch`` is the broker epoch, UNREGISTERED before the first registration. ``offset`` is how far the broker has
    read the metadata log, -1 before the first batch; ``image`` is the metadata there. ``running``: it was unfenced.
    ``min_isr`` is its own, which the controllers' (``image.min_isr``) need not be.
    """

    __slots__ = ("epoch", "id", "image", "min_isr", "node", "offset", "running")

    def __init__(self, broker: int, min_isr: BrokerMinIsr, running: tuple[int, ClusterImage] | None) -> None:
        self.id = broker
        self.node: NetworkNode = node(broker)
        self.epoch, self.image = running or (UNREGISTERED, ClusterImage({}, {}))
        self.offset = 0 if running else -1
        self.running = running is not None
        self.min_isr = min_isr

    def effective_min_isr(self, tp: TopicPartition) -> int:
        """By which it acknowledges as leader (Kafka's Partition.effectiveMinIsr)."""
        configured = self.min_isr.configured(tp)
        partition = self.image.partitions.get(tp)
        return configured if partition is None else effective_min_isr(configured, len(partition.replicas))
