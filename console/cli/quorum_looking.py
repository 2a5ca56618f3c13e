"""``ktriage quorum status`` and ``quorum replication``."""

from __future__ import annotations

from datetime import UTC, datetime

from backends.base.errors import NoLeader
from backends.base.membership import Membership
from console.actions.quorum import Look, look, lost, reading
from console.cli.quorum_running import work
from console.cli.reminding import remind
from console.cli.run import Run
from console.cli.status import Status
from console.output.quorum import (
    lost_document,
    lost_lines,
    replication_lines,
    status_document,
    status_lines,
)
from console.remembered import recall, remember
from recovery.membership.lost import Lost

KEPT = "quorum"


def show(run: Run, *, everything: bool) -> int:
    """Prints the quorum; 1 where something is wrong with it."""

    async def job(membership: Membership, _stop: object) -> Look | Lost:
        return await look_or_lost(membership)

    seen = work(run, job)
    command = "quorum-replication" if everything else "quorum-status"
    if isinstance(seen, Lost):
        run.screen.out(lost_document(seen, command) if run.json else lost_lines(seen))
        return Status.PARTLY
    lines = replication_lines if everything else status_lines
    run.screen.out(status_document(seen, command) if run.json else lines(seen))
    remind(run, seen.cluster_id)
    return Status.DONE if everything or seen.health.well else Status.PARTLY


async def look_or_lost(membership: Membership) -> Look | Lost:
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
    if seen.health.strength.commits and not seen.health.wedged:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        remember(seen.cluster_id, KEPT, reading(seen.quorum, at))
