"""What every node of one simulated cluster shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from backends.simulator.config import Config
from backends.simulator.events import Emit
from backends.simulator.group_store import GroupStore
from backends.simulator.history import History
from backends.simulator.idempotent_producers import IdempotentProducers
from backends.simulator.loop import Loop
from backends.simulator.network import Network
from backends.simulator.permissions import any_topic
from backends.simulator.quorum.quorum_log import QuorumLog
from backends.simulator.record_batches import RecordContents, RecordTimes
from backends.simulator.transaction_logs import TransactionLogs


class DeniedPermissions:
    """What the operator may not do at present, such as "READ topic payments" or "READ topic *"."""

    def __init__(self, permissions: Iterable[str] = ()) -> None:
        self.permissions = frozenset(permissions)

    def __contains__(self, permission: object) -> bool:
        if not self.permissions:
            return False
        return permission in self.permissions or any_topic(str(permission)) in self.permissions


@dataclass(frozen=True, slots=True)
class Context:
    """``emit`` takes the events that invariants check. ``controllers`` are the ids of all controllers.

    ``topic_configs`` are settings that nothing in the simulator depends on (``cleanup.policy``, say).
    ``denied`` is what the operator may not do; it starts as the configuration says.
    """

    loop: Loop
    network: Network
    config: Config
    history: History
    emit: Emit
    metadata: QuorumLog
    controllers: tuple[int, ...]
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    denied: DeniedPermissions = field(default_factory=DeniedPermissions)
    times: RecordTimes = field(default_factory=RecordTimes)
    contents: RecordContents = field(default_factory=RecordContents)
    producers: IdempotentProducers = field(default_factory=IdempotentProducers)
    transactions: TransactionLogs = field(default_factory=TransactionLogs)
    groups: GroupStore = field(default_factory=GroupStore)
