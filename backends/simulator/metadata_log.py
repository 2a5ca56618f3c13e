"""The replicated metadata log as the controllers use it; the quorum stands behind it (KIP-595, KIP-853).

A payload is opaque to the log. What a controller appends is committed in order or lost with its leadership;
what is committed is never undone.
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
    """A committed entry: its offset in the log, and what was appended."""

    offset: int
    payload: Any


class CommittedRead(NamedTuple):
    """``entries`` in order; ``reached`` is the newest offset that a reader has seen with them, records that are
    none of its business included; ``whole``: nothing was left out between the offset asked for and there.
    """

    entries: Sequence[CommittedPayload]
    reached: int
    whole: bool


class MetadataLogListener(Protocol):
    """What a controller hears from its replica of the log."""

    def lead(self, epoch: int, last: Any | None) -> None:
        """This controller became leader of ``epoch`` and may append; ``last`` is the newest payload of its log,
        None in an empty one. Everything in its log is committed by then.
        """
        ...

    def resign(self) -> None:
        """This controller no longer leads; what it appended and is not committed may be lost."""
        ...

    def halt(self) -> None:
        """The disk under the log failed: the process ends."""
        ...


class MetadataLog(Protocol):
    """All replicas of the log. ``controller`` is always the id of the node at which something is asked."""

    def start(self, controller: int, endpoint: RpcEndpoint, listener: MetadataLogListener) -> None:
        """The controller's process started; its replica of the log is as it left it."""
        ...

    def stop(self, controller: int) -> None:
        """The controller's process is gone; may be called twice."""
        ...

    def receive(self, controller: int, source: NetworkNode, body: Any, answer: Answer) -> bool:
        """A request that arrived at the controller; False where it is none of the log's."""
        ...

    def leading_epoch(self, controller: int) -> int:
        """The epoch in which the controller believes that it leads, -1 where it does not."""
        ...

    def leader_known_to(self, controller: int) -> int | None:
        """Whom the controller believes to lead."""
        ...

    def append(self, controller: int, payload: Any, done: Callable[[bool], None]) -> None:
        """Append at the leader. ``done`` is called once: True when it is committed, False when the leadership was
        lost before (it may be committed later all the same).
        """
        ...

    def committed(self, controller: int, after: int, limit: int) -> CommittedRead:
        """At most ``limit`` entries behind offset ``after`` that the controller knows to be committed."""
        ...

    def observed(self, controller: int, observer: ReplicaKey, offset: int) -> None:
        """A broker fetched up to ``offset`` from the controller."""
        ...

    def describe(self, controller: int) -> Quorum | Unknown:
        """DescribeQuorum, as the controller answers it."""
        ...
