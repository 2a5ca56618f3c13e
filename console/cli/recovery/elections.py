"""The course of a preferred or unclean election."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.partition_options import selection
from console.cli.base.run import Run
from console.cli.base.settling import journalled
from console.exit_status import Status
from console.operations.kafka_elections import Held, hold
from console.operations.partition_selection import Selected, Selection, select
from console.output.election_report import election_document, election_lines
from console.output.screen import printable
from console.signals import StopRequest
from recovery.model import TopicPartition
from recovery.ranking import Ranking
from recovery.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Request:
    """Which partitions: those of the file at ``path``, one ``partition``, or ``every`` one; and how."""

    path: Path | None
    partition: TopicPartition | None
    every: bool
    strategy: Strategy
    ranking: Ranking
    ask: bool
    reason: str
    seconds: float
    attempts: int
    rows: int

    @property
    def words(self) -> tuple[str, ...]:
        """The options of ``ktriage plan`` that mean the same partitions."""
        if self.partition is not None:
            return ("--topic", self.partition.topic, "--partition", str(self.partition.partition))
        return ("--all-offline-partitions",) if self.path is None else ("--path-to-json-file", str(self.path))

    def selection(self, *, offline: bool) -> Selection:
        """The partitions meant; of all partitions the ``offline`` ones only.

        Raises InputError for a file that designates leaders: these elections would not elect them.
        """
        if self.partition is not None:
            return Selection(partitions=(self.partition,))
        return selection(path=self.path, offline=offline and self.every, leaders_refused=True)


def elect_as_asked(run: Run, kind: str, request: Request) -> int:
    """Holds the elections of that kind; returns the exit status."""
    if kind == "designated":
        return _designated(run, request)
    if kind == "longest-log":
        return _longest_log(run, request)
    return _hold(run, request, preferred=kind == "preferred")


def _designated(run: Run, request: Request) -> int:
    from console.cli.recovery.apply_plan import Request as ApplyRequest  # noqa: PLC0415  # each kind pays for its own
    from console.cli.recovery.apply_plan import apply_file  # noqa: PLC0415

    assert request.path is not None
    return apply_file(
        run,
        ApplyRequest(
            "elect",
            request.path,
            ask=False,
            reason=request.reason,
            seconds=request.seconds,
            attempts=request.attempts,
            rows=request.rows,
            ranking=request.ranking,
        ),
    )


def _longest_log(run: Run, request: Request) -> int:
    from console.cli.recovery.recover_partitions import Request as RecoverRequest  # noqa: PLC0415  # each kind pays for its own
    from console.cli.recovery.recover_partitions import recover  # noqa: PLC0415

    return recover(
        run,
        RecoverRequest(
            "elect",
            request.selection(offline=True),
            request.ranking,
            request.strategy,
            seconds=request.seconds,
            attempts=request.attempts,
            send=True,
            ask=request.ask,
            rows=request.rows,
            reason=request.reason,
            words=request.words,
        ),
    )


def _hold(run: Run, request: Request, *, preferred: bool) -> int:
    run.refuse_if_read_only()
    if request.ask:
        run.refuse_unless_interactive("--yes")
    chosen = request.selection(offline=not preferred)

    async def job(backend: Backend, stop: StopRequest) -> Held:
        cluster = await backend.open()
        selected = await select(backend, chosen)
        async with journalled(run, backend, cluster.cluster_id, request.reason, stop) as journal:
            counted = request.ask and not preferred
            if counted:
                await _confirm(run, selected)
            held = await hold(
                backend,
                selected,
                journal,
                preferred=preferred,
                every=request.every and not counted,
                stop=stop,
            )
            run.finished(unrestored=False)
            journal.conclude(_status(held), {str(outcome): n for outcome, n in held.counts.items()})
            return held

    held = run.work(job)
    kind = "preferred" if preferred else "unclean"
    run.screen.out(election_document(kind, held) if run.json else election_lines(held, request.rows))
    for election in held.failures:
        run.screen.say(f"not elected: {election.tp}: {printable(election.detail)}")
    run.next("status")
    return _status(held)


def _status(held: Held) -> Status:
    return Status.PARTLY if held.failures else Status.DONE


async def _confirm(run: Run, selected: Selected) -> None:
    number = len(selected.states)
    unseen = " that may be seen" if selected.visible_only or selected.hidden else ""
    question = (
        f"An unclean election takes the first live replica of each of the {number:,} offline partitions{unseen},"
        " however short its log; ktriage plan chooses by the logs. To go on, type the number of partitions:"
    )
    await run.confirm_number(question, number)
