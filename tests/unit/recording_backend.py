"""A cluster below everything that a console or a command does: it notes each change that reaches it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from backends.base.membership import Membership
from backends.base.protocol import Backend
from backends.base.read_only import ReadOnlyBackend, ReadOnlyMembership

BACKEND_CHANGES = ("elect", "designate", "revert_orders")
MEMBERSHIP_CHANGES = ("add_voter", "remove_voter", "upgrade_feature")


class Noting:
    """``inner``, with the names of the changing calls that reach it in ``sent``; none of them is passed on."""

    def __init__(self, inner: Any, changes: tuple[str, ...], sent: list[str]) -> None:
        self._inner = inner
        self._changes = changes
        self.sent = sent

    def __getattr__(self, name: str) -> Any:
        if name == "membership":
            return Noting(self._inner.membership, MEMBERSHIP_CHANGES, self.sent)
        if name in self._changes:
            return self._noted(name, getattr(self._inner, name))
        return getattr(self._inner, name)

    def _noted(self, name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def noted(*given: Any, **more: Any) -> Any:
            if more.get("dry_run"):
                return await call(*given, **more)
            self.sent.append(name)
            raise AssertionError(f"{name} was sent")

        return noted


def noting(backend: Backend) -> Noting:
    """That cluster, noting its changes."""
    return Noting(backend, BACKEND_CHANGES, [])


async def calls_everything(backend: Any) -> list[str]:
    """An action that forgot everything: every changing call there is; returns those that were refused."""
    membership = backend.membership
    refused = []
    for target, names in ((backend, BACKEND_CHANGES), (membership, MEMBERSHIP_CHANGES)):
        for name in names:
            try:
                await _call(target, name)
            except Exception as error:
                refused.append(f"{name}: {error}")
    return refused


async def _call(target: Any, name: str) -> None:
    given: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "elect": ((False, None, None), {}),
        "designate": (((), None, None), {"attempts": 0, "stop": False}),
        "revert_orders": (((), None), {}),
        "add_voter": ((None, None), {}),
        "remove_voter": ((None, None), {}),
        "upgrade_feature": (("kraft.version", 1, None), {"dry_run": False}),
    }
    positional, named = given[name]
    await getattr(target, name)(*positional, **named)


def calls_of(protocol: type) -> set[str]:
    """The public calls and properties of a protocol."""
    return {name for name in vars(protocol) if not name.startswith("_")}


WRAPPERS: tuple[tuple[type, type, tuple[str, ...]], ...] = (
    (Backend, ReadOnlyBackend, BACKEND_CHANGES),
    (Membership, ReadOnlyMembership, MEMBERSHIP_CHANGES),
)
