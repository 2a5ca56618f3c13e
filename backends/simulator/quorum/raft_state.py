"""The state of one replica of the metadata log."""

from __future__ import annotations

from backends.simulator.quorum.metadata_disk import MetadataDisk
from backends.simulator.quorum.raft_messages import QuorumLeader
from recovery.membership.raft_votes import RaftRole
from recovery.membership.voters import Voter, VoterSet


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
