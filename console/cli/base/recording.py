"""What a run records of itself: the plan's header, the saved plan, the journal."""

from __future__ import annotations

import getpass
import os
import platform
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from console.cli.base.run import Program
from console.errors import InputError
from console.exit_status import status_of
from console.journal.errors import JournalError, JournalLocked
from console.journal.journal import Journal, cluster_directory
from console.journal.journal import Run as JournalRun
from console.planfile import default_name, write_new
from console.signals import status_of_signal
from console.version import version
from recovery.plan.values import Header, Plan
from recovery.plan.write import to_json
from recovery.ranking import Ranking
from recovery.strategy import Strategy

_ELSEWHERE = "XDG_STATE_HOME names another place for the journal and the plans"


def now() -> datetime:
    return datetime.now(UTC)


def user() -> str:
    """Who runs this; the number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def header(cluster_id: str, ranking: Ranking, strategy: Strategy) -> Header:
    """A new plan's header, made here and now."""
    return Header(
        plan_id=str(uuid.uuid4()),
        cluster_id=cluster_id,
        made_at=now(),
        made_by=f"{user()}@{platform.node()}",
        tool_version=version(),
        ranking=ranking,
        strategy=strategy,
    )


@contextmanager
def open_journal(
    program: Program, cluster_id: str, reason: str, incomplete: Callable[[str], None] | None = None
) -> Iterator[Journal]:
    """The journal of the cluster on this host, which holds its lock. Raises JournalError, JournalLocked.

    Where the last lines cannot be written although the work ended well, ``incomplete`` is told, if there is
    one, and the work's result is not lost for it.
    """
    journal = _opened(program, cluster_id, reason)
    try:
        yield journal
    except BaseException as error:
        with suppress(JournalError):
            journal.close(_signalled(program) or (status_of(error) if isinstance(error, Exception) else None))
        raise
    try:
        journal.close(_signalled(program))
    except JournalError as error:
        if incomplete is None:
            raise
        incomplete(f"the journal is not complete, what was done is told here only: {error}")


def _signalled(program: Program) -> int | None:
    signum = program.supervisor.stop.signum
    return None if signum is None else status_of_signal(signum)


def _opened(program: Program, cluster_id: str, reason: str) -> Journal:
    run = JournalRun(
        run_id=str(uuid.uuid4()),
        command=program.argv,
        user=user(),
        host=platform.node(),
        pid=os.getpid(),
        reason=reason,
        tool_version=version(),
    )
    try:
        return Journal.open(cluster_id, run, now)
    except JournalLocked:
        raise
    except JournalError as error:
        raise JournalError(f"{error}; nothing was sent. {_ELSEWHERE}") from None


def save_plan(plan: Plan) -> Path:
    """Keeps the plan under the state directory before it is carried out; returns where."""
    directory = cluster_directory(plan.header.cluster_id) / "plans"
    path: Path = directory / default_name(plan)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be made: {error.strerror}; nothing was sent. {_ELSEWHERE}"
        ) from None
    write_new(path, to_json(plan))
    return path
