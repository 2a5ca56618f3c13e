"""What ``quorum status`` and ``quorum replication`` show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.base.errors import Unreachable
from console.cli.base.quorum_run import read_quorum
from console.cli.base.unfinished_reminder import remind
from console.errors import Status
from console.jobs.quorum.quorum_report import (
    lost_document,
    lost_lines,
    replication_lines,
    status_document,
    status_lines,
)
from console.journal.run_records import ClusterMarks
from console.reading.remembered_voters import lost_of_named, reading_of_everybody, reading_or_lost
from recovery.membership.quorum_without_leader import QuorumWithoutLeader

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from console.cli.base.run import Run
    from console.reading.quorum_state import QuorumReading


def show(run: Run, *, everything: bool) -> int:
    """Prints the quorum; returns 1 if something is wrong with it."""

    async def job(membership: Membership, _stop: object) -> QuorumReading | QuorumWithoutLeader:
        try:
            reading = await reading_or_lost(membership)
        except Unreachable:
            # Controllers that were named are there to be looked for; of brokers alone nothing is known.
            if not membership.asks_brokers and not run.json:
                run.screen.out(lost_lines(await lost_of_named(membership)))
            raise
        if isinstance(reading, QuorumWithoutLeader):
            return reading
        return await reading_of_everybody(membership, reading)

    found = read_quorum(run, job)
    command = "quorum-replication" if everything else "quorum-status"
    if isinstance(found, QuorumWithoutLeader):
        run.screen.out(lost_document(found, command) if run.json else lost_lines(found))
        return Status.PARTLY
    lines = replication_lines if everything else status_lines
    run.screen.out(status_document(found, command) if run.json else run.target.commands_in(lines(found)))
    marks = ClusterMarks(directories=found.quorum.directories)
    remind(run, found.cluster_id, marks, started=found.health.running)
    return Status.DONE if (everything or found.health.well) and not found.findings else Status.PARTLY
