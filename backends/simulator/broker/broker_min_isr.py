"""What one broker obeys as min.insync.replicas: the configurations in its own metadata, else its own file.

Kafka's order within one metadata delta: the leaderships first, the configurations after them
(BrokerMetadataPublisher, DynamicConfigPublisher). A log that is created within the delta has the topic's new value
at once (LogManager), every other log still has the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from backends.simulator.messages import ConfigStep, TopicRemoved
from recovery.controller.rules import MIN_ISR
from recovery.metadata_log.records import ResourceType
from recovery.model import MinIsrLevels, TopicPartition

Resource = tuple[int, str]
Configs = Mapping[Resource, Mapping[str, str]]
"""What is set for a topic (by name), for one broker (by its id), or for the cluster (an empty name)."""

_CLUSTER: Resource = (ResourceType.BROKER, "")


def replayed(before: Configs, steps: Iterable[ConfigStep]) -> Configs:
    """``before`` after one delta (ConfigurationsDelta of 4.3.1).

    A removed topic takes along only what the image *before* the delta had of it. A value that was set within the
    same delta stays, for a later topic of that name: so a broker that starts again, and replays its log in one
    delta, brings back the value of a topic that was deleted.
    """
    changed: dict[Resource, dict[str, str | None]] = {}
    for step in steps:
        if isinstance(step, TopicRemoved):
            resource: Resource = (ResourceType.TOPIC, step.topic)
            if resource in before:
                changed[resource] = dict.fromkeys(before[resource])
        else:
            changed.setdefault((step.resource_type, step.resource), {})[step.key] = step.value
    after = dict(before)
    for resource, values in changed.items():
        merged = {**before.get(resource, {}), **values}
        after[resource] = {name: value for name, value in merged.items() if value is not None}
        if not after[resource]:
            del after[resource]
    return after


class BrokerMinIsr:
    """``file`` is the value in the file that the process was started with."""

    def __init__(self, broker: int, file: int, loaded: Iterable[ConfigStep] = ()) -> None:
        self.file = file
        self._own: Resource = (ResourceType.BROKER, str(broker))
        self._image: Configs = {}
        self._replaying: list[ConfigStep] = []
        self._new_logs: dict[TopicPartition, None] = {}
        self._topics: dict[str, int] = {}
        self._default = file
        self._file_counts = True
        self.replay(loaded)
        self.publish()

    def replay(
        self, steps: Iterable[ConfigStep], snapshot: Iterable[ConfigStep] | None = None, *, whole: bool = True
    ) -> bool:
        """Take one delta into the metadata; returns whether it changes a configuration. A ``snapshot`` replaces all
        that was known. Without ``whole`` the rest of the delta comes with the next call.
        """
        before = self._image
        if snapshot is not None:
            self._replaying.clear()
            self._image = replayed({}, snapshot)
        self._replaying += steps
        if not whole:
            return False
        delta, self._replaying = self._replaying, []
        self._image = replayed(self._image, delta)
        return self._image != before

    def created(self, tp: TopicPartition) -> None:
        """The log was created within the delta that is not published yet."""
        self._new_logs[tp] = None

    def publish(self) -> None:
        """The configurations of the metadata are in force now."""
        self._topics = dict(self._of_topics())
        self._default = self._beneath_topics()
        self._file_counts = all(self.set_for(*resource) is None for resource in (self._own, _CLUSTER))
        self._new_logs.clear()

    def _of_topics(self) -> Iterator[tuple[str, int]]:
        for (kind, name), values in self._image.items():
            if kind is ResourceType.TOPIC and MIN_ISR in values:
                yield name, int(values[MIN_ISR])

    def _beneath_topics(self) -> int:
        set_values = (self.set_for(*resource) for resource in (self._own, _CLUSTER))
        return next((value for value in set_values if value is not None), self.file)

    def configured(self, tp: TopicPartition) -> int:
        """The value in force for the partition's log."""
        value = self._topics.get(tp.topic)
        if self._new_logs and tp in self._new_logs:
            value = self.set_for(ResourceType.TOPIC, tp.topic)
        return self._default if value is None else value

    def rests_on_file(self, tp: TopicPartition) -> bool:
        """Whether the value in force is that of the broker's own file."""
        return self._file_counts and tp.topic not in self._topics and tp not in self._new_logs

    # As DescribeConfigs shows it

    def set_for(self, kind: int, name: str) -> int | None:
        """What this broker's metadata has for exactly that resource."""
        value = self._image.get((kind, name), {}).get(MIN_ISR)
        return None if value is None else int(value)

    def levels(self, topic: str) -> MinIsrLevels:
        """The values of all levels, as this broker describes them."""
        own, cluster = self.set_for(*self._own), self.set_for(*_CLUSTER)
        return MinIsrLevels(
            int(self._own[1]), self.set_for(ResourceType.TOPIC, topic), own, cluster, self.file
        )
