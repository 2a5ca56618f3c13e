"""Changes of the quorum's voters: AddRaftVoter and RemoveRaftVoter (KIP-853); UnregisterController of Kafka 4.4."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backends.base.membership import ChangeAnswer, ChangeEnd
from backends.live.codec.primitives import uuid_of
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import check, on_cluster, one_line
from recovery.membership.voters import ReplicaKey, Voter

if TYPE_CHECKING:
    from kio.schema.errors import ErrorCode

GRACE = 5.0
"""Seconds beyond the leader's own limit in which its answer has to be here."""
_NEED = on_cluster("ALTER")
_NOT_ALLOWED = frozenset((29, 30, 31, 53, 65))


async def add_voter(conn: BrokerConnection, cluster_id: str, voter: Voter, timeout: float) -> ChangeAnswer:
    """Ask for ``voter``; the answer comes once it is committed. ``conn`` is a broker's, or the leader's.

    The leader gives up after ``timeout`` seconds. Raises BrokerError (``sent``: it may have been done),
    NotAllowed, NotOffered.
    """
    from kio.schema.add_raft_voter.v0.request import AddRaftVoterRequest, Listener
    from kio.schema.add_raft_voter.v0.response import AddRaftVoterResponse
    from kio.static.primitive import i32, i32Timedelta, u16

    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout=i32Timedelta.parse(timedelta(seconds=timeout)),
        voter_id=i32(voter.key.id),
        voter_directory_id=uuid_of(voter.key.directory_id),
        listeners=tuple(Listener(name=e.listener, host=e.host, port=u16(e.port)) for e in voter.endpoints),
    )
    answer = await conn.send(request, AddRaftVoterResponse, timeout=timeout + GRACE)
    return answered(answer.error_code, answer.error_message, "AddRaftVoter")


async def remove_voter(
    conn: BrokerConnection, cluster_id: str, key: ReplicaKey, timeout: float
) -> ChangeAnswer:
    """Ask for the removal of exactly ``key``. Raises as :func:`add_voter`."""
    from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest
    from kio.schema.remove_raft_voter.v0.response import RemoveRaftVoterResponse
    from kio.static.primitive import i32

    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=i32(key.id), voter_directory_id=uuid_of(key.directory_id)
    )
    answer = await conn.send(request, RemoveRaftVoterResponse, timeout=timeout + GRACE)
    return answered(answer.error_code, answer.error_message, "RemoveRaftVoter")


async def unregister_controller(conn: BrokerConnection, node: int) -> ChangeAnswer:
    """Remove the registration of a controller, with its endpoints and features. Raises as :func:`add_voter`."""
    from kio.static.primitive import i32

    from backends.live.codec.recovery_tool_messages import (
        UnregisterControllerRequest,
        UnregisterControllerResponse,
    )

    request = UnregisterControllerRequest(controller_id=i32(node))
    answer = await conn.send(request, UnregisterControllerResponse)
    return answered(answer.error_code, answer.error_message, "UnregisterController")


def answered(code: ErrorCode, message: str | None, call: str) -> ChangeAnswer:
    """An error code as the end of a request. Raises NotAllowed."""
    if not code:
        return ChangeAnswer(ChangeEnd.DONE)
    if code in _NOT_ALLOWED:
        check(code, call, _NEED, message)
    return ChangeAnswer(ChangeEnd.REFUSED, code.name.upper(), one_line(message or ""))
