"""``ktriage quorum status`` and ``quorum replication``."""

from __future__ import annotations

from backends.base.membership import Membership
from console.cli.base.run import Run
from console.cli.base.unfinished_reminder import remind
from console.cli.quorum.quorum_run import read_quorum
from console.exit_status import Status
from console.operations.voters.quorum_state import QuorumReading
from console.operations.voters.remembered_voters import reading_or_lost
from console.output.quorum.quorum_report import (
    lost_document,
    lost_lines,
    replication_lines,
    status_document,
    status_lines,
)
from recovery.membership.quorum_without_leader import QuorumWithoutLeader


def show(run: Run, *, everything: bool) -> int:
    """Prints the quorum; returns 1 if something is wrong with it."""

    async def job(membership: Membership, _stop: object) -> QuorumReading | QuorumWithoutLeader:
        return await reading_or_lost(membership)

    found = read_quorum(run, job)
    command = "quorum-replication" if everything else "quorum-status"
    if isinstance(found, QuorumWithoutLeader):
        run.screen.out(lost_document(found, command) if run.json else lost_lines(found))
        return Status.PARTLY
    lines = replication_lines if everything else status_lines
    run.screen.out(status_document(found, command) if run.json else lines(found))
    remind(run, found.cluster_id)
    return Status.DONE if everything or found.health.well else Status.PARTLY
