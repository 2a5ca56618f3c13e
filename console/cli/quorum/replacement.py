"""``ktriage quorum replace``, and going on with it by ``ktriage resume``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backends.base.errors import NoLeader
from backends.base.membership import Membership
from console.cli.base.run import Run
from console.cli.quorum.quorum_run import given_directory, given_endpoints, work
from console.cli.quorum.replacement_terminal import UNASKED, CommandLine
from console.cli.quorum.unfinished_voters import BROKERS
from console.cli.quorum.voter_change import Request
from console.errors import InputError, NotDone
from console.exit_status import Status
from console.journal.journal import Journal
from console.journal.open_replacement import open_replacement
from console.journal.unfinished_entries import Unfinished, unfinished
from console.operations.change import open_journal
from console.operations.remembered_voters import leaderless
from console.operations.replacement_plan import Choice
from console.operations.replacement_run import (
    Planned,
    make_replacement,
    read_replacement,
    refuse_replacement_of_other_cluster,
    replace_controller,
    save_replacement,
)
from console.operations.replacement_steps import Course, Gone, standing
from console.output.quorum_replacement_report import gone_line, replacement_document, review_lines
from console.signals import StopRequest
from recovery.membership.replacement import ReplacementError, ReplacementKind, ReplacementPlan
from recovery.membership.replica_lookup import NotChosen
from recovery.wording.quantity_text import printable

if TYPE_CHECKING:
    from console.cli.recovery.resume import Wanted


def replace(
    run: Run,
    request: Request,
    kind: ReplacementKind | None,
    joining: tuple[int, ...],
    file: Path | None,
) -> int:
    """Makes a plan or takes one that is there, shows it, and goes through it."""
    there = file is not None and file.exists()
    if file is not None and not there and kind is None:
        raise InputError(f"{file}: there is no such plan; give --why to make it")
    if there == (kind is not None):
        raise InputError(
            f"{file}: it exists: a plan that is there is gone through without --why"
            if there
            else "quorum replace needs --why disk|host|planned|grow|shrink, or --plan FILE with a plan that exists"
        )
    if kind in (ReplacementKind.HOST, ReplacementKind.PLANNED, ReplacementKind.GROW) and not joining:
        raise InputError(f"--why {kind} needs --with NODE, the controller that comes; nothing was sent")
    if not request.dry_run:
        run.refuse_if_read_only()
        if request.ask:
            run.refuse_unless_interactive("--yes and --reason TEXT, or --dry-run")
    plan = read_replacement(file) if there and file is not None else None

    async def job(
        membership: Membership, stop: StopRequest
    ) -> tuple[ReplacementPlan, Path | None, Gone | None]:
        cluster_id = await membership.open()
        try:
            made = plan or await _made(membership, request, kind, joining)
            refuse_replacement_of_other_cluster(made, cluster_id)
            refuse_unsaid(made, request.confirmed)
            path = file if there or (file is None and request.dry_run) else save_replacement(made, file)
            confirmed = request.confirmed | unfinished(cluster_id).confirmed.get(
                made.header.plan_id, frozenset()
            )
            await _review(run, membership, made, confirmed)
            if request.dry_run:
                return made, path, None
            assert path is not None
            return (
                made,
                path,
                await _recorded(run, membership, Planned.of(made, path, request.confirmed), request, stop),
            )
        except NoLeader as error:
            raise await leaderless(membership, cluster_id, error) from None
        except (NotChosen, ReplacementError) as error:
            raise NotDone(f"{error}; nothing was sent") from None

    made, path, gone = work(run, job)
    return conclude(run, made, path, gone)


async def _made(
    membership: Membership, request: Request, kind: ReplacementKind | None, joining: tuple[int, ...]
) -> ReplacementPlan:
    assert kind is not None
    leaving = () if request.node is None else (request.node,)
    choice = Choice(
        kind, leaving, joining, given_directory(request.directory_id), given_endpoints(request.endpoints)
    )
    return await make_replacement(membership, choice)


async def _review(run: Run, membership: Membership, plan: ReplacementPlan, confirmed: frozenset[int]) -> None:
    picture, step = await standing(membership, plan, confirmed)
    lines = review_lines(plan, step, picture.quorum)
    if run.json:
        run.screen.say(*lines)
    else:
        run.screen.out(lines)


async def _recorded(
    run: Run, membership: Membership, plan: Planned, request: Request, stop: StopRequest
) -> Gone:
    run.program.resume = run.target.command("resume")
    with open_journal(run.program, plan.cluster_id, request.reason) as journal:
        found = unfinished(plan.cluster_id)
        half_done = open_replacement(found)
        if half_done is not None and half_done.file != plan.file:
            raise NotDone(
                f"another replacement is half done ({half_done.file}); nothing was sent. Go on with it first:"
                f" {run.program.resume}; or give it up, with the voters as they are:"
                f" {run.target.command('resume', '--give-up')}"
            )
        if request.ask and await run.ask("Go through these steps now? Type yes:") != "yes":
            raise NotDone(f"not confirmed; nothing was sent. The plan is {plan.file}")
        return await course(run, membership, plan, journal, stop, ask=request.ask)


async def course(
    run: Run, membership: Membership, planned: Planned, journal: Journal, stop: StopRequest, *, ask: bool
) -> Gone:
    """Goes through the plan under the open journal, as the command line shows it."""
    watcher = CommandLine(run, planned.plan, stop, ask=ask, confirmed=planned.confirmed)
    attended = run.screen.interactive
    try:
        return await replace_controller(membership, planned, journal, watcher, stop, attended=attended)
    finally:
        watcher.quiet()


def conclude(run: Run, plan: ReplacementPlan, path: Path | None, gone: Gone | None) -> int:
    """Prints how it ended; 1 where it is not done."""
    if run.json:
        run.screen.out(replacement_document(plan, str(path or ""), gone))
    if gone is None:
        if path is not None:
            run.next("quorum", "replace", "--plan", str(path))
        return Status.DONE
    if not run.json:
        run.screen.out([gone_line(gone)])
    if gone.course is not Course.DONE:
        run.screen.say(f"not done: {gone_line(gone)}")
        unsaid = gone.step is not None and gone.step.kind.said and gone.course is not Course.UNASKED
        said = ("--confirmed", str(gone.step.number)) if gone.step is not None and unsaid else ()
        run.next("resume", *said, *(() if run.screen.interactive else UNASKED))
        return Status.PARTLY
    run.next("quorum", "status")
    return Status.DONE


def refuse_unsaid(plan: ReplacementPlan, confirmed: frozenset[int]) -> None:
    """Raises InputError where a step is said to be done that is none, or that the cluster shows by itself."""
    said = {step.number for step in plan.steps if step.kind.said}
    wrong = sorted(confirmed - said)
    if wrong:
        may = (
            f"of this plan only {', '.join(map(str, sorted(said)))} can be said to be done"
            if said
            else ("of this plan every step is seen in the cluster")
        )
        raise InputError(f"--confirmed {wrong[0]}: {may}; nothing was sent")


def go_on(run: Run, file: Path | None, wanted: Wanted) -> int | None:
    """Goes on with the replacement that the journal shows half done, or with that of ``file``.

    None where there is none. Raises InputError, NotDone, BackendError.
    """

    orders: list[Unfinished] = []

    async def job(
        membership: Membership, stop: StopRequest
    ) -> tuple[ReplacementPlan, Path, Gone] | int | None:
        cluster_id = await membership.open()
        if file is None and open_replacement(unfinished(cluster_id)) is None:
            return None
        run.program.resume = run.target.command("resume")
        with open_journal(run.program, cluster_id, wanted.reason or "resume") as journal:
            found = unfinished(cluster_id)
            half_done = open_replacement(found)
            path = file or (half_done.file if half_done is not None else None)
            if path is None:
                return None
            if wanted.give_up:
                _give_up(run, journal, found)
                return Status.DONE
            plan = _plan_of(run, path)
            refuse_replacement_of_other_cluster(plan, cluster_id)
            refuse_unsaid(plan, wanted.confirmed)
            planned = Planned.of(plan, path, wanted.confirmed)
            if found.orders and run.target.kind == "controllers":
                run.screen.say(f"not restored: {_ordered(found)}: {BROKERS}")
                orders.append(found)
            ask = run.screen.interactive and wanted.ask
            if ask and not await _wants(run, journal, found, path):
                return None
            try:
                unasked = await _unasked(run, membership, planned) if wanted.ask and not ask else None
                gone = unasked or await course(run, membership, planned, journal, stop, ask=ask)
            except NoLeader as error:
                raise await leaderless(membership, cluster_id, error) from None
            return plan, path, gone

    ended = work(run, job)
    if not isinstance(ended, tuple):
        return ended
    status = conclude(run, *ended)
    return max(status, Status.PARTLY) if orders else status


def _ordered(found: Unfinished) -> str:
    """The partitions that may stand in the order of an election."""
    return ", ".join(sorted({str(order.written.tp) for order in found.orders}))


def _plan_of(run: Run, path: Path) -> ReplacementPlan:
    """As :func:`read_replacement`, with what to do without the file."""
    try:
        return read_replacement(path)
    except InputError as error:
        give_up = run.target.command("resume", "--give-up")
        raise InputError(
            f"{error}; without its plan the replacement is only forgotten, with the voters as they are: {give_up}"
        ) from None


async def _unasked(run: Run, membership: Membership, planned: Planned) -> Gone | None:
    """How it ends where nobody can be asked, and voters would be changed; None: nothing of that is left to do."""
    plan = planned.plan
    kept = unfinished(planned.cluster_id).confirmed.get(plan.header.plan_id, frozenset())
    picture, step = await standing(membership, plan, planned.confirmed | kept)
    left = [] if step is None else [s for s in plan.steps if s.number >= step.number and s.kind.sends]
    if step is None or not left:
        return None
    changes = "; ".join(f"step {s.number}, {s.title}" for s in left)
    run.screen.say(
        printable(f"a controller replacement is half done ({planned.file}); to go on would send {changes}"),
        "nobody can be asked here: give --yes and --reason TEXT; nothing was sent",
    )
    return Gone(Course.UNASKED, step, None, picture.quorum)


async def _wants(run: Run, journal: Journal, found: Unfinished, path: Path) -> bool:
    """Whether to go on; a replacement that is given up is closed, and the voters stay as they are."""
    question = f"a controller replacement is half done ({path}). Type go to go on, give up to forget it:"
    answer = await run.ask(question)
    if answer == "give up":
        _give_up(run, journal, found)
        return False
    if answer != "go":
        raise NotDone("not confirmed; nothing was sent")
    return True


def _give_up(run: Run, journal: Journal, found: Unfinished) -> None:
    journal.settle("given up by the operator", entries=[e.entry for e in found.replacements])
    journal.conclude(Status.DONE)
    run.screen.say("given up: the voters stay as they are; look with ktriage quorum status")
