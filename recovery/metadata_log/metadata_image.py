"""What a metadata log implies at its end: topics, partitions, configurations, features and ACLs, as the image has
them that every Kafka node makes of the log (MetadataImage).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from recovery.controller.registration import Registration
from recovery.metadata_log.access_records import AclEntry, acl_change
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import (
    ConfigSubject,
    FeatureSubject,
    MetadataLogRecord,
    PartitionSubject,
    TopicSubject,
)
from recovery.metadata_log.records import (
    ConfigRecord,
    FeatureLevelRecord,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
)
from recovery.metadata_log.timeline_text import config_resource


class MetadataImage(NamedTuple):
    """``topics``: id by name. ``acls``: by their ids."""

    topics: Mapping[str, str]
    partitions: Mapping[PartitionSubject, Registration]
    configs: Mapping[ConfigSubject, str]
    features: Mapping[str, int]
    acls: Mapping[str, AclEntry]

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each kind."""
        return {name: len(getattr(self, name)) for name in ("topics", "partitions", "configs", "acls")}


def image_of(records: Iterable[MetadataLogRecord]) -> MetadataImage:
    """The image at the end of the data records of a log, or of one snapshot. Raises MalformedRecordError."""
    acls: dict[str, AclEntry] = {}
    history = MetadataHistory()

    def passing() -> Iterator[MetadataLogRecord]:
        for record in records:
            change = acl_change(record.value)
            if change is not None and change.entry is not None:
                acls[change.acl_id] = change.entry
            elif change is not None:
                acls.pop(change.acl_id, None)
            yield record

    history.extend(passing())
    return image_at_end(history)._replace(acls=acls)


def image_at_end(history: MetadataHistory) -> MetadataImage:
    """The same of a log that was folded before, without its ACLs, which a history does not hold."""
    topics: dict[str, str] = {}
    configs: dict[ConfigSubject, str] = {}
    features: dict[str, int] = {}
    for row in history.rows():
        match row.subject, row.change:
            case TopicSubject(), TopicRecord(name, topic_id):
                topics[name] = topic_id
            case TopicSubject(topic_id), RemoveTopicRecord():
                name = history.topic_name(topic_id) or ""
                if topics.get(name) == topic_id:
                    del topics[name]
                    gone = [c for c in configs if c[:2] == (ResourceType.TOPIC, name)]
                    for config in gone:
                        del configs[config]
            case ConfigSubject() as config, ConfigRecord(value=None):
                configs.pop(config, None)
            case ConfigSubject() as config, ConfigRecord(value=str(value)):
                configs[config] = value
            case FeatureSubject(feature), FeatureLevelRecord(level=level):
                features[feature] = level
    features = {name: level for name, level in features.items() if level}
    return MetadataImage(topics, dict(history.present()), configs, features, {})


def image_differences(expected: MetadataImage, actual: MetadataImage) -> Iterator[str]:
    """What ``actual`` has otherwise than ``expected``, in words. A controller that has just begun to lead may
    elect: a partition differs in its replicas, or where an epoch is lower than expected.
    """
    yield from _differences("topic", expected.topics, actual.topics)
    names = {topic_id: name for name, topic_id in (*actual.topics.items(), *expected.topics.items())}
    yield from _differences(
        "partition",
        {f"{names.get(s.topic_id, s.topic_id)}-{s.partition}": r for s, r in expected.partitions.items()},
        {f"{names.get(s.topic_id, s.topic_id)}-{s.partition}": r for s, r in actual.partitions.items()},
    )
    yield from _differences("configuration", _named(expected.configs), _named(actual.configs))
    yield from _differences("feature", expected.features, actual.features)
    yield from _differences("ACL", expected.acls, actual.acls)


def _values(expected: Hashable, actual: Hashable) -> str:
    return "" if isinstance(actual, _Hidden) else f": {actual} instead of {expected}"


def _named(configs: Mapping[ConfigSubject, str]) -> dict[str, _Hidden]:
    """A value may be a secret: of two that differ nothing is shown."""
    return {f"{config.key} of {config_resource(config)}": _Hidden(value) for config, value in configs.items()}


class _Hidden(str):
    """A value that is not shown."""


def _differences(
    noun: str, expected: Mapping[str, Hashable], actual: Mapping[str, Hashable]
) -> Iterator[str]:
    for name in sorted({*expected, *actual}):
        if name not in actual:
            yield f"{noun} {name} is missing"
        elif name not in expected:
            yield f"{noun} {name} was not expected"
        elif not _alike(expected[name], actual[name]):
            yield f"{noun} {name} is not as expected{_values(expected[name], actual[name])}"


def _alike(expected: Hashable, actual: Hashable) -> bool:
    if isinstance(expected, Registration) and isinstance(actual, Registration):
        return (
            (expected.replicas, expected.directories) == (actual.replicas, actual.directories)
            and actual.leader_epoch >= expected.leader_epoch
            and actual.partition_epoch >= expected.partition_epoch
        )
    return expected == actual
