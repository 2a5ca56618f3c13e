"""The replicated metadata log, as the controllers use it; the quorum implements it (KIP-595, KIP-853).

The log does not look into a payload. An appended payload is committed in order, or lost with the leadership; a
committed one is never undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from backends.simulator.network import NetworkNode
from backends.simulator.rpc import Answer, RpcEndpoint
from recovery.membership.quorum import Quorum
from recovery.membership.voters import ReplicaKey
from recovery.model import Unknown


class CommittedPayload(NamedTuple):
    """A committed entry: its offset in the log, and its payload."""

    offset: int
    payload: Any


class CommittedRead(NamedTuple):
    """``entries`` in order. ``reached`` is the newest offset that the reader has now seen, records of the
    quorum included. ``whole``: nothing is missing between the requested offset and ``entries``.
    """

    entries: Sequence[CommittedPayload]
    reached: int
    whole: bool


class MetadataLogListener(Protocol):
    """How a replica of the log notifies its controller."""

    def lead(self, epoch: int, last: Any | None) -> None:
        """This controller leads ``epoch`` and may append. ``last`` is the newest payload of its log, None in an
        empty one. Its whole log is committed by then.
        """
        ...

    def resign(self) -> None:
        """This controller no longer leads; its uncommitted payloads may be lost."""
        ...

    def halt(self) -> None:
        """The disk of the log failed: the process must end."""
        ...


class MetadataLog(Protocol):
    """All replicas of the log. ``controller`` is the id of the node that handles the call."""

    def start(self, controller: int, endpoint: RpcEndpoint, listener: MetadataLogListener) -> None:
        """The controller's process started, with the replica that its disk holds."""
        ...

    def stop(self, controller: int) -> None:
        """The controller's process ended; may be called twice."""
        ...

    def receive(self, controller: int, source: NetworkNode, body: Any, answer: Answer) -> bool:
        """Handle a request that arrived at the controller; False if it is not for the log."""
        ...

    def leading_epoch(self, controller: int) -> int:
        """The epoch in which the controller believes to lead, -1 if it does not."""
        ...

    def leader_known_to(self, controller: int) -> int | None:
        """The node that the controller believes to lead."""
        ...

    def is_voter(self, controller: int) -> bool:
        """Whether the newest voter set that the controller knows has it."""
        ...

    def append(self, controller: int, payload: Any, done: Callable[[bool], None]) -> None:
        """Append at the leader. ``done`` is called once: True when it is committed, False if the leadership was
        lost before (it may still be committed later).
        """
        ...

    def committed(self, controller: int, after: int, limit: int) -> CommittedRead:
        """At most ``limit`` entries after offset ``after`` that the controller knows to be committed."""
        ...

    def observed(self, controller: int, observer: ReplicaKey, offset: int) -> None:
        """A broker fetched up to ``offset`` from the controller."""
        ...

    def describe(self, controller: int) -> Quorum | Unknown:
        """DescribeQuorum, as the controller answers it."""
        ...
