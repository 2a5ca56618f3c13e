"""Permissions that can be denied: "READ topic payments", "READ topic *", "ALTER cluster"."""

from __future__ import annotations

from collections.abc import Iterable

OF_TOPICS = ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
OF_CLUSTER = (
    "CREATE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
)
EXPECTED = (
    "OPERATION cluster or OPERATION topic NAME (* is any);"
    f" of the cluster {', '.join(OF_CLUSTER)}; of topics {', '.join(OF_TOPICS)}"
)


def is_permission(text: object) -> bool:
    """Whether the text is such a permission."""
    words = text.split(" ") if isinstance(text, str) else []
    if len(words) == 2:
        return words[0] in OF_CLUSTER and words[1] == "cluster"
    return len(words) == 3 and words[0] in OF_TOPICS and words[1] == "topic" and bool(words[2])


def any_topic(permission: str) -> str | None:
    """The same permission on every topic; None if it is not about a topic."""
    operation, _, resource = permission.partition(" ")
    return f"{operation} topic *" if resource.startswith("topic ") else None


class DeniedPermissions:
    """What the operator may not do at present, such as "READ topic payments" or "READ topic *"."""

    def __init__(self, permissions: Iterable[str] = ()) -> None:
        self.permissions = frozenset(permissions)

    def __contains__(self, permission: object) -> bool:
        if not self.permissions:
            return False
        return permission in self.permissions or any_topic(str(permission)) in self.permissions
