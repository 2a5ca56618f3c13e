"""``quorum replace``, and ``resume`` of a replacement: shows the steps and asks before each change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from backends.base.membership import Membership
from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.cli.quorum.quorum_run import change_quorum, read_quorum
from console.cli.quorum.replacement_terminal import UNASKED, CommandLine
from console.cli.quorum.voter_change import refuse_unless_allowed
from console.errors import InputError
from console.exit_status import Status
from console.operations.voters.replace_controller import (
    ReplaceController,
    ReplacementStanding,
    ResumeReplacement,
    Watch,
    conclusion_of,
    refuse_unconfirmable,
)
from console.operations.voters.replacement_plan import ReplacementChoice
from console.operations.voters.replacement_run import (
    LoadedReplacement,
    read_replacement,
    refuse_replacement_of_other_cluster,
    save_replacement,
)
from console.operations.voters.replacement_steps import ReplacementResult, Watcher, standing
from console.output.quorum.quorum_change_report import replacement_document, result_line, review_lines
from console.signals import StopRequest
from recovery.membership.replacement import ReplacementKind, ReplacementPlan

NEEDS_NEWCOMER = (ReplacementKind.HOST, ReplacementKind.PLANNED, ReplacementKind.GROW)


def replace(
    run: Run,
    choice: ReplacementChoice | None,
    file: Path | None,
    *,
    confirmed: frozenset[int],
    dry_run: bool,
    ask: bool,
    reason: str,
) -> int:
    """Makes a plan from the choice, or reads the existing plan, shows it, and carries it out."""
    source = _source(choice, file)
    refuse_unless_allowed(run, dry_run=dry_run, ask=ask)
    change = ReplaceController(
        source,
        file,
        _watched(run, ask=ask),
        reason,
        run.target.command("resume", "--give-up"),
        confirmed,
        attended=run.screen.interactive,
    )
    if dry_run:
        return _conclude(run, *_previewed(run, change), None)
    shown: list[LoadedReplacement] = []

    def lines(stands: ReplacementStanding) -> Iterable[str]:
        shown.append(stands.planned)
        assert stands.quorum is not None
        return review_lines(stands.planned.plan, stands.step, stands.quorum)

    result = change_quorum(run, change, TerminalOperator(run, lines, ask=ask))
    return _conclude(run, shown[0].plan, shown[0].file, result)


def _source(choice: ReplacementChoice | None, file: Path | None) -> ReplacementChoice | ReplacementPlan:
    """The plan file or the choice to carry out. Raises InputError if there is neither or both."""
    there = file is not None and file.exists()
    if file is not None and not there and choice is None:
        raise InputError(f"{file}: this plan file does not exist; give --why to make it")
    if there and choice is not None:
        raise InputError(f"{file}: this plan file exists: leave out --why to carry it out")
    if choice is None:
        if file is None:
            raise InputError(
                "quorum replace needs --why disk|host|planned|grow|shrink, or --plan FILE with a plan that exists"
            )
        return read_replacement(file)
    if choice.kind in NEEDS_NEWCOMER and not choice.joining:
        raise InputError(f"--why {choice.kind} needs --with NODE, the new controller; nothing was sent")
    return choice


def _previewed(run: Run, change: ReplaceController) -> tuple[ReplacementPlan, Path | None]:
    """The plan and its current step; a new plan is written only if a file is named."""

    async def job(membership: Membership, _stop: object) -> tuple[ReplacementPlan, Path | None]:
        cluster_id = await membership.open()
        plan = await change.plan(membership)
        refuse_replacement_of_other_cluster(plan, cluster_id)
        refuse_unconfirmable(plan, change.confirmed)
        file = change.file
        if file is not None and plan is not change.source:
            save_replacement(plan, file)
        picture, step = await standing(membership, plan, change.confirmed)
        TerminalOperator[object](run, lambda _: review_lines(plan, step, picture.quorum)).shows(plan)
        return plan, file

    return read_quorum(run, job)


def _watched(run: Run, *, ask: bool) -> Watch:
    """Makes the watcher for the terminal; ``ask``: a person confirms each change by typing."""

    @contextlib.contextmanager
    def watch(planned: LoadedReplacement, stop: StopRequest) -> Iterator[Watcher]:
        watcher = CommandLine(run, planned.plan, stop, ask=ask, confirmed=planned.confirmed)
        try:
            yield watcher
        finally:
            watcher.quiet()

    return watch


def _conclude(run: Run, plan: ReplacementPlan, path: Path | None, result: ReplacementResult | None) -> int:
    """Prints the result; returns 1 if it is not done."""
    if run.json:
        run.screen.out(replacement_document(plan, str(path or ""), result))
    if result is None:
        if path is not None:
            run.next("quorum", "replace", "--plan", str(path))
        return Status.DONE
    if not run.json:
        run.screen.out([result_line(result)])
    conclusion = conclusion_of(result)
    if conclusion.unfinished:
        run.screen.say(f"not done: {result_line(result)}")
        if not run.screen.interactive:
            conclusion = conclusion._replace(next=(*conclusion.next, *UNASKED))
    return run.conclude(conclusion)


def go_on(
    run: Run, file: Path | None, *, confirmed: frozenset[int], give_up: bool, ask: bool, reason: str
) -> int | None:
    """Continues the replacement that the journal shows as half done, or the one in ``file``.

    Returns None if there is none, or if the operator gave it up at the question. Raises InputError, NotDone,
    BackendError.
    """
    asked = run.screen.interactive and ask
    change = ResumeReplacement(
        file,
        _watched(run, ask=asked),
        reason or "resume",
        run.target.command("resume", "--give-up"),
        confirmed,
        attended=run.screen.interactive,
        ask=asked,
        agreed=not ask,
        forget=give_up,
        brokers=run.target.kind != "controllers",
    )
    resumed = change_quorum(run, change, TerminalOperator(run, ask=asked))
    if resumed.planned is None:
        return Status.DONE if resumed.given_up and give_up else None
    _conclude(run, resumed.planned.plan, resumed.planned.file, resumed.result)
    return change.conclusion(resumed).status
