"""The course of applying a plan file: check, show, ask, elect, look again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backends.base.answers import ClusterInfo
from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.cli.base.settling import journalled
from console.errors import InputError, StalePlan
from console.exit_status import Status
from console.journal.journal import Journal
from console.operations.election_batches import carry_out
from console.operations.plan_comparison import (
    Applied,
    Prepared,
    ask_afresh,
    checked_just_now,
    prepare,
    refused_rows,
    still_holding,
)
from console.operations.plan_file_checks import narrowed, refuse_other_cluster, refuse_other_digest
from console.output.apply_report import applied_document, applied_lines, prepared_lines
from console.paths import unused
from console.planfile import read
from console.provenance import plan_header
from console.signals import StopRequest
from recovery.plan.judgement import RowDecision
from recovery.plan.values import BarePlan, Plan
from recovery.ranking import Ranking
from recovery.strategy import Strategy

MOST_TOPICS = 5
"""Beyond so many topics the next command asks for all offline partitions again."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to apply and how; ``ranking`` is for a file that holds leaders only."""

    command: str
    file: Path
    first: int | None = None
    only: tuple[str, ...] = ()
    max_loss: int | None = None
    ignore_successor_loss: bool = False
    stop_after: int | None = None
    reviewed_by: str | None = None
    digest: str | None = None
    ask: bool = True
    reason: str = ""
    seconds: float = 30.0
    attempts: int = 3
    rows: int = 20
    ranking: Ranking = Ranking.LAST_RECORD

    @property
    def recorded_reason(self) -> str:
        """For the journal: why, and who reviewed which file."""
        review = f"reviewed by {self.reviewed_by}, digest {self.digest}" if self.reviewed_by else ""
        return "; ".join(part for part in (self.reason, review) if part)


def apply_file(run: Run, request: Request) -> int:
    """Applies the file and prints what came of it; returns the exit status."""
    plan = read(request.file)
    if request.digest is not None:
        refuse_other_digest(plan, request.file, request.digest)
    if isinstance(plan, Plan):
        plan = _narrow(plan, request)
    run.refuse_if_read_only()
    if request.ask:
        run.refuse_unless_interactive("--yes and --reason TEXT")

    async def job(backend: Backend, stop: StopRequest) -> Applied:
        cluster = await backend.open()
        refuse_other_cluster(plan, cluster.cluster_id, request.file)
        reason = request.recorded_reason
        async with journalled(run, backend, cluster.cluster_id, reason, stop) as journal:
            prepared = await _prepare(run, backend, cluster, plan, request)
            if request.ask and prepared.holding.rows:
                await run.confirm_loss(prepared.holding)
                prepared = await still_holding(backend, prepared, run.screen.progress)
            applied = Applied(prepared, None)
            if prepared.holding.rows:
                applied = await _elected(run, backend, request, prepared, journal=journal, stop=stop)
            journal.conclude(_status(applied), applied.counts)
            return applied

    return _conclude(run, request, run.work(job))


async def _elected(
    run: Run, backend: Backend, request: Request, prepared: Prepared, *, journal: Journal, stop: StopRequest
) -> Applied:
    elected = await carry_out(
        backend,
        prepared.holding,
        journal,
        attempts=request.attempts,
        stop=stop,
        progress=run.screen.progress,
        stop_after=request.stop_after,
    )
    run.finished(unrestored=bool(elected.unrestored))
    return Applied(prepared, elected)


def _status(applied: Applied) -> Status:
    if applied.prepared.stale:
        return Status.STALE
    return Status.PARTLY if applied.failures else Status.DONE


async def _prepare(
    run: Run, backend: Backend, cluster: ClusterInfo, plan: Plan | BarePlan, request: Request
) -> Prepared:
    if isinstance(plan, BarePlan):
        made = plan_header(cluster.cluster_id, request.ranking, Strategy.AGGRESSIVE)
        asked = await ask_afresh(
            backend, cluster, plan, made, seconds=request.seconds, progress=run.screen.progress
        )
        refused = refused_rows(asked)
        if refused:
            more = f" (and {len(refused) - 1:,} more)" if len(refused) > 1 else ""
            raise InputError(f"{request.file}: {refused[0][0]}: {refused[0][1]}{more}; nothing was sent")
        prepared = checked_just_now(_narrow(asked, request) if asked.rows else asked)
    else:
        prepared = await prepare(backend, plan, cluster.cluster_id, run.screen.progress)
    lines: Iterator[str] = prepared_lines(prepared, request.rows)
    if run.json:
        run.screen.say(*lines)
    else:
        run.screen.out(lines)
    return prepared


def _narrow(plan: Plan, request: Request) -> Plan:
    return narrowed(
        plan,
        request.first,
        request.only,
        request.max_loss,
        successors=not request.ignore_successor_loss,
    )


def _same_choice(plan: Plan) -> tuple[str, ...]:
    """The options that make the same choice afresh."""
    topics = dict.fromkeys(row.tp.topic for row in plan.rows)
    named = [word for topic in topics for word in ("--topic", topic)]
    which = named if len(topics) <= MOST_TOPICS else ["--all-offline-partitions"]
    return (*which, "--ranking", str(plan.header.ranking), "--strategy", str(plan.header.strategy))


def _conclude(run: Run, request: Request, applied: Applied) -> int:
    if run.json:
        run.screen.out(applied_document(request.command, applied))
    else:
        run.screen.out(applied_lines(applied, request.rows))
    for tp, reason in applied.failures:
        run.screen.say(f"not recovered: {tp}: {reason}")
    # Online or stale, all of it: applying it again would change nothing.
    nothing_left = applied.elected is None and any(
        c.decision is RowDecision.STALE for c in applied.prepared.refused
    )
    if any(check.interrupted for check in applied.prepared.refused):
        run.next("resume", "--plan", str(request.file))
    elif nothing_left:
        run.next("plan", *_same_choice(applied.prepared.plan), unused(request.file))
    if applied.prepared.stale:
        raise StalePlan(f"{request.file}: no row of it holds any more; nothing was applied. Make a new plan")
    elected = applied.elected
    if elected is not None and elected.unrestored:
        run.next("resume")
    elif not nothing_left and not any(check.interrupted for check in applied.prepared.refused):
        run.next("verify", str(request.file))
    return _status(applied)
