"""min.insync.replicas as the metadata log configures it, with Kafka's precedence.

The topic's own value counts first, then one broker's, then the cluster's; then the brokers' own files, which are
not in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from recovery.controller.rules import MIN_ISR
from recovery.metadata_log.records import ConfigRecord, ResourceType

MinIsrLevel: TypeAlias = tuple[int, str]
"""The type and the name of the resource that has the value."""


def min_isr_levels(topic: str, brokers: Iterable[int]) -> Iterator[MinIsrLevel]:
    """The resources whose value may be in force for a topic with replicas on ``brokers``."""
    yield ResourceType.TOPIC, topic
    yield ResourceType.BROKER, ""
    for broker in brokers:
        yield ResourceType.BROKER, str(broker)


def configured_number(value: str | None) -> int | None:
    """A value that is no number cannot be in force; 1 is the lowest possible value."""
    return None if value is None else int(value) if value.isdecimal() else 1


def effective_level(values: Mapping[MinIsrLevel, int | None], topic: str) -> int | None:
    """The value in force of those that may be; of several brokers' values the lowest. None: no record sets one."""
    own = values.get((ResourceType.TOPIC, topic))
    if own is not None:
        return own
    others = [value for value in values.values() if value is not None]
    return min(others, default=None)


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

    def effective(self, topic: str, brokers: tuple[int, ...]) -> int | None:
        """The value in force for the topic; None: no record sets one, so only the brokers' files can tell."""
        if (ResourceType.TOPIC, topic) not in self.values and brokers in self._of_brokers:
            return self._of_brokers[brokers]
        found = {level: self.values.get(level) for level in min_isr_levels(topic, brokers)}
        effective = effective_level(found, topic)
        if found[ResourceType.TOPIC, topic] is None:
            # Topics without a value of their own have this one, as long as no value changes.
            self._of_brokers[brokers] = effective
        return effective
