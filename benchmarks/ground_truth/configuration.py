"""min.insync.replicas as a bench sets it at every level, and the values that may be in force."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.static.primitive import i8

from benchmarks.ground_truth.promises import TopicHistory
from testbed.kafka import KafkaCluster
from testbed.kafka.connection import Connection

MIN_ISR = "min.insync.replicas"
_CLUSTER_WIDE = ""
_TOPIC, _BROKER = 2, 4
_SET, _DELETE = 0, 1
_SECONDS = 10.0


class Configuration:
    """Kafka's precedence: the topic's value, else the leading broker's own, else the cluster-wide one, else that of
    the leading broker's file when it started.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        spec = cluster.spec
        self.files = {
            id: int({**spec.broker_config, **spec.node_config.get(id, {})}.get(MIN_ISR, 1))
            for id in spec.broker_ids
        }
        self.started_with = dict(self.files)
        self.brokers: dict[int, int] = {}
        self.cluster_wide: int | None = 1 if spec.has_elr_feature and spec.elr is not False else None
        """With the ELR, Kafka writes the controller's own value as the cluster-wide one."""

    def possible(self, topic: TopicHistory) -> set[int]:
        """The values that leaders of the topic may go by now."""
        if topic.min_isr is not None:
            return {topic.min_isr}
        return topic.ghosts | {self._of_broker(broker) for broker in topic.replicas}

    def _of_broker(self, broker: int) -> int:
        own = self.brokers.get(broker, self.cluster_wide)
        return self.started_with[broker] if own is None else own

    def observe(self, topics: Iterable[TopicHistory]) -> None:
        for topic in topics:
            topic.observed(min(value, max(1, len(topic.replicas))) for value in self.possible(topic))

    def set_topics(
        self, topics: Sequence[TopicHistory], values: Sequence[int | None], *, wait: bool = True
    ) -> None:
        """None removes a topic's own value. Without ``wait`` brokers may not have heard of it."""
        self.alter_topics(topics, MIN_ISR, values, wait=wait)
        for topic, value in zip(topics, values, strict=True):
            topic.min_isr = value
        self.observe(topics)

    def alter_topics(
        self, topics: Sequence[TopicHistory], key: str, values: Sequence[object | None], *, wait: bool = True
    ) -> None:
        self._alter(
            _resource(_TOPIC, topic.name, key, value) for topic, value in zip(topics, values, strict=True)
        )
        if wait:
            self._cluster.metadata.wait_caught_up()

    def set_broker(self, broker: int, value: int | None, topics: Iterable[TopicHistory]) -> None:
        """The dynamic value of one broker, which must run. Kafka refuses it where the ELR is on."""
        self._alter([_resource(_BROKER, str(broker), MIN_ISR, value)], broker)
        self._cluster.metadata.wait_caught_up()
        self.brokers.pop(broker, None)
        if value is not None:
            self.brokers[broker] = value
        self.observe(topics)

    def set_cluster(self, value: int | None, topics: Iterable[TopicHistory]) -> None:
        """The dynamic value of all brokers. Kafka refuses to remove it where the ELR is on."""
        self._alter([_resource(_BROKER, _CLUSTER_WIDE, MIN_ISR, value)])
        self._cluster.metadata.wait_caught_up()
        self.cluster_wide = value
        self.observe(topics)

    def set_file(self, broker: int, value: int) -> None:
        """Takes effect when the broker starts again."""
        self._cluster.node(broker).change_properties({MIN_ISR: str(value)})
        self.files[broker] = value

    def starts(self, broker: int, topics: Iterable[TopicHistory]) -> None:
        """The broker is about to start: it reads its file."""
        self.started_with[broker] = self.files[broker]
        self.observe(topics)

    def _alter(self, resources: Iterable[AlterConfigsResource], via: int | None = None) -> None:
        """Raises AssertionError if Kafka refuses one of them, and NoAnswer."""
        request = IncrementalAlterConfigsRequest(resources=tuple(resources), validate_only=False)
        if not request.resources:
            return
        if via is None:
            answer = self._cluster.metadata.ask(request, IncrementalAlterConfigsResponse)
        else:
            with Connection(self._cluster.node(via).port, None, _SECONDS) as connection:
                answer = connection.ask(request, IncrementalAlterConfigsResponse)
        refused = [one.error_message for one in answer.responses if one.error_code]
        assert not refused, refused[:3]


def _resource(kind: int, name: str, key: str, value: object | None) -> AlterConfigsResource:
    entry = AlterableConfig(
        name=key,
        config_operation=i8(_SET if value is not None else _DELETE),
        value=None if value is None else str(value),
    )
    return AlterConfigsResource(resource_type=i8(kind), resource_name=name, configs=(entry,))
