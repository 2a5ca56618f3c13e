"""min.insync.replicas as the metadata log configures it, with Kafka's precedence.

The topic's own value counts first, then the dynamic value of the broker that leads, then the cluster's; then the
file of that broker, which is not in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from recovery.controller.rules import MIN_ISR
from recovery.metadata_log.records import ConfigRecord, ResourceType

MinIsrLevel: TypeAlias = tuple[int, str]
"""The type and the name of the resource that has the value."""

OF_CLUSTER: MinIsrLevel = (ResourceType.BROKER, "")
"""The cluster-wide dynamic value."""


def of_topic(topic: str) -> MinIsrLevel:
    return ResourceType.TOPIC, topic


def of_broker(broker: int) -> MinIsrLevel:
    """The dynamic value of one broker."""
    return ResourceType.BROKER, str(broker)


def configured_number(value: str | None) -> int | None:
    """A value that is no number cannot be in force; 1 is the lowest possible value."""
    return None if value is None else int(value) if value.isdecimal() else 1


def in_force(topic: int | None, broker: int | None, cluster: int | None) -> int | None:
    """The value by which a leader acknowledges: the first that is set. None: none is, so its file's counts.

    Kafka: ``LogConfig.fromProps`` over ``KafkaConfig.extractLogConfigMap``, and the order in
    ``DynamicBrokerConfig``. Real: ``tests/live/test_advice_by_min_isr.py``.
    """
    return next((value for value in (topic, broker, cluster) if value is not None), None)


class MinIsrConfig:
    """The present values. ``values``: those that are set."""

    def __init__(self, values: Mapping[MinIsrLevel, int] | None = None) -> None:
        self.values = dict(values or {})
        self._of_brokers: dict[tuple[int, ...], int | None] = {}

    def take(self, change: ConfigRecord) -> bool:
        """Whether the record is about min.insync.replicas."""
        if change.key != MIN_ISR:
            return False
        self._of_brokers.clear()
        level, value = (change.resource_type, change.resource), configured_number(change.value)
        if value is None:
            self.values.pop(level, None)
        else:
            self.values[level] = value
        return True

    def removed(self, topic: str) -> None:
        """The topic was deleted. Its value goes with it, though no record says so."""
        self.values.pop(of_topic(topic), None)

    def effective(self, topic: str, brokers: tuple[int, ...]) -> int | None:
        """The lowest value in force for the topic while one of ``brokers`` leads; None: for one of them no record
        sets any, so only its file can tell.
        """
        own = self.values.get(of_topic(topic))
        if own is not None:
            return own
        if brokers not in self._of_brokers:
            # Topics without a value of their own have this one, as long as no value changes.
            self._of_brokers[brokers] = self._lowest(brokers)
        return self._of_brokers[brokers]

    def _lowest(self, brokers: tuple[int, ...]) -> int | None:
        cluster = self.values.get(OF_CLUSTER)
        found = [in_force(None, self.values.get(of_broker(broker)), cluster) for broker in brokers]
        known = [value for value in found if value is not None]
        return cluster if not brokers else min(known) if len(known) == len(found) else None
