"""``quorum add``, ``remove`` and ``upgrade``: shows the preflight, asks, and sends the change."""

from __future__ import annotations

from collections.abc import Iterable

from backends.base.membership import Membership
from console.cli.base.quorum_run import change_quorum, read_quorum
from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.errors import Status
from console.jobs.quorum.change_voters import ChangeVoters, UpgradeKraftVersion, UpgradeResult
from console.jobs.quorum.kraft_upgrade import UpgradeCheck, check_upgrade
from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.quorum_change_report import (
    changed_document,
    changed_lines,
    upgrade_document,
    upgrade_lines,
)
from console.jobs.quorum.quorum_report import preflight_lines
from console.jobs.quorum.voter_change import VoterChangeResult
from recovery.wording.quantity_text import printable


def change_voters(run: Run, change: ChangeVoters, *, dry_run: bool, ask: bool) -> int:
    """Prepares, shows the preflight, asks, sends, and prints the result; returns the exit status."""
    terminal = TerminalOperator(run, _preflight, ask=ask)

    async def preflight(membership: Membership, _stop: object) -> VoterChangeResult:
        prepared = await change.prepare(membership, await membership.open(), terminal)
        terminal.shows(prepared)
        return VoterChangeResult(prepared, None, None)

    refuse_unless_allowed(run, dry_run=dry_run, ask=ask)
    changed = read_quorum(run, preflight) if dry_run else change_quorum(run, change, terminal)
    if run.json:
        run.screen.out(changed_document(str(change.change), changed))
    elif changed.answer is not None:
        run.screen.out(changed_lines(changed))
    against = changed.prepared.verdict.refused or tuple(filter(None, (changed.detail,)))
    if changed.answer is None and against:
        for reason in against:
            run.screen.say(printable(f"refused: {reason}"))
        run.screen.say("nothing was sent")
    elif dry_run:
        return Status.DONE
    return run.conclude(change.conclusion(changed))


def upgrade(run: Run, change: UpgradeKraftVersion, *, dry_run: bool, ask: bool) -> int:
    """Checks, shows, asks, sends, and reads the new level; returns the exit status."""
    terminal = TerminalOperator(run, upgrade_lines, ask=ask)

    async def preflight(membership: Membership, _stop: object) -> UpgradeResult:
        await membership.open()
        check: UpgradeCheck = await check_upgrade(membership)
        terminal.shows(check)
        return UpgradeResult(check)

    refuse_unless_allowed(run, dry_run=dry_run, ask=ask)
    upgraded = read_quorum(run, preflight) if dry_run else change_quorum(run, change, terminal)
    if run.json:
        run.screen.out(upgrade_document(*upgraded))
    elif upgraded.answer is not None:
        confirmed = ", confirmed by the cluster" if upgraded.confirmed else ""
        run.screen.out([f"kraft.version: {upgraded.answer}{confirmed}"])
    refused = upgraded.check.refused
    for reason in refused:
        run.screen.say(f"refused: {reason}")
    if refused:
        run.screen.say("nothing was sent")
        return Status.PARTLY
    return Status.DONE if upgraded.confirmed or dry_run else Status.PARTLY


def refuse_unless_allowed(run: Run, *, dry_run: bool, ask: bool) -> None:
    """Raises InputError if the change may not be sent, or if nobody can be asked."""
    if dry_run:
        return
    run.refuse_if_read_only()
    if ask:
        run.refuse_unless_interactive("--yes and --reason TEXT, or --dry-run")


def _preflight(prepared: PreparedChange) -> Iterable[str]:
    return preflight_lines(prepared.verdict, prepared.sentence)
