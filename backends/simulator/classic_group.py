"""A consumer group of the classic protocol, as its coordinator has it, and what members ask of it (Kafka,
"Consumer rebalance protocol": JoinGroup, SyncGroup, Heartbeat, LeaveGroup; KIP-345 for static members).

Times are µs of virtual time.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from backends.simulator.messages import Error


class GroupPhase(StrEnum):
    """The states of a group, as DescribeGroups names them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class AwaitedRequest(StrEnum):
    """Which request of a member its coordinator has not answered yet."""

    NOTHING = "nothing"
    JOIN = "join"
    SYNC = "sync"


class AssignorOffer(NamedTuple):
    """An assignor that a member can use, and its subscription for it, which the coordinator does not read."""

    name: str
    metadata: bytes


class ClassicMember(NamedTuple):
    """``instance`` is the group.instance.id of a static member. ``expires``: when the session ends without a
    heartbeat; it does not while a request of the member is ``awaited``. ``unsynced``: it has joined the present
    generation, and not asked for its assignment yet.
    """

    id: str
    instance: str | None
    client_id: str
    host: str
    session_timeout: int
    rebalance_timeout: int
    offers: tuple[AssignorOffer, ...]
    expires: int
    assignment: bytes = b""
    awaited: AwaitedRequest = AwaitedRequest.NOTHING
    unsynced: bool = False


class FirstWait(NamedTuple):
    """An empty group waits a little for more members (group.initial.rebalance.delay.ms). ``left``: for how much
    longer it may, each time that ``grown`` says that one came.
    """

    left: int
    grown: bool = False


class ClassicGroup(NamedTuple):
    """``members`` are in the order in which they came. ``promised`` are member ids that were given out and have not
    joined yet, with the times until which they may. ``deadline`` is when a rebalance goes on without those that are
    missing.
    """

    name: str
    phase: GroupPhase = GroupPhase.EMPTY
    generation: int = 0
    protocol_type: str = ""
    assignor: str | None = None
    leader: str | None = None
    members: tuple[ClassicMember, ...] = ()
    promised: tuple[tuple[str, int], ...] = ()
    deadline: int = 0
    first_wait: FirstWait | None = None

    def member(self, member_id: str) -> ClassicMember | None:
        return next((one for one in self.members if one.id == member_id), None)

    def static_member(self, instance: str | None) -> ClassicMember | None:
        """The member that has this group.instance.id."""
        if instance is None:
            return None
        return next((one for one in self.members if one.instance == instance), None)


# Requests of members.


class JoinGroup(NamedTuple):
    """``member_id`` is empty at first; ``new_id`` is what the member is to be called then. ``known_first``: it has
    to ask again with that id (from v4 on). ``skips_assignment``: it understands that it leads and is not to assign
    (from v9 on).
    """

    group: str
    member_id: str
    instance: str | None
    new_id: str
    client_id: str
    host: str
    session_timeout: int
    rebalance_timeout: int
    protocol_type: str
    offers: tuple[AssignorOffer, ...]
    known_first: bool = True
    skips_assignment: bool = True


class MemberClaim(NamedTuple):
    """Who a client says it is. Without membership: no id, and generation -1."""

    member_id: str = ""
    generation: int = -1
    instance: str | None = None


class SyncGroup(NamedTuple):
    """``assignments`` are (member id, assignment), of the leader only. Protocol and assignor are None before v5."""

    group: str
    claim: MemberClaim
    protocol_type: str | None
    assignor: str | None
    assignments: tuple[tuple[str, bytes], ...]


class GroupHeartbeat(NamedTuple):
    group: str
    claim: MemberClaim


class LeaveGroup(NamedTuple):
    """``members`` are (member id, group.instance.id); one of the two is enough for a static member."""

    group: str
    members: tuple[tuple[str, str | None], ...]


GroupRequest = JoinGroup | SyncGroup | GroupHeartbeat | LeaveGroup


# Answers.


class JoinReply(NamedTuple):
    """``members`` are (id, group.instance.id, subscription), for the leader only, which assigns partitions."""

    error: Error | None
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    assignor: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


class SyncReply(NamedTuple):
    error: Error | None
    protocol_type: str | None = None
    assignor: str | None = None
    assignment: bytes = b""


class HeartbeatReplied(NamedTuple):
    error: Error | None


class LeaveReply(NamedTuple):
    """For each member of the request the error, None where it has left."""

    errors: tuple[Error | None, ...]


GroupReply = JoinReply | SyncReply | HeartbeatReplied | LeaveReply
