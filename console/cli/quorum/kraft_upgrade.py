"""``ktriage quorum upgrade``."""

from __future__ import annotations

from backends.base.errors import NoLeader
from backends.base.membership import ChangeAnswer, Membership
from console.cli.base.run import Run
from console.cli.quorum.quorum_run import work
from console.cli.quorum.recording import recorded
from console.cli.quorum.voter_change import Request
from console.exit_status import Status
from console.operations.kraft_upgrade import UpgradeCheck, check_upgrade
from console.operations.kraft_upgrade import upgrade as send
from console.operations.remembered_voters import leaderless
from console.output.quorum_upgrade_report import upgrade_document, upgrade_lines
from console.signals import StopRequest

Ended = tuple[UpgradeCheck, ChangeAnswer | None, bool]


def upgrade(run: Run, request: Request) -> int:
    """Checks, shows, asks, sends, looks."""

    async def job(membership: Membership, stop: StopRequest) -> Ended:
        cluster_id = await membership.open()
        try:
            if request.dry_run:
                return await _shown(run, membership), None, False
            with recorded(run, cluster_id, request.reason) as journal:
                check = await _shown(run, membership)
                if check.already or check.refused:
                    journal.conclude(Status.PARTLY if check.refused else Status.DONE)
                    return check, None, check.already
                if request.ask:
                    await run.confirm_number("kraft.version is never lowered again. To go on, type 1:", 1)
                    check = await check_upgrade(membership)  # the answer may have taken long
                    if check.already or check.refused:
                        journal.conclude(Status.PARTLY if check.refused else Status.DONE)
                        return check, None, check.already
                with stop.in_flight():
                    answer, seen = await send(membership, journal)
                    journal.conclude(Status.DONE if seen else Status.PARTLY)
                    return check, answer, seen
        except NoLeader as error:
            raise await leaderless(membership, cluster_id, error) from None

    check, answer, seen = run_ended = work(run, job)
    if run.json:
        run.screen.out(upgrade_document(*run_ended))
    elif answer is not None:
        run.screen.out([f"kraft.version: {answer}{', seen in the cluster' if seen else ''}"])
    for reason in check.refused:
        run.screen.say(f"refused: {reason}")
    if check.refused:
        run.screen.say("nothing was sent")
        return Status.PARTLY
    return Status.DONE if seen or request.dry_run else Status.PARTLY


async def _shown(run: Run, membership: Membership) -> UpgradeCheck:
    check = await check_upgrade(membership)
    lines = upgrade_lines(check)
    if run.json:
        run.screen.say(*lines)
    else:
        run.screen.out(lines)
    return check
