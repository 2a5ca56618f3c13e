"""Voter changes (KIP-853): the leader's checks in Kafka's order, and how a written change ends."""

from __future__ import annotations

from typing import NamedTuple

from recovery.membership.quorum import (
    MembershipRules,
    Quorum,
    RaftError,
    TimeoutCause,
    VoterChangeRefusal,
    caught_up,
    timed_out,
)
from recovery.membership.voters import ReplicaKey, Voter, VoterSet


class VersionsProbe(NamedTuple):
    """What the leader's ApiVersions to the new voter brings: ``answered`` without an error, and the range of
    kraft.version (lowest, highest), None where the answer does not name it.
    """

    answered: bool
    kraft_versions: tuple[int, int] | None = (0, 1)


class AddVoter(NamedTuple):
    """``cluster_id`` is None where the request leaves it out."""

    voter: Voter
    cluster_id: str | None = None


class RemoveRaftVoter(NamedTuple):
    """``cluster_id`` is None where the request leaves it out."""

    key: ReplicaKey
    cluster_id: str | None = None


class UpdateRaftVoter(NamedTuple):
    """A voter's own request, with the leader epoch it knows."""

    voter: Voter
    leader_epoch: int
    cluster_id: str | None = None


def add_voter(
    quorum: Quorum, request: AddVoter, probe: VersionsProbe, rules: MembershipRules, *, to_leader: bool = True
) -> VoterSet | VoterChangeRefusal:
    """The set with the voter added, to be committed by a majority of it, or the first check that fails."""
    voter = request.voter
    refusal = (
        _addressed(quorum, request.cluster_id, to_leader)
        or _named(voter.key)
        or _listening(quorum, voter)
        or _ready(quorum)
        or _reconfigurable(quorum)
        or _settled(quorum)
        or _not_duplicate(quorum, voter.key, rules)
        or _new_voter_fit(quorum, voter.key, probe)
    )
    return quorum.voters.plus(voter) if refusal is None else refusal


def remove_voter(
    quorum: Quorum, request: RemoveRaftVoter, *, to_leader: bool = True
) -> VoterSet | VoterChangeRefusal:
    """The set without the voter, to be committed by a majority of it, or the first check that fails.

    The id and the directory id must both be right, and the last voter cannot be removed.
    """
    refusal = (
        _addressed(quorum, request.cluster_id, to_leader)
        or _named(request.key)
        or _ready(quorum)
        or _reconfigurable(quorum)
        or _settled(quorum)
    )
    if refusal is not None:
        return refusal
    if request.key not in quorum.voters.keys or len(quorum.voters.voters) == 1:
        return _not_found(quorum, request.key)
    return quorum.voters.minus(request.key)


def update_voter(
    quorum: Quorum, request: UpdateRaftVoter, rules: MembershipRules, *, to_leader: bool = True
) -> VoterSet | VoterChangeRefusal:
    """The set with the voter's new endpoints and versions, or the first check that fails.

    Before kraft.version 1 the leader only keeps it in memory, by node id.
    """
    voter = request.voter
    refusal = (
        _cluster(quorum, request.cluster_id)
        or _epoch(quorum, request.leader_epoch)
        or _leads(to_leader)
        or _named(voter.key)
        or _listening(quorum, voter)
        or _range_valid(voter)
        or _ready(quorum)
        or (None if rules.update_at_version_0 else _reconfigurable(quorum))
        or (_settled(quorum) if quorum.kraft_version >= 1 else None)
        or _supports(quorum, voter.key, voter.kraft_versions)
    )
    if refusal is not None:
        return refusal
    by_id = quorum.kraft_version < 1
    recorded = next(
        (
            known
            for known in quorum.voters.voters
            if (known.key.id == voter.key.id if by_id else known.matches(voter.key))
        ),
        None,
    )
    return _not_found(quorum, voter.key) if recorded is None else quorum.voters.updated(recorded, voter)


def _addressed(quorum: Quorum, cluster_id: str | None, to_leader: bool) -> VoterChangeRefusal | None:
    return _cluster(quorum, cluster_id) or _leads(to_leader)


def _cluster(quorum: Quorum, cluster_id: str | None) -> VoterChangeRefusal | None:
    if cluster_id is None or cluster_id == quorum.cluster_id:
        return None
    return VoterChangeRefusal(
        RaftError.INCONSISTENT_CLUSTER_ID, f"the cluster is {quorum.cluster_id}, not {cluster_id!r}"
    )


def _epoch(quorum: Quorum, leader_epoch: int) -> VoterChangeRefusal | None:
    if leader_epoch == quorum.leader_epoch:
        return None
    old = leader_epoch < quorum.leader_epoch
    error = RaftError.FENCED_LEADER_EPOCH if old else RaftError.UNKNOWN_LEADER_EPOCH
    return VoterChangeRefusal(error, f"the leader epoch is {quorum.leader_epoch}, not {leader_epoch}")


def _leads(to_leader: bool) -> VoterChangeRefusal | None:
    if to_leader:
        return None
    return VoterChangeRefusal(
        RaftError.NOT_LEADER_OR_FOLLOWER, "the request went to a controller that is not the leader"
    )


