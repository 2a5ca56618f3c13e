"""A metadata log for the tests of verdicts, and the verdicts that follow from it."""

from __future__ import annotations

from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.from_metadata_log import InSyncHistories
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import Verdict
from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, DecodedRecord
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    ResourceType,
    TopicRecord,
)
from recovery.model import ReplicaLog, Survey, Unknown
from tests.unit.recovery.surveys import SILENT, survey

SNAPSHOT_OFFSETS = 1_000
NOBODY_ANSWERED: dict[int, ReplicaLog | Unknown] = {1: SILENT, 2: SILENT, 3: SILENT}


class ControllerLog:
    """Writes a metadata log as an operator would tell it; one record a second.

    ``in_snapshot``: the creation is known from a snapshot only. Its records have offsets of their own, which say
    nothing about the offsets of the log.
    """

    def __init__(
        self,
        *,
        min_isr: int = 2,
        topic_min_isr: int | None = None,
        in_snapshot: bool = False,
        epoch: int = 0,
        recovering: bool = False,
        replicas_in_sync: tuple[int, ...] = (1, 2, 3),
    ) -> None:
        self._records: list[DecodedRecord] = []
        self._in_snapshot = in_snapshot
        self._starts: dict[int, int] = {}
        self.says(ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", str(min_isr)))
        for broker in (1, 2, 3):
            self.starts(broker)
        self.says(TopicRecord("t", "id"))
        if topic_min_isr is not None:
            self.says(ConfigRecord(ResourceType.TOPIC, "t", "min.insync.replicas", str(topic_min_isr)))
        partition = Registration((1, 2, 3), replicas_in_sync, 1, epoch)
        if recovering:
            partition = partition._replace(leader_recovery_state=LeaderRecoveryState.RECOVERING)
        self.says(PartitionRecord("id", 0, partition))
        self._in_snapshot = False

    def says(self, record: MetadataRecord) -> int:
        at = len(self._records)
        if self._in_snapshot:
            self._records.append(DecodedRecord(at + SNAPSHOT_OFFSETS, at * 1000, IN_SNAPSHOT, record))
        else:
            self._records.append(DecodedRecord(at, at * 1000, at, record))
        return at * 1000

    def starts(self, broker: int, dirs: tuple[str, ...] = ()) -> None:
        self._starts[broker] = number = self._starts.get(broker, 0) + 1
        process = f"{broker}-{number}"
        self.says(RegisterBrokerRecord(broker, len(self._records), process, (), None, False, False, dirs))

    def shuts_down(self, broker: int) -> None:
        self.says(BrokerRegistrationChangeRecord(broker, 0, in_controlled_shutdown=True))

    def fences(self, broker: int, change: PartitionChange) -> None:
        """One batch: the partition's change, then the broker's."""
        at = len(self._records)
        for record in (
            PartitionChangeRecord("id", 0, change),
            BrokerRegistrationChangeRecord(broker, 0, fenced=True),
        ):
            number = len(self._records)
            self._records.append(DecodedRecord(number, number * 1000, at, record))

    def isr(self, *isr: int, leader: int | None = None, recovering: bool = False) -> int:
        state = LeaderRecoveryState.RECOVERING if recovering else None
        return self.changes(PartitionChange(leader=leader, isr=isr, leader_recovery_state=state))

    def changes(self, change: PartitionChange) -> int:
        return self.says(PartitionChangeRecord("id", 0, change))

    def min_isr(self, value: int) -> None:
        self.says(ConfigRecord(ResourceType.TOPIC, "t", "min.insync.replicas", str(value)))

    def folded(self) -> MetadataHistory:
        history = MetadataHistory()
        history.extend_decoded(self._records)
        return history

    def facts(self, logs: dict[int, ReplicaLog | Unknown], min_isr: int = 2) -> PartitionFacts:
        history = self.folded()
        registration = history.intervals(next(history.partitions()))[-1].registration
        found = survey(logs, isr=registration.isr, elr=None, last_known_elr=None)
        state = found.state._replace(leader_epoch=registration.leader_epoch, leader=registration.leader)
        surveyed = Survey(state, found.replicas, min_isr)
        return PartitionFacts(surveyed, compacted=False, in_sync=InSyncHistories(history).of(surveyed))

    def history(self, logs: dict[int, ReplicaLog | Unknown] | None = None) -> InSyncHistory:
        found = self.facts(NOBODY_ANSWERED if logs is None else logs).in_sync
        assert isinstance(found, InSyncHistory)
        return found

    def verdict(self, broker: int, logs: dict[int, ReplicaLog | Unknown]) -> Verdict:
        return partition_verdicts(self.facts(logs)).candidates[broker]
