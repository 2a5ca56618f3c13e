"""From a target to its quorum: through brokers, through controllers alone, or a simulation's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from console import backends
from console.errors import InputError

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from backends.live.quorum_backend import QuorumOnly
    from console.target import Target


class ClosableMembership(Protocol):
    """An adapter with a quorum, which has to be closed."""

    async def close(self) -> None: ...


def backend(target: Target, say: Callable[[str], None]) -> QuorumOnly:
    """Access to the quorum of a running cluster. Raises InputError for a file that cannot be used."""
    from backends.live.quorum_backend import QuorumOnly  # noqa: PLC0415  # as every backend
    from console.live_backend import settings  # noqa: PLC0415

    through_brokers = target.kind != "controllers"
    return QuorumOnly(settings(target, say), target.addresses, through_brokers=through_brokers)


def with_quorum(target: Target, say: Callable[[str], None]) -> ClosableMembership:
    """Something that offers the target's quorum; contacts nothing yet. Raises InputError."""
    if target.kind == "simulated":
        return backends.backend(target, say)
    return backend(target, say)


def membership_of(cluster: object) -> Membership:
    """The quorum that an adapter offers. Raises InputError where it has none."""
    found: Membership | None = getattr(cluster, "membership", None)
    if found is None:
        raise InputError("this cluster has no quorum that could be asked")
    return found
