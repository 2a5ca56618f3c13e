"""The run of a quorum command: the quorum of the named cluster, and the values of its options. Also what shows it:
``quorum status`` and ``quorum replication``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from backends.base.errors import NoLeader
from backends.base.read_only import ReadOnlyMembership
from console.cli.base.unfinished_reminder import remind
from console.errors import InputError, NotDone, Status
from console.journal.run_records import ClusterMarks
from console.operations.voters.quorum_state import read_elsewhere
from console.operations.voters.remembered_voters import leaderless, reading_or_lost
from console.output.quorum.quorum_report import (
    lost_document,
    lost_lines,
    replication_lines,
    status_document,
    status_lines,
)
from console.quorum_backend import membership_of, with_quorum
from recovery.membership.directory_ids import directory_id
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.membership.replacement import ReplacementError
from recovery.membership.replica_lookup import NotChosen
from recovery.membership.voters import VoterEndpoint

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from console.cli.base.run import Run
    from console.operations.change import Change, Operator
    from console.operations.voters.quorum_state import QuorumReading
    from console.signals import StopRequest
    from console.target import Target


def show(run: Run, *, everything: bool) -> int:
    """Prints the quorum; returns 1 if something is wrong with it."""

    async def job(membership: Membership, _stop: object) -> QuorumReading | QuorumWithoutLeader:
        reading = await reading_or_lost(membership)
        if isinstance(reading, QuorumWithoutLeader):
            return reading
        return replace(reading, elsewhere=await read_elsewhere(membership, reading.quorum))

    found = read_quorum(run, job)
    command = "quorum-replication" if everything else "quorum-status"
    if isinstance(found, QuorumWithoutLeader):
        run.screen.out(lost_document(found, command) if run.json else lost_lines(found))
        return Status.PARTLY
    lines = replication_lines if everything else status_lines
    run.screen.out(status_document(found, command) if run.json else lines(found))
    remind(run, found.cluster_id, ClusterMarks(directories=found.quorum.directories))
    return Status.DONE if (everything or found.health.well) and not found.elsewhere else Status.PARTLY


T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")


def read_quorum(run: Run, job: Callable[[Membership, StopRequest], Awaitable[T]]) -> T:
    """Runs ``job``, which can only read the quorum. Raises what the job raises, and Stopped.

    Raises NotDone, with the reason, if the quorum has no leader or the named node is not possible.
    """
    only_reads = replace(run.target, only_reads=True)
    return _on_quorum(run, only_reads, lambda membership, stop: job(ReadOnlyMembership(membership), stop))


def change_quorum(run: Run, change: Change[Membership, P, R], operator: Operator[P]) -> R:
    """Carries out the change. Raises what it raises, and Stopped; otherwise as :func:`read_quorum`."""
    from console.operations.access import membership_access  # noqa: PLC0415  # the other commands only read
    from console.operations.change import run_change  # noqa: PLC0415  # as above

    run.refuse_if_read_only()

    async def job(membership: Membership, stop: StopRequest) -> R:
        return await run_change(
            change,
            membership_access(membership, run.refuse_if_read_only),
            await membership.open(),
            operator,
            invocation=run.program,
            stop=stop,
            resume_command=run.target.command("resume"),
        )

    return _on_quorum(run, run.target, job)


def _on_quorum(run: Run, target: Target, job: Callable[[Membership, StopRequest], Awaitable[T]]) -> T:
    cluster = with_quorum(target, run.screen.say)
    membership = membership_of(cluster)

    async def supervised(stop: StopRequest) -> T:
        try:
            return await job(membership, stop)
        except (NotChosen, ReplacementError) as error:
            raise NotDone(f"{error}; nothing was sent") from None
        except NoLeader as error:
            raise await leaderless(membership, await membership.open(), error) from None
        finally:
            await cluster.close()

    return run.program.supervisor.run(supervised)


def given_directory(text: str | None) -> str | None:
    """A directory id in Kafka's form. Raises InputError."""
    try:
        return None if text is None else directory_id(text)
    except ValueError as error:
        raise InputError(f"--directory-id: {error}") from None


def given_endpoints(texts: tuple[str, ...]) -> tuple[VoterEndpoint, ...]:
    """``LISTENER://host:port``. Raises InputError."""
    from backends.live.client.addresses import parse_address  # noqa: PLC0415  # where one is given

    found = []
    for text in texts:
        listener, sign, address = text.partition("://")
        if not sign or not listener:
            raise InputError(
                f"--endpoint {text!r}: give LISTENER://HOST:PORT, such as CONTROLLER://kafka-103:9093"
            )
        try:
            host, port = parse_address(address)
        except ValueError as error:
            raise InputError(f"--endpoint {text!r}: {error}") from None
        found.append(VoterEndpoint(listener, host, port))
    return tuple(found)
