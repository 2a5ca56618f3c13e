"""``ktriage resume --bootstrap-controller``: what can be finished through the controllers alone."""

from __future__ import annotations

from backends.base.errors import NoLeader
from backends.base.membership import Membership
from console.cli.base.run import Run
from console.cli.quorum.quorum_run import work
from console.exit_status import Status
from console.journal.unfinished_entries import Unfinished, unfinished
from console.operations.change import open_journal
from console.operations.remembered_voters import leaderless
from console.operations.unfinished_orders import Fate, Row, Settled
from console.operations.unfinished_voter_changes import look_for
from console.output.resume_report import unfinished_lines
from console.signals import StopRequest
from recovery.wording.quantity_text import printable

BROKERS = "it is put back through the brokers: give --bootstrap-server"


def settle_voters(run: Run) -> tuple[Settled, bool]:
    """Closes what is seen of the voters' changes; whether everything is closed. Raises NotDone, BackendError."""

    async def job(membership: Membership, stop: StopRequest) -> tuple[Settled, bool]:
        cluster_id = await membership.open()
        if unfinished(cluster_id).nothing:
            return Settled(), True
        run.program.resume = run.target.command("resume")
        with open_journal(run.program, cluster_id, "resume") as journal, stop.in_flight():
            found = unfinished(cluster_id)
            run.screen.say(*unfinished_lines(found))
            try:
                looked = await look_for(membership, found.entries)
            except NoLeader as error:
                raise await leaderless(membership, cluster_id, error) from None
            for each in looked:
                run.screen.say(printable(f"{each.entry.action}: {each.seen}"))
            closed = [each.entry.entry for each in looked if each.closed]
            journal.settle("a later run looked at the voters", entries=closed)
            every = len(closed) == len(looked)
            journal.conclude(Status.DONE if every and not found.orders else Status.PARTLY)
        return _left(found, len(closed)), every

    return work(run, job)


def _left(found: Unfinished, closed: int) -> Settled:
    """Orders of partitions stay open here: no controller takes them back."""
    orders = dict.fromkeys(order.written.tp for order in found.orders)
    return Settled(tuple(Row(tp, Fate.LEFT, BROKERS) for tp in orders), closed)
