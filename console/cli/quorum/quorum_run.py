"""What every quorum command runs in: the quorum of the cluster that was named, and what was given for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from backends.base.membership import Membership
from console.cli.base.run import Run
from console.errors import InputError
from console.quorum_backend import membership_of, with_quorum
from console.signals import StopRequest
from recovery.membership.directory_ids import directory_id
from recovery.membership.voters import VoterEndpoint

T = TypeVar("T")


def work(run: Run, job: Callable[[Membership, StopRequest], Awaitable[T]]) -> T:
    """Runs ``job`` on the quorum and lets go of it. Raises what the job raises, and Stopped."""
    cluster = with_quorum(run.target, run.screen.say)
    membership = membership_of(cluster)

    async def supervised(stop: StopRequest) -> T:
        try:
            return await job(membership, stop)
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
