"""One change of a cluster, from the lock to the end of its journal: what the screens and the commands both run."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from console.exit_status import status_of
from console.journal.errors import JournalError, JournalLocked
from console.journal.journal import Journal, Run
from console.provenance import now, user
from console.saved_plans import OTHER_PLACE
from console.signals import Supervisor, status_of_signal
from console.version import version


class Invocation(Protocol):
    """The process that changes something: ``argv`` is what the journal says was run."""

    argv: tuple[str, ...]
    supervisor: Supervisor


@contextmanager
def open_journal(
    invocation: Invocation, cluster_id: str, reason: str, incomplete: Callable[[str], None] | None = None
) -> Iterator[Journal]:
    """The journal of the cluster on this host, which holds its lock. Raises JournalError, JournalLocked.

    Where the last lines cannot be written although the work ended well, ``incomplete`` is told, if there is
    one, and the result of the work is not lost for it.
    """
    journal = _opened(invocation, cluster_id, reason)
    try:
        yield journal
    except BaseException as error:
        status = _signalled(invocation) or (status_of(error) if isinstance(error, Exception) else None)
        with suppress(JournalError):
            journal.close(status)
        raise
    try:
        journal.close(_signalled(invocation))
    except JournalError as error:
        if incomplete is None:
            raise
        incomplete(f"the journal is not complete, what was done is told here only: {error}")


def _signalled(invocation: Invocation) -> int | None:
    signum = invocation.supervisor.stop.signum
    return None if signum is None else status_of_signal(signum)


def _opened(invocation: Invocation, cluster_id: str, reason: str) -> Journal:
    run = Run(
        run_id=str(uuid.uuid4()),
        command=invocation.argv,
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
        raise JournalError(f"{error}; nothing was sent. {OTHER_PLACE}") from None
