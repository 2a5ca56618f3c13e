"""Access to a cluster: every operation can read it, and only an armed one gets a cluster that can be changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from backends.base.read_only import ReadOnlyBackend, ReadOnlyMembership

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from backends.base.protocol import Backend

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Access(Generic[C]):
    """A cluster, or its quorum. ``reading`` cannot send a change.

    ``refuse`` raises a ConsoleError with the reason while changes are not allowed; it is called before each
    change.
    """

    reading: C
    _cluster: C
    refuse: Callable[[], None]

    def changing(self) -> C:
        """The cluster as it can be changed. Raises what ``refuse`` raises."""
        self.refuse()
        return self._cluster


def backend_access(backend: Backend, refuse: Callable[[], None]) -> Access[Backend]:
    """Access to a whole cluster."""
    return Access(ReadOnlyBackend(backend), backend, refuse)


def membership_access(membership: Membership, refuse: Callable[[], None]) -> Access[Membership]:
    """Access to a metadata quorum. A replacement takes hours: ``refuse`` is called for each change of it again."""
    return Access(ReadOnlyMembership(membership), ReadOnlyMembership(membership, refuse), refuse)
