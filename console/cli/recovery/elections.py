"""``elect --election-type preferred`` and ``unclean``."""

from __future__ import annotations

from backends.base.answers import Outcome
from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.errors import StalePlan
from console.exit_status import Status
from console.operations.elections.kafka_elections import KafkaElection
from console.output.plan.recovery_report import election_document, election_lines
from recovery.wording.quantity_text import printable

UNCLEAN_LOSS = (
    "which records these elections cut off is not known: an unclean election takes the first live replica, however"
    " short its log, and no log was read before it"
)


def run_elections(run: Run, change: KafkaElection, *, ask: bool, rows: int) -> int:
    """Runs the elections; returns the exit status. Raises StalePlan if every partition changed before
    anything was sent.
    """
    run.refuse_if_read_only()
    if ask:
        run.refuse_unless_interactive("--yes")
    elections = run.change(change, TerminalOperator(run, ask=ask))
    kind = "preferred" if change.preferred else "unclean"
    run.screen.out(election_document(kind, elections) if run.json else election_lines(elections, rows))
    for election in elections.failures:
        run.screen.say(f"not elected: {election.tp}: {printable(election.detail)}")
    if not change.preferred and elections.counts[Outcome.ELECTED]:
        run.screen.say(UNCLEAN_LOSS)
    status = run.conclude(change.conclusion(elections))
    if status is Status.STALE:
        raise StalePlan("every partition changed while the question was open; nothing was sent")
    return status
