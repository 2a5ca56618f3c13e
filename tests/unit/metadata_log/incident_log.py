"""The metadata log of a real incident, as a broker's disk held it: the stale long tail on Kafka 4.3.1.

Topic orders, replicas 1, 2, 3, min ISR 2. Brokers 2 and 3 are killed; 1 leads alone and is killed; 2 is elected
uncleanly; 3 follows it; 2 is killed, 3 leads and is killed; 1 and 2 come back and nobody leads.
"""

from __future__ import annotations

from pathlib import Path

from backends.metadata_log.directory import DirectoryReading, read_directory
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import MetadataLogRecord
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import ClusterEvent, events

INCIDENT = Path(__file__).with_name("stale_long_tail")


def read(path: Path) -> tuple[list[MetadataLogRecord], DirectoryReading]:
    reading = DirectoryReading(path)
    return list(read_directory(reading)), reading


def find(history: MetadataHistory, kind: EventKind) -> list[ClusterEvent]:
    return [event for event in events(history) if event.kind is kind]
