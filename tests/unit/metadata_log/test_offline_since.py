"""Since when a partition is offline: the moment of the change, and nothing where the log does not tell it."""

from __future__ import annotations

from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, DecodedRecord, PartitionSubject
from recovery.metadata_log.offline_since import offline_already_ms, offline_since_ms
from recovery.metadata_log.records import MetadataRecord, PartitionChangeRecord, PartitionRecord, TopicRecord

TOPIC = "AAAAAAAAAAAAAAAAAAAAAA"
SUBJECT = PartitionSubject(TOPIC, 0)
LED = Registration((1, 2), (1, 2), 1)
LOST = Registration((1, 2), (), -1, leader_epoch=1)


def history(first: Registration, *changes: PartitionChange, batch: int = 0) -> MetadataHistory:
    """The first record at 1 s, each change a second later."""
    found = MetadataHistory()
    records: list[MetadataRecord] = [TopicRecord("orders", TOPIC), PartitionRecord(TOPIC, 0, first)]
    found.extend_decoded(DecodedRecord(at, 1_000, batch, record) for at, record in enumerate(records))
    for at, change in enumerate(changes, 2):
        record = PartitionChangeRecord(TOPIC, 0, change)
        found.extend_decoded([DecodedRecord(at, at * 1_000, at, record)])
    return found


def test_the_last_time_it_lost_its_leader_counts() -> None:
    gone, back = PartitionChange(leader=-1, isr=()), PartitionChange(leader=2, isr=(2,))
    told = history(LED, gone, back, gone, PartitionChange(elr=(2,)), gone)
    assert offline_since_ms(told, SUBJECT, leader_epoch=4) == 4_000


def test_a_partition_that_is_led_is_not_offline() -> None:
    assert offline_since_ms(history(LED), SUBJECT, leader_epoch=0) is None


def test_a_log_that_is_behind_the_cluster_tells_nothing() -> None:
    told = history(LED, PartitionChange(leader=-1, isr=()))
    assert offline_since_ms(told, SUBJECT, leader_epoch=1) == 2_000
    assert offline_since_ms(told, SUBJECT, leader_epoch=3) is None


def test_a_snapshot_does_not_tell_when_it_was_lost() -> None:
    told = history(LOST, PartitionChange(elr=(2,)), batch=IN_SNAPSHOT)
    assert offline_since_ms(told, SUBJECT, leader_epoch=1) is None
    assert offline_already_ms(told, SUBJECT, leader_epoch=1) == 1_000, "it had none by then"
    assert offline_already_ms(told, SUBJECT, leader_epoch=2) is None


def test_what_had_a_leader_since_was_not_offline_all_the_time() -> None:
    back, gone = PartitionChange(leader=2, isr=(2,)), PartitionChange(leader=-1, isr=())
    told = history(LOST, back, gone, batch=IN_SNAPSHOT)
    assert offline_already_ms(told, SUBJECT, leader_epoch=3) is None
    assert offline_since_ms(told, SUBJECT, leader_epoch=3) == 3_000
    assert offline_already_ms(history(LOST), SUBJECT, leader_epoch=1) is None, "it was created so just then"


def test_a_partition_of_another_log_is_not_known() -> None:
    assert offline_since_ms(history(LED), PartitionSubject(TOPIC, 9), leader_epoch=0) is None
