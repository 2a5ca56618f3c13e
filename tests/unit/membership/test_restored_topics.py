"""A topic that only brokers' disks know keeps the configurations that another copy has; where none has them,
nothing of it is deleted, and that is said.
"""

from __future__ import annotations

from recovery.controller.registration import Registration
from recovery.membership.restored_topics import (
    NOTHING_DELETED,
    RestoredTopic,
    read_restored_topic,
    restored_topic_lines,
    restored_topic_members,
    restored_topics,
)
from recovery.membership.rewritten_partitions import RewrittenPartition
from recovery.metadata_log.access_records import AclEntry
from recovery.metadata_log.log_changes import ConfigSubject, MetadataLogRecord
from recovery.metadata_log.metadata_image import MetadataImage, image_of
from recovery.metadata_log.records import ResourceType

ORDERS, PAYMENTS = "AAAAAAAAAAAAAAAAAAAAbg", "AAAAAAAAAAAAAAAAAAAAcg"


def written(topic: str, topic_id: str, known: int = -1) -> RewrittenPartition:
    return RewrittenPartition(topic, topic_id, 0, known, 3, Registration((1,), (1,), -1, 1_003))


def image(topics: dict[str, str], *acls: AclEntry, **configs: str) -> MetadataImage:
    found = {
        ConfigSubject(ResourceType.TOPIC, "orders", key.replace("_", ".")): v for key, v in configs.items()
    }
    found[ConfigSubject(ResourceType.TOPIC, "other", "retention.ms")] = "9"
    return MetadataImage(topics, {}, found, {}, {acl.acl_id: acl for acl in acls})


def acl(number: int, resource: str, *, pattern: int = 3, permission: int = 3) -> AclEntry:
    return AclEntry(f"acl-{number}", 2, resource, pattern, "User:ana", "*", 10, permission)


OWN = image({"other": PAYMENTS}, acl(1, "orders"))


def test_another_copy_gives_the_configurations_and_the_acls_that_are_lacking() -> None:
    more = (acl(1, "orders"), acl(2, "ord", pattern=4, permission=2), acl(3, "payments"))
    stale = image({"orders": PAYMENTS}, retention_ms="1")
    best = image({"orders": ORDERS}, *more, retention_ms="5", cleanup_policy="compact")
    (kept,) = restored_topics([written("orders", ORDERS)], OWN, [(1, stale), (2, best)])
    assert (kept.known_from, kept.configs) == (2, (("cleanup.policy", "compact"), ("retention.ms", "5")))
    # That which the chosen copy has is written; that of another topic is not this one's.
    assert kept.acls == (
        "kafka-acls.sh --add --deny-principal User:ana --deny-host '*' --operation DescribeConfigs --topic ord"
        " --resource-pattern-type prefixed --bootstrap-server HOST:PORT",
    )
    lines = list(restored_topic_lines([kept]))
    assert "from the copy of node 2, are written with it: cleanup.policy=compact, retention.ms=5" in lines[0]
    assert "not written" in lines[1] and kept.acls[0] in lines[2]
    records = [MetadataLogRecord(n, 0, n, value) for n, value in enumerate(kept.values)]
    assert set(image_of(records).configs.values()) == {"5", "compact"}


def test_where_no_copy_has_the_topic_nothing_is_deleted_until_somebody_decides() -> None:
    (kept,) = restored_topics([written("orders", ORDERS)], OWN, [(1, image({"orders": PAYMENTS}))])
    assert kept == RestoredTopic("orders", ORDERS, None, NOTHING_DELETED)
    text = "\n".join(restored_topic_lines([kept]))
    assert "NOT KNOWN" in text and "retention.bytes=-1 and retention.ms=-1 are written" in text
    assert "--entity-name orders --alter --delete-config retention.bytes,retention.ms" in text


def test_a_topic_that_the_copy_knows_keeps_what_the_copy_has() -> None:
    assert restored_topics([written("other", PAYMENTS), written("other", PAYMENTS, known=2)], OWN, []) == ()


def test_the_plan_file_has_them() -> None:
    for one in (
        RestoredTopic("a", ORDERS, 2, (("k", "v"),), ("kafka-acls.sh",)),
        RestoredTopic("b", ORDERS, None, ()),
    ):
        assert read_restored_topic(restored_topic_members(one)) == one
