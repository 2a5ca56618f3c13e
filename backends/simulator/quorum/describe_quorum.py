"""DescribeQuorum v2 as the leader answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recovery.membership.quorum import FetchProgress, Quorum, described
from recovery.membership.voters import ReplicaKey

if TYPE_CHECKING:
    from backends.simulator.quorum.fetch_progress import ReplicaProgress
    from backends.simulator.quorum.raft_replica import RaftReplica


def describe(replica: RaftReplica) -> Quorum:
    """Times are milliseconds since the start of the run; the leader's own are now, as Kafka's are.

    There is no high watermark until a record of the leader's epoch is committed. Only the leader is asked.
    """
    leading = replica.leading
    assert leading is not None
    now = replica.shared.now_ms()
    progress = [
        FetchProgress(voter.key, replica.log.end, now, now)
        if voter.matches(replica.key)
        else _shown(voter.key, leading.followers.of(voter))
        for voter in replica.voters.voters
    ]
    progress += [_shown(key, held) for key, held in leading.followers.observers(replica.voters)]
    known = replica.high_watermark if leading.announced else None
    return described(
        replica.shared.cluster_id,
        replica.voters,
        progress,
        leader_id=replica.id,
        leader_epoch=replica.epoch,
        high_watermark=-1 if known is None else known,
    )


def _shown(key: ReplicaKey, held: ReplicaProgress | None) -> FetchProgress:
    if held is None:
        return FetchProgress(key, -1)
    return FetchProgress(key, held.offset, _ms(held.fetched), _ms(held.caught_up))


def _ms(time: int | None) -> int:
    return -1 if time is None else time // 1000
