"""DescribeQuorum's answer as the rules of a voter set take it."""

from __future__ import annotations

from backends.base.answers import Quorum as Described
from backends.base.answers import QuorumReplica
from recovery.membership.quorum import FetchProgress, Quorum
from recovery.membership.voters import Endpoint, ReplicaKey, Voter, VoterSet


def as_rules(found: Described, cluster_id: str, kraft_version: int) -> Quorum:
    """The quorum. The leader's own fetch time is its clock."""
    endpoints: dict[int, tuple[Endpoint, ...]] = {}
    for at in found.endpoints:
        endpoints[at.voter] = (*endpoints.get(at.voter, ()), Endpoint(at.listener, at.host, at.port))
    voters = tuple(Voter(_key(v), endpoints.get(v.id, ())) for v in found.voters)
    leader = next((v for v in (*found.voters, *found.observers) if v.id == found.leader), None)
    listeners = [e[0].listener for e in endpoints.values() if e]
    return Quorum(
        cluster_id=cluster_id,
        leader=_key(leader) if leader is not None else ReplicaKey(found.leader),
        leader_epoch=found.leader_epoch,
        voters=VoterSet(voters),
        high_watermark=found.high_watermark if found.high_watermark >= 0 else None,
        log_end_offset=leader.log_end_offset if leader is not None else found.high_watermark,
        now_ms=_clock(found, leader),
        progress=tuple(
            FetchProgress(_key(r), r.log_end_offset, r.last_fetch_ms, r.last_caught_up_ms)
            for r in (*found.voters, *found.observers)
        ),
        kraft_version=kraft_version,
        default_listener=listeners[0] if listeners else "CONTROLLER",
    )


def _clock(found: Described, leader: QuorumReplica | None) -> int:
    if leader is not None and leader.last_fetch_ms > 0:
        return leader.last_fetch_ms
    return max((r.last_fetch_ms for r in (*found.voters, *found.observers)), default=-1)


def _key(replica: QuorumReplica) -> ReplicaKey:
    return ReplicaKey(replica.id, replica.directory_id or "")
