"""The principals of a served cluster, and what they may not do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from backends.live.calls.authorized_operations import CODES
from backends.simulator.permissions import (
    EXPECTED,
    OF_CLUSTER,
    OF_TOPICS,
    DeniedPermissions,
    any_topic,
    is_permission,
)


@dataclass(frozen=True, slots=True)
class Principal:
    """``denied``: "READ topic payments", "READ topic *", "ALTER cluster". Everything else is allowed."""

    name: str = "ANONYMOUS"
    password: str = ""
    denied: frozenset[str] = frozenset()


class PrincipalRights(DeniedPermissions):
    """What is denied to one principal, including what the cluster denies to all."""

    def __init__(self, principal: Principal, everybody: DeniedPermissions) -> None:
        super().__init__(principal.denied)
        self.principal = principal
        self._everybody = everybody

    def __contains__(self, permission: object) -> bool:
        """Whether the permission is denied."""
        text = str(permission)
        own = self.principal.denied
        if text in own or text in self._everybody:
            return True
        return any_topic(text) in own

    @property
    def restricted(self) -> bool:
        """Whether anything is denied to the principal."""
        return bool(self.permissions or self._everybody.permissions)

    def topic(self, operation: str, topic: str) -> bool:
        """Whether the operation is allowed on the topic."""
        return f"{operation} topic {topic}" not in self

    def cluster(self, operation: str) -> bool:
        return f"{operation} cluster" not in self

    def topic_operations(self, topic: str) -> int:
        """The bit field of authorized operations."""
        return _bits(operation for operation in OF_TOPICS if self.topic(operation, topic))

    def cluster_operations(self) -> int:
        return _bits(operation for operation in OF_CLUSTER if self.cluster(operation))


def _bits(operations: Iterable[str]) -> int:
    return sum(1 << CODES[operation] for operation in operations)


def principals(text: object) -> dict[str, Principal]:
    """Parses ``{name: {password: …, denied: […]}}``, with ``denied`` as in Principal. Raises ValueError with
    one line.
    """
    if (
        not isinstance(text, Mapping)
        or not text
        or not all(isinstance(reported, Mapping) for reported in text.values())
    ):
        raise ValueError("give NAME: {password: …, denied: […]} for each user")
    found = {}
    for name, reported in text.items():
        unknown = sorted(set(reported) - {"password", "denied"})
        password, denied = reported.get("password"), reported.get("denied", ())
        if unknown or not isinstance(password, str) or not isinstance(denied, (list, tuple)):
            raise ValueError(f"user {name}: give a password, and what is denied as a list")
        wrong = next((permission for permission in denied if not is_permission(permission)), None)
        if wrong is not None:
            raise ValueError(f"user {name}: denied: {wrong!r} is not {EXPECTED}")
        found[str(name)] = Principal(str(name), password, frozenset(denied))
    return found
