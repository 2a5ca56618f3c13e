"""What all replicas of one quorum share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from backends.simulator.config import Config
from backends.simulator.events import Emit
from backends.simulator.history import History
from backends.simulator.loop import Loop
from backends.simulator.network import NetworkNode, controller
from backends.simulator.quorum.metadata_disk import LISTENER, ControllerHost
from backends.simulator.quorum.raft_messages import QuorumLeader
from recovery.membership.quorum import MembershipRules
from recovery.membership.raft_votes import RaftLogEnd
from recovery.membership.voters import VoterEndpoint


@dataclass(frozen=True, slots=True)
class QuorumContext:
    """``hosts`` is the configuration of each controller, which an operator may change. ``bootstrap`` is
    ``controller.quorum.bootstrap.servers``, as ids.

    ``committed`` is called with (log end after the payload, id of the leader that committed it, payload); more
    than one leader may report the same payload. ``brokers_without`` returns the registered brokers that do not
    support a level of kraft.version; the controller tells the quorum (KIP-853).
    """

    loop: Loop
    config: Config
    cluster_id: str
    history: History
    emit: Emit
    committed: Callable[[RaftLogEnd, int, Any], None]
    hosts: dict[int, ControllerHost]
    bootstrap: tuple[int, ...]
    brokers_without: Callable[[int], list[int]]

    @property
    def rules(self) -> MembershipRules:
        return self.config.membership

    def resolve(self, endpoints: Iterable[VoterEndpoint]) -> NetworkNode | None:
        """The controller that listens at the first endpoint of the controllers' listener; None if there is
        none.
        """
        for endpoint in endpoints:
            if endpoint.listener == LISTENER:
                for host in self.hosts.values():
                    if (host.host, host.port) == (endpoint.host, endpoint.port):
                        return controller(host.id)
        return None

    def now_ms(self) -> int:
        return self.loop.now // 1000

    def leader_at(self, controller: int) -> QuorumLeader:
        """The controller's id and endpoints, as a leader announces itself."""
        return QuorumLeader(controller, self.hosts[controller].endpoints)

    def note(self, controller: int, what: str) -> None:
        """Add a line to the history."""
        self.history.add(f"controller-{controller}", what)
