"""The facts about one partition by which its candidates are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.model import Lineage, ReplicaLog, Survey, Unknown, Why

NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The input of a verdict. Unknown is a value of its own, never a default.

    ``elr_enabled``: the feature ``eligible.leader.replicas.version``. ``unclean_elections``: the topic's effective
    ``unclean.leader.election.enable``. ``failed_disks`` are brokers whose log dir with this replica failed.
    ``compacted``: whether ``cleanup.policy`` contains compact. ``in_sync``: the partition's part of the metadata
    log.
    """

    survey: Survey
    elr_enabled: bool | Unknown = NOT_ASKED
    unclean_elections: bool | Unknown = NOT_ASKED
    failed_disks: frozenset[int] = frozenset()
    compacted: bool | Unknown = NOT_ASKED
    in_sync: InSyncHistory | Unknown = NOT_ASKED

    def known_logs(self) -> dict[int, ReplicaLog]:
        """The logs that can be compared, in assignment order: reported or read from a disk, with their epochs."""
        logs: dict[int, ReplicaLog] = {}
        for replica in self.survey.replicas:
            log = replica.log
            if has_epochs(log):
                logs[replica.broker] = log
        return logs


def has_epochs(log: ReplicaLog | Unknown) -> TypeGuard[ReplicaLog]:
    """Whether the log is known together with its epochs."""
    return isinstance(log, ReplicaLog) and isinstance(log.lineage, Lineage)
