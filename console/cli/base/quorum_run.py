"""The run of a quorum command: the quorum of the named cluster, and the values of its options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from backends.base.errors import NoLeader
from backends.base.read_only import ReadOnlyMembership
from console.backends import membership_of, with_quorum
from console.errors import InputError, NotDone
from console.reading.remembered_voters import leaderless
from recovery.membership.directory_ids import directory_id
from recovery.membership.replacement import ReplacementError
from recovery.membership.replica_lookup import NotChosen
from recovery.membership.voters import VoterEndpoint

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from console.change.change import Change, Operator
    from console.cli.base.run import Run
    from console.signals import StopRequest
    from console.target import Target


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
    from console.change.access import membership_access  # noqa: PLC0415  # the other commands only read
    from console.change.change import run_change  # noqa: PLC0415  # as above

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


def change_or_show(
    run: Run, unsent: Callable[[P], R], *, dry_run: bool
) -> Callable[[Change[Membership, P, R], Operator[P]], R]:
    """How a change is carried out, as by :func:`change_quorum`; with ``dry_run`` it is prepared and shown, and
    ``unsent`` makes the result.
    """

    def send(change: Change[Membership, P, R], operator: Operator[P]) -> R:
        async def show(membership: Membership, _stop: StopRequest) -> R:
            cluster_id = await membership.open()
            nothing_to_do = change.without_lock(cluster_id)
            if nothing_to_do is not None:
                return nothing_to_do
            prepared = await change.prepare(membership, cluster_id, operator)
            operator.shows(prepared)
            return unsent(prepared)

        return read_quorum(run, show) if dry_run else change_quorum(run, change, operator)

    return send


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

    endpoints = []
    for text in texts:
        listener, sign, address = text.partition("://")
        if not sign or not listener:
            raise InputError(
                f"--endpoint {text!r}: give LISTENER://HOST:PORT, such as CONTROLLER://kafka-103:9093"
            )
        try:
            at = parse_address(address)
        except ValueError as error:
            raise InputError(f"--endpoint {text!r}: {error}") from None
        endpoints.append(VoterEndpoint(listener, at.host, at.port))
    return tuple(endpoints)
