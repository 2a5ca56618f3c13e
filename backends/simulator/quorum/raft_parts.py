"""What the roles of one Raft replica share."""

from __future__ import annotations

from typing import NamedTuple

from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_state import LogWriter, RaftState, RoleChanges
from backends.simulator.rpc import RpcEndpoint


class RaftParts(NamedTuple):
    """A replica's state, its quorum's context, its network, and the changes that its roles may make."""

    state: RaftState
    context: QuorumContext
    endpoint: RpcEndpoint
    roles: RoleChanges
    writer: LogWriter
