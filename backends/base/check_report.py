"""What ``ktriage check`` asks before an incident: reachability, calls offered, permissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from backends.base.answers import Capabilities, ClusterInfo, Contact
from recovery.model import Unknown

CLUSTER_RESOURCE = "Cluster:kafka-cluster"
TOPICS = "Topic:*"
GROUPS = "Group:*"
TRANSACTIONAL_IDS = "TransactionalId:*"

CLUSTER_RIGHTS = {
    "DESCRIBE": "log dirs, the quorum, reassignments in progress, hidden topics, all consumer groups",
    "ALTER": "",
    "DESCRIBE_CONFIGS": "making sure which broker answers at an address, throttles",
    "ALTER_CONFIGS": "",
    "CLUSTER_ACTION": "the native calls (GetReplicaLogInfo, ElectLeaders v3)",
}
"""Operations on the cluster, and what is read with them; each kind of change says what it needs them for."""

TOPIC_RIGHTS = {
    "DESCRIBE": "partitions and log end offsets",
    "READ": "the epoch of the last record, lineage, log start, open transactions",
    "DESCRIBE_CONFIGS": "min.insync.replicas, the kind of topic",
    "ALTER_CONFIGS": "",
}
"""The same on topics."""

GROUP_RIGHTS = {"DESCRIBE": "committed offsets and members of groups", "READ": ""}
"""The same on consumer groups."""

TRANSACTIONAL_ID_RIGHTS = {"DESCRIBE": "open transactions, and how they were decided"}
"""The same on transactional ids."""


class Reachability(NamedTuple):
    """How one broker is reached from here; ``problem`` is None if it answered.

    ``overridden``: the address is from --broker, not the advertised one. ``verified``: the node confirmed its id.
    ``caught_up``: it has the latest metadata, as the quorum's leader sees it; None: not known.
    """

    broker: int
    address: str
    overridden: bool
    problem: Unknown | None
    verified: bool
    caught_up: bool | None
    fenced: bool | None


class PermissionCheck(NamedTuple):
    """Whether the caller has a permission; ``used_for``: what is read with it. ``missing`` are topics or groups
    without it, of ``looked_at`` (0: it is of the cluster, or of every name).
    """

    operation: str
    resource: str
    used_for: str
    granted: bool | Unknown
    missing: tuple[str, ...] = ()
    looked_at: int = 0


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What ``ktriage check`` shows. ``hidden`` topics exist and may not be described; Unknown: not known."""

    cluster: ClusterInfo
    reach: tuple[Reachability, ...]
    capabilities: Capabilities
    rights: tuple[PermissionCheck, ...]
    hidden: tuple[str, ...] | Unknown

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """How each broker fared, for a reading of the cluster."""
        return tuple(Contact(one.broker, one.address, one.problem, 0.0, "") for one in self.reach)
