"""What every node of one simulated cluster shares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from backends.simulator.config import Config
from backends.simulator.events import Emit
from backends.simulator.group_store import GroupStore
from backends.simulator.history import History
from backends.simulator.idempotent_producers import IdempotentProducers
from backends.simulator.loop import Loop
from backends.simulator.network import Network
from backends.simulator.permissions import DeniedPermissions
from backends.simulator.quorum.quorum_log import QuorumLog
from backends.simulator.record_batches import RecordContents, RecordTimes
from backends.simulator.transaction_logs import TransactionLogs


@dataclass(frozen=True, slots=True)
class Context:
    """``emit`` takes the events that invariants check. ``controllers`` are the ids of all controllers.

    ``topic_configs`` are settings that nothing in the simulator depends on (``cleanup.policy``, say).
    ``denied`` is what the operator may not do; it starts as the configuration says. ``inert_configs`` are what
    clients have set, by (type, name) of the resource, and nothing here acts on.
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
    inert_configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
