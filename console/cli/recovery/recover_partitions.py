"""The course of a recovery: look, choose, show, and elect or write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.cli.base.settling import journalled
from console.cli.base.unfinished_reminder import remind
from console.errors import InputError
from console.exit_status import Status
from console.journal.journal import Journal
from console.operations.election_batches import carry_out
from console.operations.leader_choice import Choices, choose
from console.operations.partition_picture import Depths, examine
from console.operations.partition_selection import Selection
from console.operations.recovery_result import Recovery
from console.output.recovery_report import chosen_lines, ended_lines, recovery_document
from console.output.survey_report import hidden_lines
from console.paths import unused
from console.planfile import write_new
from console.provenance import plan_header
from console.saved_plans import save_plan
from console.signals import StopRequest
from recovery.plan.write import to_json
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy


@dataclass(frozen=True, slots=True)
class Request:
    """What to do. ``file``: write the plan there; ``send``: elect; ``dry_run``: neither, but keep the plan.

    ``words`` select the same partitions for the next command. ``ask``: the number of partitions that may lose
    something is typed first.
    """

    command: str
    selection: Selection
    ranking: Ranking
    strategy: Strategy
    seconds: float = 30.0
    attempts: int = 3
    show: bool = False
    file: Path | None = None
    send: bool = False
    ask: bool = False
    dry_run: bool = False
    rows: int = 20
    reason: str = ""
    words: tuple[str, ...] = ("--all-offline-partitions",)


def recover(run: Run, request: Request) -> int:
    """Runs the recovery and prints it; returns the exit status."""
    if request.file is not None:
        refuse_existing(request.file)
    if request.send:
        run.refuse_if_read_only()
    if request.ask:
        run.refuse_unless_interactive("--yes")
    kept: list[Path] = []

    async def job(backend: Backend, stop: StopRequest) -> Recovery:
        cluster = await backend.open()
        if not request.send:
            return Recovery(await _look(run, backend, request), None)
        async with journalled(run, backend, cluster.cluster_id, request.reason, stop) as journal:
            choices = await _look(run, backend, request)
            if not choices.plan.rows:
                return _noted(journal, Recovery(choices, None))
            if request.ask:
                await run.confirm_loss(choices.plan)
            kept.append(save_plan(choices.plan))
            run.screen.say(f"the plan is saved in {kept[0]}")
            elected = await carry_out(
                backend,
                choices.plan,
                journal,
                attempts=request.attempts,
                stop=stop,
                progress=run.screen.progress,
            )
            run.finished(unrestored=bool(elected.unrestored))
            return _noted(journal, Recovery(choices, elected))

    recovery = run.work(job)
    file = kept[0] if kept else _keep(request, recovery)
    if run.json:
        run.screen.out(recovery_document(request.command, recovery, file, request.show))
    else:
        run.screen.out(ended_lines(recovery, request.rows))
    return _conclude(run, request, recovery, file)


def _noted(journal: Journal, recovery: Recovery) -> Recovery:
    journal.conclude(_status(recovery), recovery.counts)
    return recovery


def _status(recovery: Recovery) -> Status:
    return Status.PARTLY if recovery.failures or recovery.choices.picture.unseen else Status.DONE


async def _look(run: Run, backend: Backend, request: Request) -> Choices:
    cluster = await backend.cluster()
    picture = await examine(backend, cluster, request.selection, Depths(request.seconds), run.screen.progress)
    choices = await choose(
        backend, picture, plan_header(cluster.cluster_id, request.ranking, request.strategy)
    )
    if not run.json:
        run.screen.out(chosen_lines(choices, request.show, request.rows))
    return choices


def _keep(request: Request, recovery: Recovery) -> Path | None:
    """Writes the plan where it is wanted; a plan that elects nobody is not worth a file."""
    plan = recovery.choices.plan
    if not plan.rows:
        return None
    if request.file is not None:
        write_new(request.file, to_json(plan))
        return request.file
    return save_plan(plan) if request.dry_run else None


def _conclude(run: Run, request: Request, recovery: Recovery, file: Path | None) -> int:
    elects = request.send or request.dry_run or request.file is not None
    failures = recovery.failures if elects else ()
    told = failures if request.send else () if run.screen.interactive else failures[: request.rows or None]
    for tp, reason in told:
        run.screen.say(f"{'not recovered' if request.send else 'nobody is chosen'}: {tp}: {reason}")
    if not request.send and told and len(told) < len(failures):
        run.screen.say(f"… and {len(failures) - len(told):,} more (--rows 0 tells all)")
    picture = recovery.choices.picture
    if picture.unseen or picture.leaders_not_told:
        run.screen.say(*hidden_lines(picture))
    if request.file is not None and file is None:
        offline = any(survey.state.offline for survey in picture.surveys)
        why = "under this strategy nobody is to be elected yet" if offline else "nothing is offline"
        run.screen.say(f"{request.file} was not written: {why}")
    _next(run, request, recovery, file)
    return Status.PARTLY if failures or picture.unseen else Status.DONE


def _next(run: Run, request: Request, recovery: Recovery, file: Path | None) -> None:
    elected = recovery.elected
    if not request.send and remind(run, recovery.choices.picture.cluster.cluster_id):
        return
    if elected is not None and elected.unrestored:
        run.next("resume")
    elif elected is not None and file is not None:
        again = any(not result.succeeded for result in elected.results)
        run.next("apply" if again else "verify", str(file))
    elif file is not None:
        run.screen.say(f"the plan is in {file}")
        run.next("review", str(file))
    elif recovery.choices.plan.rows and not request.send:
        run.next("plan", *request.words, *_chosen_by(request), unused())
    elif request.strategy is not Strategy.AGGRESSIVE and _waits(recovery):
        run.screen.say("bring back the brokers named above; only if they are gone for good, accept the loss:")
        wanted = unused(request.file or "recovery.json")
        run.next("plan", *request.words, "--strategy", str(Strategy.AGGRESSIVE), wanted)


def _chosen_by(request: Request) -> tuple[str, ...]:
    """The options that choose as this run did, where they are not those of ``ktriage plan`` itself."""
    ranking = () if request.ranking is Ranking.LAST_RECORD else ("--ranking", str(request.ranking))
    strategy = () if request.strategy is Strategy.BALANCED else ("--strategy", str(request.strategy))
    return (*ranking, *strategy)


def _waits(recovery: Recovery) -> bool:
    return any(row.verdict is DecisionKind.WAIT for row in recovery.choices.plan.not_elected)


def refuse_existing(path: Path) -> None:
    """Raises InputError where there is something at ``path``, for no file is overwritten, or none can be made."""
    if path.is_symlink() or path.exists():
        raise InputError(
            f"{path} exists already; choose another name, no file is overwritten; nothing was sent"
        )
    directory = path.absolute().parent
    if not directory.is_dir():
        raise InputError(f"{path}: there is no directory {directory}; nothing was sent")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{path}: nothing may be written into {directory}; nothing was sent")
