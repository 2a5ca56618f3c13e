"""The rows that ``watch`` writes of what a log reported."""

from __future__ import annotations

from datetime import UTC, date, datetime

from pipeline.watch.incident_rows import event_rows, incident_rows
from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.incident_fold import FoldState, IncidentFold, LogGap
from recovery.metadata_log.log_changes import MetadataLogRecord
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
)

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAQg"
NIGHT = 1_769_903_999_999
"""The last millisecond of 2026-01-31, UTC."""


def reported(*batches: list[MetadataRecord]) -> IncidentFold:
    """One batch a millisecond, the second at NIGHT."""
    fold = IncidentFold(FoldState())
    offset = 0
    for number, batch in enumerate(batches):
        values = enumerate(map(encode, batch), offset)
        fold.extend(MetadataLogRecord(at, NIGHT - 1 + number, offset, value) for at, value in values)
        offset += len(batch)
    return fold


def test_an_outage_has_a_row_for_each_change_with_its_state_and_its_cause() -> None:
    fold = reported(
        [TopicRecord("t", TOPIC_ID), PartitionRecord(TOPIC_ID, 3, Registration((1, 2), (1,), 1, elr=(2,)))],
        [
            PartitionChangeRecord(TOPIC_ID, 3, PartitionChange(leader=-1, isr=(), elr=(2, 1))),
            BrokerRegistrationChangeRecord(1, 9, fenced=True),
        ],
        [ConfigRecord(ResourceType.TOPIC, "t", "min.insync.replicas", "2"), RemoveTopicRecord(TOPIC_ID)],
    )
    rows = event_rows("c", fold.moments, [LogGap(5, 7, NIGHT + 2)]).to_pylist()
    offline, deleted, fenced, configured, gap = rows
    nothing = dict.fromkeys(offline)
    of_partition = {
        "cluster_id": "c",
        "cluster_name": "c",
        "incident": f"{TOPIC_ID}/3/2",
        "topic": "t",
        "topic_id": TOPIC_ID,
    }
    at = datetime(2026, 1, 31, 23, 59, 59, 999_000, UTC)
    assert offline == nothing | of_partition | {
        "day": date(2026, 1, 31),
        "at": at,
        "offset": 2,
        "batch": 2,
        "kind": "offline",
        "partition": 3,
        "leader": -1,
        "leader_epoch": 1,
        "isr": [],
        "elr": [2, 1],
        "last_known_elr": [],
        "leader_recovery_state": "RECOVERED",
        "replicas": [1, 2],
        "broker": 1,
        "cause": "broker fenced",
    }
    midnight = {"day": date(2026, 2, 1), "at": datetime(2026, 2, 1, tzinfo=UTC)}
    # Of a partition that is gone no state is known, nor a min ISR: the topic's value goes with its id.
    assert deleted == nothing | of_partition | midnight | {
        "offset": 5,
        "batch": 4,
        "kind": "partition deleted",
        "partition": 3,
    }
    assert (fenced["kind"], fenced["broker"], fenced["at"], fenced["offset"]) == ("broker fenced", 1, at, 3)
    assert (configured["topic"], configured["min_isr"], configured["offset"]) == ("t", 2, 4)
    assert (gap["kind"], gap["offset"], gap["at"].microsecond) == ("gap in the log", 7, 1000)


def test_a_partition_that_was_offline_for_less_than_a_millisecond_was_offline() -> None:
    led = Registration((1, 2), (1,), 1)
    gone = PartitionChange(leader=-1, isr=())
    elected = PartitionChange(leader=2, isr=(2,))
    kinds = []
    for changes in ([gone, elected], [elected]):
        records = [PartitionChangeRecord(TOPIC_ID, 3, change) for change in changes]
        written: list[MetadataRecord] = [
            TopicRecord("t", TOPIC_ID),
            PartitionRecord(TOPIC_ID, 3, led),
            *records,
        ]
        fold = IncidentFold(FoldState())
        fold.extend(MetadataLogRecord(at, NIGHT, at, value) for at, value in enumerate(map(encode, written)))
        (row,) = incident_rows("c", fold.ended).to_pylist()
        assert row["since"] == row["until"] and row["outcome"] == "unclean election"
        assert row["offline_s"] == 0.0
        kinds.append(row["kind"])
    assert kinds == ["offline", "unclean election"]
