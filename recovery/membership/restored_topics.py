"""Topics that the rebuilt quorum's log does not know and brokers' disks do (``--keep-strays``): their configs
and ACLs, as far as another copy of the metadata log has them.

A topic without its configurations gets the brokers' defaults, and these may delete its records within minutes. So
where nobody knows them, the topic is written with a retention that deletes nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recovery.membership.rewritten_partitions import RewrittenPartition
from recovery.metadata_log.metadata_image import MetadataImage
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import ConfigRecord, ResourceType
from recovery.wording.quantity_text import both

NOTHING_DELETED = (("retention.bytes", "-1"), ("retention.ms", "-1"))
"""What is written where a topic's configurations are not known."""
_CONNECTED = "--bootstrap-server HOST:PORT"


class RestoredTopic(NamedTuple):
    """``configs`` are written with it. ``known_from``: the node whose copy has them; None: no copy that was given
    has the topic. ``acls``: the commands that make its ACLs again which that copy has and the chosen one lacks.
    """

    topic: str
    topic_id: str
    known_from: int | None
    configs: tuple[tuple[str, str], ...]
    acls: tuple[str, ...] = ()

    @property
    def values(self) -> list[bytes]:
        """The records that are written behind the partitions."""
        return [encode(ConfigRecord(ResourceType.TOPIC, self.topic, *config)) for config in self.configs]


def restored_topics(
    written: Iterable[RewrittenPartition],
    own: MetadataImage,
    others: Sequence[tuple[int, MetadataImage]],
) -> tuple[RestoredTopic, ...]:
    """``written``: what is appended. ``own``: what the chosen copy implies; ``others``: what each other copy
    does, by its node, the best first.
    """
    ids = {one.topic_id: one.topic for one in written if one.is_new}
    topics = ((name, topic_id) for topic_id, name in ids.items() if own.topics.get(name) != topic_id)
    return tuple(_restored_topic(name, topic_id, own, others) for name, topic_id in sorted(topics))


def _restored_topic(
    name: str, topic_id: str, own: MetadataImage, others: Sequence[tuple[int, MetadataImage]]
) -> RestoredTopic:
    for node, image in others:
        if image.topics.get(name) != topic_id:
            continue
        configs = sorted(
            (config.key, value)
            for config, value in image.configs.items()
            if config[:2] == (ResourceType.TOPIC, name)
        )
        acls = (acl for acl_id, acl in image.acls.items() if acl_id not in own.acls)
        commands = tuple(
            shlex.join(("kafka-acls.sh", "--add", *acl.options)) + f" {_CONNECTED}"
            for acl in acls
            if acl.is_about_topic(name)
        )
        return RestoredTopic(name, topic_id, node, tuple(configs), commands)
    return RestoredTopic(name, topic_id, None, NOTHING_DELETED)


def restored_topic_lines(topics: Sequence[RestoredTopic]) -> Iterator[str]:
    """What is known of their configurations and ACLs, and what is to be done."""
    for one in topics:
        who = f"topic {one.topic} ({one.topic_id}) is kept from brokers' disks"
        if one.known_from is None:
            what = both([f"{key}={value}" for key, value in one.configs])
            topic = shlex.quote(one.topic)
            alter = f"kafka-configs.sh {_CONNECTED} --entity-type topics --entity-name {topic} --alter"
            yield (
                f"{who}. Its configurations and ACLs are NOT KNOWN: no copy that was given has it. {what} are"
                " written, so that no record is deleted meanwhile; for the rest the brokers' defaults hold,"
                " min.insync.replicas among them. Set its own, then remove what it did not have:"
            )
            yield f"    {alter} --add-config NAME=VALUE"
            yield f"    {alter} --delete-config {','.join(key for key, _ in one.configs)}"
            continue
        what = ", ".join(f"{key}={value}" for key, value in one.configs) or "none was set"
        yield f"{who}. Its configurations, from the copy of node {one.known_from}, are written with it: {what}"
        if one.acls:
            yield "  ACLs that this copy has and the chosen one lacks are not written. To make them again:"
            yield from (f"    {command}" for command in one.acls)


def restored_topic_members(topic: RestoredTopic) -> dict[str, object]:
    """As the plan file and the JSON document have it."""
    return {
        "topic": topic.topic,
        "topicId": topic.topic_id,
        "knownFrom": topic.known_from,
        "configs": dict(topic.configs),
        "acls": list(topic.acls),
    }


def read_restored_topic(members: Mapping[str, Any]) -> RestoredTopic:
    """Raises KeyError, TypeError, ValueError."""
    node = members["knownFrom"]
    return RestoredTopic(
        str(members["topic"]),
        str(members["topicId"]),
        None if node is None else int(node),
        tuple((str(key), str(value)) for key, value in members["configs"].items()),
        tuple(str(command) for command in members["acls"]),
    )
