"""DescribeQuorum v2 as the leader answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.base.answers import Quorum, QuorumReplica, VoterEndpoint

if TYPE_CHECKING:
    from backends.simulator.quorum.fetch_progress import ReplicaProgress
    from backends.simulator.quorum.raft_replica import RaftReplica


def describe(replica: RaftReplica) -> Quorum:
    """Times are milliseconds since the start of the run; the leader's own are now, as Kafka's are.

    The high watermark is -1 until a record of the leader's epoch is committed. Only the leader is asked.
    """
    leading = replica.leading
    assert leading is not None
    now = replica.shared.now_ms()
    voters = []
    for voter in replica.voters.voters:
        directory = voter.key.directory_id or None
        if voter.matches(replica.key):
            voters.append(QuorumReplica(voter.key.id, directory, replica.log.end, now, now))
        else:
            voters.append(_shown(voter.key.id, directory, leading.followers.of(voter)))
    observers = [
        _shown(key.id, key.directory_id or None, held)
        for key, held in leading.followers.observers(replica.voters)
    ]
    endpoints = tuple(
        VoterEndpoint(voter.key.id, endpoint.listener, endpoint.host, endpoint.port)
        for voter in replica.voters.voters
        for endpoint in voter.endpoints
    )
    known = replica.high_watermark if leading.announced else None
    return Quorum(
        replica.id,
        replica.epoch,
        -1 if known is None else known,
        tuple(voters),
        tuple(observers),
        endpoints,
    )


def _shown(number: int, directory: str | None, held: ReplicaProgress | None) -> QuorumReplica:
    if held is None:
        return QuorumReplica(number, directory, -1, -1, -1)
    return QuorumReplica(number, directory, held.offset, _ms(held.fetched), _ms(held.caught_up))


def _ms(time: int | None) -> int:
    return -1 if time is None else time // 1000
