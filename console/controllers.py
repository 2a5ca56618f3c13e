"""From a target to its quorum: through brokers, through controllers alone, or a simulation's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from backends.base.membership import Membership
from console.errors import InputError
from console.target import Target

if TYPE_CHECKING:
    from backends.live.controllersonly import ControllersOnly


def backend(target: Target, say: Callable[[str], None]) -> ControllersOnly:
    """The controllers that the target names. Raises InputError for a client.properties file without use."""
    from backends.live.controllersonly import ControllersOnly  # noqa: PLC0415  # as every backend
    from console.live import settings  # noqa: PLC0415

    return ControllersOnly(settings(target, say))


def membership_of(cluster: object) -> Membership:
    """The quorum that an adapter offers. Raises InputError where it has none."""
    found: Membership | None = getattr(cluster, "membership", None)
    if found is None:
        raise InputError("this cluster has no quorum that could be asked")
    return found