def _named(key: ReplicaKey) -> VoterChangeRefusal | None:
    if key.directory_id:
        return None
    return VoterChangeRefusal(RaftError.INVALID_REQUEST, f"voter {key} has no directory id")


def _listening(quorum: Quorum, voter: Voter) -> VoterChangeRefusal | None:
    if any(endpoint.listener == quorum.default_listener for endpoint in voter.endpoints):
        return None
    return VoterChangeRefusal(
        RaftError.INVALID_REQUEST, f"voter {voter.key} has no endpoint for {quorum.default_listener}"
    )


def _range_valid(voter: Voter) -> VoterChangeRefusal | None:
    lowest, highest = voter.kraft_versions
    if 0 <= lowest <= highest:
        return None
    return VoterChangeRefusal(
        RaftError.INVALID_REQUEST, f"{lowest} to {highest} is no range of kraft.version"
    )


def _ready(quorum: Quorum) -> VoterChangeRefusal | None:
    if quorum.change_pending:
        return timed_out(TimeoutCause.CHANGE_PENDING)
    if quorum.high_watermark is None:
        return timed_out(TimeoutCause.NO_HIGH_WATERMARK)
    return None


def _reconfigurable(quorum: Quorum) -> VoterChangeRefusal | None:
    if quorum.kraft_version >= 1:
        return None
    return VoterChangeRefusal(
        RaftError.UNSUPPORTED_VERSION, f"kraft.version is {quorum.kraft_version}: the voters are static"
    )


def _settled(quorum: Quorum) -> VoterChangeRefusal | None:
    if quorum.voters_committed:
        return None
    return timed_out(
        TimeoutCause.CHANGE_PENDING, f"the VotersRecord at {quorum.voters_offset} is not committed"
    )


def _not_duplicate(quorum: Quorum, key: ReplicaKey, rules: MembershipRules) -> VoterChangeRefusal | None:
    known = quorum.voters.find(key) is not None
    if not known and (rules.duplicate_ids or not quorum.voters.has_id(key.id)):
        return None
    return VoterChangeRefusal(
        RaftError.DUPLICATE_VOTER, f"node {key.id} is a voter: remove it before adding {key}"
    )


def _new_voter_fit(quorum: Quorum, key: ReplicaKey, probe: VersionsProbe) -> VoterChangeRefusal | None:
    if not probe.answered:
        return timed_out(TimeoutCause.UNREACHABLE, str(key))
    refusal = _supports(quorum, key, probe.kraft_versions)
    if refusal is not None:
        return refusal
    if key == quorum.leader:
        return timed_out(TimeoutCause.LEADS, str(key))  # Kafka's leader keeps no progress of its own
    if not caught_up(quorum.progress_of(key), quorum.now_ms):
        return timed_out(TimeoutCause.LAGGING, str(key))
    return None


def _supports(
    quorum: Quorum, key: ReplicaKey, kraft_versions: tuple[int, int] | None
) -> VoterChangeRefusal | None:
    if kraft_versions is not None and Voter(key, (), kraft_versions).supports(quorum.kraft_version):
        return None
    return VoterChangeRefusal(
        RaftError.INVALID_REQUEST, f"{key} does not support kraft.version {quorum.kraft_version}"
    )


def _not_found(quorum: Quorum, key: ReplicaKey) -> VoterChangeRefusal:
    voters = ", ".join(map(str, quorum.voters.keys))
    return VoterChangeRefusal(RaftError.VOTER_NOT_FOUND, f"{key} cannot be taken from the voters {voters}")


def auto_join_request(voters: VoterSet, own: Voter) -> RemoveRaftVoter | AddVoter | None:
    """The next request of a controller that is not a voter: its old disk is removed first, then it adds itself.

    None for one that is a voter. Hence a controller that is to be removed must be stopped first.
    """
    if voters.find(own.key) is not None:
        return None
    old = next((key for key in voters.keys if key.id == own.key.id), None)
    return AddVoter(own) if old is None else RemoveRaftVoter(old)


class PendingChange(NamedTuple):
    """A written voter set, which is in force already, the offset of its record, and the request's deadline."""

    voters: VoterSet
    offset: int
    deadline_ms: int


class SettledChange(NamedTuple):
    """``refusal`` is None for a committed change."""

    refusal: VoterChangeRefusal | None


def settle(
    pending: PendingChange, high_watermark: int | None, now_ms: int, *, leads: bool = True
) -> SettledChange | None:
    """The answer to the request now, or None while it has to wait.

    A change that timed out is in the log and may still be committed: look at the voters before sending it again.
    """
    if not leads:
        return SettledChange(
            VoterChangeRefusal(
                RaftError.NOT_LEADER_OR_FOLLOWER, "the leader lost its leadership before the change committed"
            )
        )
    if high_watermark is not None and high_watermark > pending.offset:
        return SettledChange(None)
    if now_ms >= pending.deadline_ms:
        return SettledChange(timed_out(TimeoutCause.NOT_COMMITTED))
    return None
