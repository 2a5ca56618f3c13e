"""``ktriage quorum status`` and ``quorum replication``."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from backends.base.errors import BackendError, NoLeader
from backends.base.membership import Membership
from console.cli.base.run import Run
from console.cli.base.unfinished_reminder import remind
from console.cli.quorum.quorum_run import work
from console.exit_status import Status
from console.last_healthy import recall, remember
from console.operations.quorum_state import Look, look, lost, reading
from console.output.quorum_report import (
    lost_document,
    lost_lines,
    replication_lines,
    status_document,
    status_lines,
)
from recovery.membership.preflight import LivenessLimits, strength
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_without_leader import QuorumWithoutLeader

KEPT = "quorum"


def show(run: Run, *, everything: bool) -> int:
    """Prints the quorum; 1 where something is wrong with it."""

    async def job(membership: Membership, _stop: object) -> Look | QuorumWithoutLeader:
        return await look_or_lost(membership)

    seen = work(run, job)
    command = "quorum-replication" if everything else "quorum-status"
    if isinstance(seen, QuorumWithoutLeader):
        run.screen.out(lost_document(seen, command) if run.json else lost_lines(seen))
        return Status.PARTLY
    lines = replication_lines if everything else status_lines
    run.screen.out(status_document(seen, command) if run.json else lines(seen))
    remind(run, seen.cluster_id)
    return Status.DONE if everything or seen.health.well else Status.PARTLY


async def look_or_lost(membership: Membership) -> Look | QuorumWithoutLeader:
    """The quorum, or what is left of it; a healthy look is kept for the day when there is none.

    Raises Unreachable, NotAllowed, BackendError.
    """
    cluster_id = await membership.open()
    try:
        seen = await look(membership)
    except NoLeader:
        return await lost(membership, cluster_id, recall(cluster_id, KEPT))
    keep(seen)
    return seen


def keep(seen: Look) -> None:
    """Keeps the voters of a quorum that commits."""
    if not seen.health.wedged:
        keep_voters(seen.quorum)


def keep_voters(quorum: Quorum) -> None:
    """The same of a quorum that was looked at by the way: whoever changes its voters knows the new ones."""
    if strength(quorum, quorum.voters, LivenessLimits()).commits:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        remember(quorum.cluster_id, KEPT, reading(quorum, at))


async def keep_new_voters(membership: Membership) -> None:
    """After a change: a leader that has removed itself may have to be followed by another first."""
    with contextlib.suppress(BackendError):
        keep_voters(await membership.describe())
