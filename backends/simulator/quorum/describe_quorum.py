"""DescribeQuorum v2 as the leader answers it."""

from __future__ import annotations

from backends.simulator.quorum.fetch_progress import ReplicaProgress
from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_leader import RaftLeader
from backends.simulator.quorum.raft_state import RaftState
from recovery.membership.quorum import Quorum, QuorumReplica, described
from recovery.membership.voters import ReplicaKey


def describe(state: RaftState, context: QuorumContext, leader: RaftLeader) -> Quorum:
    """Times are ms since the start of the run; the leader's own are now, as in Kafka.

    There is no high watermark before a record of the leader's epoch is committed.
    """
    now = context.now_ms()
    progress = [
        QuorumReplica(voter.key, state.log.end, now, now)
        if voter.matches(state.key)
        else _shown(voter.key, leader.progress.of(voter))
        for voter in state.voters.voters
    ]
    progress += [_shown(key, fetched) for key, fetched in leader.progress.observers(state.voters)]
    known = state.high_watermark if leader.announced else None
    return described(
        context.cluster_id,
        state.voters,
        progress,
        leader_id=state.id,
        leader_epoch=state.epoch,
        high_watermark=-1 if known is None else known,
    )


def _shown(key: ReplicaKey, progress: ReplicaProgress | None) -> QuorumReplica:
    if progress is None:
        return QuorumReplica(key, -1)
    return QuorumReplica(key, progress.offset, _ms(progress.fetched), _ms(progress.caught_up))


def _ms(time: int | None) -> int:
    return -1 if time is None else time // 1000
