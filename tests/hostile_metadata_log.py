"""A metadata log in which every name is one text, as a cluster or a damaged disk may hold it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from backends.metadata_log.batch_writer import data_batch
from recovery.controller.registration import PartitionChange, Registration
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
)

TIME_MS = 1_767_225_600_000
_FIRST, _SECOND = "B" * 21 + "A", "C" * 21 + "A"
_UNKNOWN_RESOURCE = 99


def write_hostile_log(directory: Path, text: str) -> Path:
    """Every kind of record that has a name, and one event for each: of two topics whose names begin with the text,
    one loses its leader and one is deleted. Returns the directory.
    """
    endpoint = Endpoint(text, text, 9092)
    led = Registration((1, 2), (1, 2), 1)
    records: list[MetadataRecord] = [
        FeatureLevelRecord(text, 1),
        RegisterControllerRecord(100, _FIRST, (endpoint,)),
        RegisterBrokerRecord(1, 2, _FIRST, (endpoint,), text, False, False, ()),
        TopicRecord(text, _FIRST),
        TopicRecord(f"{text}-2", _SECOND),
        PartitionRecord(_FIRST, 0, led),
        PartitionRecord(_FIRST, 1, led),
        PartitionRecord(_SECOND, 0, led),
        *(ConfigRecord(kind, text, text, text) for kind in (*ResourceType, _UNKNOWN_RESOURCE)),
        PartitionChangeRecord(_FIRST, 0, PartitionChange(leader=-1, isr=(1,))),
        PartitionChangeRecord(_FIRST, 1, PartitionChange(leader=2, isr=(2,))),
        RemoveTopicRecord(_SECOND),
    ]
    return write_log(directory, records)


def write_log(directory: Path, records: Iterable[MetadataRecord]) -> Path:
    """One batch a record, a millisecond apart. Returns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    batches = (data_batch(at, 1, TIME_MS + at, [encode(record)]) for at, record in enumerate(records))
    (directory / "00000000000000000000.log").write_bytes(b"".join(batches))
    return directory
