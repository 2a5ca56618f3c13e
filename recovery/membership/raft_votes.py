"""Elections of the quorum's leader by voter key: who votes for whom (KIP-595, KIP-853 "Vote", KIP-996 pre-vote)."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from recovery.membership.quorum import RaftError
from recovery.membership.voters import ReplicaKey, VoterSet


class RaftRole(StrEnum):
    """What a replica is in its epoch."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    FOLLOWER = "follower"
    LEADER = "leader"
    RESIGNED = "resigned"


class RaftLogEnd(NamedTuple):
    """Where a log ends: its last epoch, then its end offset. It compares as logs do."""

    epoch: int
    offset: int


class Elector(NamedTuple):
    """A replica that is asked for its vote. ``voted`` is its vote in ``epoch``; ``leader_known`` and
    ``fetched`` tell that it knows that epoch's leader and has fetched from it.
    """

    key: ReplicaKey
    cluster_id: str
    epoch: int
    log_end: RaftLogEnd
    role: RaftRole = RaftRole.UNATTACHED
    voted: ReplicaKey | None = None
    leader_known: bool = False
    fetched: bool = False


class VoteRequest(NamedTuple):
    """``voter`` is whom the request is meant for; None in versions that do not say."""

    candidate: ReplicaKey
    epoch: int
    log_end: RaftLogEnd
    cluster_id: str | None = None
    voter: ReplicaKey | None = None
    pre_vote: bool = False


class Vote(NamedTuple):
    """The answer, and the replica afterwards: a newer epoch is taken over even where the vote is refused."""

    granted: bool
    elector: Elector
    error: RaftError | None = None


def vote(elector: Elector, request: VoteRequest) -> Vote:
    """How ``elector`` answers. Neither has to be in the other's voter set, which may be out of date (KIP-853)."""
    error = _malformed(elector, request)
    if error is not None:
        return Vote(False, elector, error)
    if request.epoch > elector.epoch:
        elector = elector._replace(
            epoch=request.epoch, role=RaftRole.UNATTACHED, voted=None, leader_known=False, fetched=False
        )
    if request.voter is not None and not _meant(elector.key, request.voter):
        return Vote(False, elector, RaftError.INVALID_VOTER_KEY)
    granted = _grants(elector, request)
    if granted and not request.pre_vote:
        elector = elector._replace(voted=request.candidate)
    return Vote(granted, elector)


def _malformed(elector: Elector, request: VoteRequest) -> RaftError | None:
    if request.cluster_id not in (None, elector.cluster_id):
        return RaftError.INCONSISTENT_CLUSTER_ID
    last_epoch, end = request.log_end
    # A candidate has raised its epoch above every record it holds; a prospective one has not yet.
    newest = request.epoch if request.pre_vote else request.epoch - 1
    if end < 0 or not 0 <= last_epoch <= newest:
        return RaftError.INVALID_REQUEST
    if request.epoch < elector.epoch:
        return RaftError.FENCED_LEADER_EPOCH
    return RaftError.INVALID_REQUEST if request.candidate.id < 0 else None


def _meant(key: ReplicaKey, meant: ReplicaKey) -> bool:
    return key.id == meant.id and meant.directory_id in ("", key.directory_id)


def _grants(elector: Elector, request: VoteRequest) -> bool:
    up_to_date = request.log_end >= elector.log_end
    if elector.role is RaftRole.LEADER:
        return False
    if elector.role is RaftRole.FOLLOWER:
        return request.pre_vote and not elector.fetched and up_to_date
    if request.pre_vote:
        return up_to_date
    if elector.role in (RaftRole.CANDIDATE, RaftRole.RESIGNED):
        return False
    if elector.voted is not None:
        return _meant(request.candidate, elector.voted)
    return up_to_date and not elector.leader_known


class VoteTally(StrEnum):
    """The current result of an election."""

    WON = "won"
    LOST = "lost"
    OPEN = "open"


def tally(
    voters: VoterSet, granted: Collection[ReplicaKey], refused: Collection[ReplicaKey] = ()
) -> VoteTally:
    """The result of an election so far. ``voters`` are those that the candidate knows: it needs a majority of them,
    and votes of other replicas do not count.
    """
    won = sum(voters.find(key) is not None for key in set(granted))
    lost = sum(voters.find(key) is not None for key in set(refused))
    if won >= voters.majority:
        return VoteTally.WON
    return VoteTally.LOST if len(voters.voters) - lost < voters.majority else VoteTally.OPEN
