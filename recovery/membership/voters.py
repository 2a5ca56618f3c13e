"""Voter sets as values: keys, majorities, and sets that differ by one voter (KIP-853, "Key terms")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ReplicaKey(NamedTuple):
    """A controller by node id and the directory id of its metadata log; "" where the directory is not known."""

    id: int
    directory_id: str = ""

    def __str__(self) -> str:
        return f"{self.id}-{self.directory_id}" if self.directory_id else str(self.id)


class VoterEndpoint(NamedTuple):
    """Where a voter listens."""

    listener: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """``host:port``, as settings name it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.listener}://{self.host}:{self.port}"


class Voter(NamedTuple):
    """A voter with its endpoints and the kraft.version range (lowest, highest) that it supports."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_versions: tuple[int, int] = (0, 1)

    def matches(self, key: ReplicaKey) -> bool:
        """Whether ``key`` is this voter. One that was configured without a directory id goes by its node id."""
        if self.key.id != key.id:
            return False
        return not self.key.directory_id or self.key.directory_id == key.directory_id

    def supports(self, kraft_version: int) -> bool:
        lowest, highest = self.kraft_versions
        return lowest <= kraft_version <= highest


class VoterSet(NamedTuple):
    """The voters, in the order they were listed."""

    voters: tuple[Voter, ...]

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple(voter.key for voter in self.voters)

    @property
    def majority(self) -> int:
        """How many voters commit a record and elect a leader."""
        return len(self.voters) // 2 + 1

    @property
    def failures_tolerated(self) -> int:
        """How many voters may fail while the others still commit."""
        return len(self.voters) - self.majority

    def find(self, key: ReplicaKey) -> Voter | None:
        """The voter that ``key`` is, or None."""
        return next((voter for voter in self.voters if voter.matches(key)), None)

    def has_id(self, node_id: int) -> bool:
        return any(voter.key.id == node_id for voter in self.voters)

    def plus(self, voter: Voter) -> VoterSet:
        return VoterSet((*self.voters, voter))

    def minus(self, key: ReplicaKey) -> VoterSet:
        """The set without the voter of exactly this key."""
        return VoterSet(tuple(voter for voter in self.voters if voter.key != key))

    def updated(self, old: Voter, new: Voter) -> VoterSet:
        return VoterSet(tuple(new if voter is old else voter for voter in self.voters))


def majorities_overlap(one: VoterSet, other: VoterSet) -> bool:
    """Whether every majority of ``one`` shares a voter with every majority of ``other``.

    It is what keeps two leaders from committing different records. One voter added or removed always leaves an
    overlap; one replaced by another at once does not where the number of voters is odd.
    """
    before, after = set(one.keys), set(other.keys)
    # Two majorities that share as little as they can take the voters of their own set first.
    from_shared = max(0, one.majority - len(before - after)) + max(0, other.majority - len(after - before))
    return from_shared > len(before & after)


def high_watermark(voters: VoterSet, log_end_offsets: Mapping[ReplicaKey, int]) -> int:
    """The offset below which a majority of ``voters`` holds everything; 0 for a voter that has not fetched.

    A leader that is no voter any more does not count (KIP-853, "Removing the leader").
    """
    ends = sorted((log_end_offsets.get(key, 0) for key in voters.keys), reverse=True)
    return ends[voters.majority - 1]
