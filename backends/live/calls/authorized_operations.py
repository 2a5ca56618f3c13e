"""Authorized operations (KIP-430): a bit field in an answer that says what the caller may do."""

from __future__ import annotations

from typing import NamedTuple

NOT_ASKED = -(2**31)
"""The bit field where authorized operations were not asked for."""
CODES = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
"""Kafka's AclOperation codes: the bit positions."""


class Operations(NamedTuple):
    """The operations allowed on one resource, by Kafka's names (AclOperation codes as bit positions)."""

    allowed: frozenset[str]

    @classmethod
    def of(cls, bits: int) -> Operations | None:
        """Read the bit field; None if the broker left it out."""
        if bits == NOT_ASKED:
            return None
        return cls(frozenset(name for name, code in CODES.items() if bits >> code & 1))

    def allows(self, operation: str) -> bool:
        """True where ``operation`` is allowed."""
        return operation in self.allowed
