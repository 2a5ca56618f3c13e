"""A change of the voters after it is written: committed, timed out, or lost with the leadership (KIP-853)."""

from __future__ import annotations

from typing import NamedTuple

from recovery.membership.quorum import RaftError, TimeoutCause, VoterChangeRefusal, timed_out
from recovery.membership.voters import ReplicaKey, VoterSet


class PendingChange(NamedTuple):
    """The set that is in force since it was written, where its record lies, and when the request gives up."""

    voters: VoterSet
    offset: int
    deadline_ms: int


class SettledChange(NamedTuple):
    """``refusal`` is None for a committed change; ``leader_resigns`` where the leader is not in the new set."""

    refusal: VoterChangeRefusal | None
    leader_resigns: bool = False


def settle(
    pending: PendingChange, leader: ReplicaKey, high_watermark: int | None, now_ms: int, *, leads: bool = True
) -> SettledChange | None:
    """What the request is answered now, or None while it has to wait.

    A change that timed out is written all the same, and may still be committed: it is not to be asked for again
    before the voters have been looked at.
    """
    if not leads:
        return SettledChange(
            VoterChangeRefusal(
                RaftError.NOT_LEADER_OR_FOLLOWER, "the leader lost its leadership before the change committed"
            )
        )
    if high_watermark is not None and high_watermark > pending.offset:
        return SettledChange(None, leader_resigns=pending.voters.find(leader) is None)
    if now_ms >= pending.deadline_ms:
        return SettledChange(timed_out(TimeoutCause.NOT_COMMITTED))
    return None
