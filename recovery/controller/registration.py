"""What the controller holds of a partition, and the record that changes it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from recovery.model import NO_LEADER

UNASSIGNED_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"
LOST_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAg"
MIGRATING_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


class LeaderRecoveryState(StrEnum):
    """RECOVERING from an unclean election until the new leader says that it is done."""

    RECOVERED = "RECOVERED"
    RECOVERING = "RECOVERING"


class Registration(NamedTuple):
    """One partition in the controller's metadata.

    ``replicas`` is in assignment order, adding and removing ones included while a reassignment runs.
    ``directories`` holds a directory id for each replica, or nothing where log directories are not tracked.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    directories: tuple[str, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def reassigning(self) -> bool:
        return bool(self.removing or self.adding)

    def directory(self, broker: int) -> str | None:
        """The directory id of the replica on ``broker``; None where it has none or directories are not tracked."""
        if not self.directories or broker not in self.replicas:
            return None
        return self.directories[self.replicas.index(broker)]


class PartitionChange(NamedTuple):
    """A change to one partition; None means "as before". A ``leader`` that is given, even the present one,
    starts a new leader epoch.
    """

    leader: int | None = None
    isr: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    leader_recovery_state: LeaderRecoveryState | None = None
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    directories: tuple[str, ...] | None = None


NO_CHANGE = PartitionChange()


def merge(partition: Registration, change: PartitionChange) -> Registration:
    """``partition`` after ``change``: the partition epoch rises by one, the leader epoch with every ``leader``."""
    return Registration(
        replicas=partition.replicas if change.replicas is None else change.replicas,
        isr=partition.isr if change.isr is None else change.isr,
        leader=partition.leader if change.leader is None else change.leader,
        leader_epoch=partition.leader_epoch + (change.leader is not None),
        partition_epoch=partition.partition_epoch + 1,
        elr=partition.elr if change.elr is None else change.elr,
        last_known_elr=partition.last_known_elr if change.last_known_elr is None else change.last_known_elr,
        leader_recovery_state=change.leader_recovery_state or partition.leader_recovery_state,
        removing=partition.removing if change.removing is None else change.removing,
        adding=partition.adding if change.adding is None else change.adding,
        directories=partition.directories if change.directories is None else change.directories,
    )


def added_by_leader(before: Registration, after: Registration, broker: int) -> bool:
    """Whether the change completes a reassignment that adds the broker, and so takes it into the ISR. Only the
    leader of ``before`` can have proposed it, as for any follower that has caught up, although the same change may
    begin a leader epoch, and elect the broker (PartitionChangeBuilder.completeReassignmentIfNeeded). A cancelled
    reassignment takes such replicas away, and an unclean election is RECOVERING.
    """
    completed = before.has_leader and broker in before.adding and not after.reassigning
    recovered = after.leader_recovery_state is LeaderRecoveryState.RECOVERED
    return completed and recovered and broker not in before.isr and broker in after.isr
