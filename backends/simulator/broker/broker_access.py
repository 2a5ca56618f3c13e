"""What a request over a real socket may use of the broker at which it arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from backends.simulator.broker.broker_state import BrokerState
from backends.simulator.broker.log_storage import LogStorage
from backends.simulator.broker.partition_leader import PartitionLeader
from backends.simulator.rpc import Answer, RpcEndpoint


class BrokerAccess(NamedTuple):
    """Handlers read ``state`` and ``storage``, produce through ``leader``, and forward through ``endpoint``."""

    state: BrokerState
    storage: LogStorage
    leader: PartitionLeader
    endpoint: RpcEndpoint


class Perform(NamedTuple):
    """Calls ``act`` when this arrives at the broker, with the way to answer.

    For requests from a real socket that have no message of their own in the simulator.
    """

    act: Callable[[BrokerAccess, Answer], None]
