"""Saves the voters of a healthy quorum, for a later time when they cannot be read."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from backends.base.errors import BackendError, NoLeader
from backends.base.membership import Membership
from console.errors import NotDone
from console.last_healthy import recall, remember
from console.operations.quorum_state import QuorumReading, lost, read_quorum_state, saved_voters
from recovery.membership.preflight import LivenessLimits, strength
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_without_leader import QuorumWithoutLeader

MEMORY = "quorum"
"""The name under which the voters are saved."""


async def reading_or_lost(membership: Membership) -> QuorumReading | QuorumWithoutLeader:
    """The quorum, or what can be read of it; the voters of a quorum that commits are saved.

    Raises Unreachable, NotAllowed, BackendError.
    """
    cluster_id = await membership.open()
    try:
        reading_now = await read_quorum_state(membership)
    except NoLeader:
        return await lost(membership, cluster_id, recall(cluster_id, MEMORY))
    if not reading_now.health.wedged:
        remember_voters(reading_now.quorum)
    return reading_now


def remember_voters(quorum: Quorum) -> None:
    """Saves the voters of a quorum that commits."""
    if strength(quorum, quorum.voters, LivenessLimits()).commits:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        remember(quorum.cluster_id, MEMORY, saved_voters(quorum, at))


async def remember_new_voters(membership: Membership) -> None:
    """Saves the voters after a change. If the leader removed itself, another leader may have to be elected
    first.
    """
    with contextlib.suppress(BackendError):
        remember_voters(await membership.describe())


async def leaderless(membership: Membership, cluster_id: str, error: NoLeader) -> NotDone:
    """The message for a quorum without a leader: no change can be committed, and these voters must come back."""
    found = await lost(membership, cluster_id, recall(cluster_id, MEMORY))
    last_reading = f" (voters as last seen {found.seen_at})" if found.certain else ""
    return NotDone(f"{found.sentence}{last_reading}; nothing was sent ({error})")
