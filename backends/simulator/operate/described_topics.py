"""Partitions, topic configurations, reassignments and log dirs, as the simulated brokers describe them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from backends.base.answers import LogDir, Partitions, Reassignment
from backends.base.hidden_topics import unlisted
from backends.simulator.messages import Error
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import OperatorClient, denied, silence, topic_denied
from backends.simulator.operator_messages import (
    ConfigsDescribed,
    DescribeConfigs,
    DescribeLogDirs,
    ListReassignments,
    LogDirsDescribed,
    ReassignmentsListed,
)
from recovery.model import Broker, TopicPartition, Unknown, Why


def described_log_dirs(
    client: OperatorClient, brokers: Sequence[int]
) -> dict[int, tuple[LogDir, ...] | Unknown]:
    """Every log dir of each broker, or why it is not known."""
    answers = client.all([(node(number), DescribeLogDirs()) for number in brokers])
    found: dict[int, tuple[LogDir, ...] | Unknown] = {}
    for number, answer in zip(brokers, answers, strict=True):
        if not isinstance(answer, LogDirsDescribed):
            found[number] = silence(answer)
        elif answer.error is not None:
            found[number] = denied(answer.error, "DESCRIBE", "the cluster", "DescribeLogDirs")
        else:
            found[number] = answer.log_dirs
    return found


WHOLE_TOPIC = -1


def described_partitions(
    client: OperatorClient, topics: Sequence[str] | None, brokers: Sequence[Broker] | None
) -> Partitions:
    """The partitions of ``topics``, or of all topics.

    A list of all topics leaves out those that the caller may not see; the log dirs of the ``brokers`` that are up
    have them. None: there are no such topics.
    """
    states, refused, asked = client.describe(topics)
    not_compared = None
    if brokers is not None:
        only_in_dirs, not_compared = _only_in_log_dirs(client, brokers, {state.topic for state in states})
        refused = {**refused, **dict.fromkeys(only_in_dirs, Error.TOPIC_AUTHORIZATION_FAILED)}
    unknown = {TopicPartition(topic, WHOLE_TOPIC): topic_denied(topic, why) for topic, why in refused.items()}
    hidden = sorted(topic for topic, why in refused.items() if why is Error.TOPIC_AUTHORIZATION_FAILED)
    return Partitions(states, unknown, tuple(hidden), topics is None, asked, not_compared)


def _only_in_log_dirs(
    client: OperatorClient, brokers: Sequence[Broker], listed: Collection[str]
) -> tuple[list[str], Unknown | None]:
    """The topics in log dirs that are not ``listed``; and why there may be others."""
    found: dict[str, None] = {}
    silent = {broker.id for broker in brokers if broker.fenced}
    up = [broker.id for broker in brokers if not broker.fenced]
    for number, answer in described_log_dirs(client, up).items():
        if not isinstance(answer, Unknown):
            found.update(dict.fromkeys(replica.tp.topic for one in answer for replica in one.replicas))
        elif answer.why is Why.NOT_ALLOWED:
            return [], answer
        else:
            silent.add(number)
    return [topic for topic in found if topic not in listed], unlisted(silent) if silent else None


def described_configs(
    client: OperatorClient, topics: Sequence[str]
) -> dict[str, Mapping[str, str] | Unknown]:
    """The effective configurations of topics."""
    if not topics:
        return {}
    asked, _ = client.caught_up()
    answer = client.one(node(asked), DescribeConfigs(tuple(topics)))
    if not isinstance(answer, ConfigsDescribed):
        return dict.fromkeys(topics, silence(answer))
    return {
        topic: denied(configs, "DESCRIBE_CONFIGS", f"topic {topic}", "its configuration")
        if isinstance(configs, Error)
        else dict(configs)
        for topic, configs in answer.topics
    }


def listed_reassignments(
    client: OperatorClient, partitions: Sequence[TopicPartition] | None
) -> tuple[Reassignment, ...] | Unknown:
    """Reassignments in progress, of these partitions or of all."""
    asked, _ = client.caught_up()
    named = None if partitions is None else tuple(partitions)
    answer = client.one(node(asked), ListReassignments(named))
    if not isinstance(answer, ReassignmentsListed):
        return silence(answer)
    if answer.error is not None:
        return denied(answer.error, "DESCRIBE", "the cluster", "ListPartitionReassignments")
    return tuple(Reassignment(*row) for row in answer.rows)
