"""The state of one replica of the metadata log, the changes that its roles may make, and what the roles share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from backends.simulator.quorum.metadata_disk import MetadataDisk
from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_log import LogRecord
from backends.simulator.quorum.raft_messages import QuorumLeader
from backends.simulator.rpc import RpcEndpoint
from recovery.membership.raft_votes import RaftRole
from recovery.membership.voters import ReplicaKey, Voter, VoterSet


class RaftState:
    """One replica while its process runs. The disk with its log survives the process; the rest does not.

    ``leader`` is whom the replica believes to lead. ``high_watermark`` is None until the replica has heard of one.
    ``fetched``: it has fetched from ``leader`` in this epoch (KIP-996).
    """

    def __init__(self, disk: MetadataDisk) -> None:
        self.disk = disk
        self.log = disk.log
        self.key = disk.key
        self.id = disk.key.id
        self.role = RaftRole.UNATTACHED
        self.leader: QuorumLeader | None = None
        # Everything in a snapshot is committed.
        self.high_watermark: int | None = disk.log.start or None
        self.fetched = False
        self.closed = False
        self._split_of: VoterSet | None = None
        self._own: Voter | None = None
        self._others: tuple[Voter, ...] = ()

    @property
    def epoch(self) -> int:
        return self.disk.epoch

    @property
    def voters(self) -> VoterSet:
        """The set in force, as this replica has read it."""
        return self.log.voters

    @property
    def is_voter(self) -> bool:
        return self.own is not None

    @property
    def own(self) -> Voter | None:
        """This replica in the set in force, None where it is not in it."""
        self._split_voters()
        return self._own

    @property
    def others(self) -> tuple[Voter, ...]:
        """The other voters in force."""
        self._split_voters()
        return self._others

    def _split_voters(self) -> None:
        voters = self.log.voters
        if voters is not self._split_of:
            self._split_of = voters
            self._own = voters.find(self.key)
            self._others = tuple(voter for voter in voters.voters if not voter.matches(self.key))


class MetadataLogListener(Protocol):
    """How a replica of the log notifies its controller."""

    def lead(self, epoch: int, last: Any | None) -> None:
        """This controller leads ``epoch`` and may append. ``last`` is the newest payload of its log, None in an
        empty one. Its whole log is committed by then.
        """
        ...

    def resign(self) -> None:
        """This controller no longer leads; its uncommitted payloads may be lost."""
        ...

    def halt(self) -> None:
        """The disk of the log failed: the process must end."""
        ...


class RoleChanges(Protocol):
    """The transitions between the roles of one replica (KIP-595)."""

    def become_unattached(self, epoch: int, voted: ReplicaKey | None = None) -> None:
        """In ``epoch`` without a leader; with ``voted`` this replica has given its vote."""
        ...

    def become_resigned(self, successors: Iterable[ReplicaKey], why: str) -> None:
        """Give up the leadership, and tell the voters (EndQuorumEpoch)."""
        ...

    def follow(self, epoch: int, leader: QuorumLeader) -> None:
        """Fetch from ``leader``."""
        ...

    def stand(self, role: RaftRole) -> None:
        """Begin an election: a prospective node asks the voters whether they would vote for it (PreVote), a
        candidate asks for their votes.
        """
        ...

    def won(self) -> None:
        """A majority has voted for this replica."""
        ...

    def observe_epoch(self, epoch: int, leader: QuorumLeader | None) -> bool:
        """What an answer tells of the epoch; True where the replica changes its role for it."""
        ...


class LogWriter(Protocol):
    """Writes to the metadata log on this replica's disk."""

    def write(self, entries: Iterable[LogRecord]) -> bool:
        """Append and flush; False where the disk fails, which ends the process."""
        ...

    def fail(self) -> None:
        """The disk has failed: end the process."""
        ...


class RaftParts(NamedTuple):
    """A replica's state, its quorum's context, its network, and the changes that its roles may make."""

    state: RaftState
    context: QuorumContext
    endpoint: RpcEndpoint
    roles: RoleChanges
    writer: LogWriter
