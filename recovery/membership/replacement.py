"""A controller replacement as a value: the request and its steps (KIP-853, "Common scenarios")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint


class ReplacementKind(StrEnum):
    """The reason for the replacement (``--why``)."""

    DISK = "disk"
    HOST = "host"
    PLANNED = "planned"
    GROW = "grow"
    SHRINK = "shrink"


class StepKind(StrEnum):
    """Who acts in a step: the operator on a host, or the tool at the quorum."""

    STOP = "stop"
    START = "start"
    SWAP = "swap"
    CATCH_UP = "catch up"
    ADD = "add"
    REMOVE = "remove"
    STAY_OUT = "stay out"
    JOIN = "join by itself"
    SERVERS = "bootstrap servers"
    CHECK = "check"

    @property
    def sends(self) -> bool:
        """Whether the tool changes the voters in it."""
        return self in (StepKind.ADD, StepKind.REMOVE)

    @property
    def operator_confirms(self) -> bool:
        """Whether the operator may have to confirm that the step is done: the cluster does not always show
        it.
        """
        return self in (StepKind.SERVERS, StepKind.SWAP, StepKind.STAY_OUT)

    @property
    def on_host(self) -> bool:
        """Whether the operator has to do something on a host."""
        return self in (
            StepKind.STOP,
            StepKind.START,
            StepKind.SWAP,
            StepKind.STAY_OUT,
            StepKind.SERVERS,
        )


class ReplacementError(ValueError):
    """A replacement that cannot be planned, or a plan that cannot be read; one line with what to do."""


@dataclass(frozen=True, slots=True)
class ReplacementRequest:
    """What is asked for. ``leaving`` are the voters that go, ``joining`` the nodes that come (for a disk the same
    node), with the endpoints where they are known.

    ``auto_join``: a controller adds itself (controller.quorum.auto.join.enable), so a removed one that still runs
    comes back. ``add_first``: the quorum lets a second voter of the same node in, as KIP-853's text has it.
    ``static``: kraft.version 0, where the voters are a setting of every node.
    """

    kind: ReplacementKind
    cluster_id: str
    voters: tuple[Voter, ...]
    leaving: tuple[ReplicaKey, ...] = ()
    joining: tuple[int, ...] = ()
    endpoints: tuple[tuple[int, tuple[VoterEndpoint, ...]], ...] = ()
    leader: int = -1
    auto_join: bool = False
    add_first: bool = False
    static: bool = False

    def endpoints_of(self, node_id: int) -> tuple[VoterEndpoint, ...]:
        """The endpoints of that node: as given, or as in its voter record; empty if neither is known."""
        given = dict(self.endpoints).get(node_id, ())
        if given:
            return given
        return next((v.endpoints for v in self.voters if v.key.id == node_id), ())

    @property
    def servers(self) -> tuple[str, ...]:
        """The wanted controller.quorum.bootstrap.servers; ``HOST-OF-N:PORT`` if a host is not known."""
        gone = {key.id for key in self.leaving} - set(self.joining)
        ids = [v.key.id for v in self.voters if v.key.id not in gone]
        ids += [node for node in self.joining if node not in ids]
        return tuple(_server(self.endpoints_of(node), node) for node in ids)


def gone_nodes(wanted: ReplacementRequest) -> tuple[int, ...]:
    """The nodes that leave and do not come back with another disk."""
    return tuple(key.id for key in wanted.leaving if key.id not in wanted.joining)


class ReplacementStep(NamedTuple):
    """One step. ``commands`` are typed on the host, word for word; ``sends`` is what the tool asks of the leader;
    ``waits_for`` ends the step; ``risks`` is what can go wrong, ``back`` how to go back from here.

    ``voters`` is the set after it, by node.
    """

    number: int
    kind: StepKind
    node: int
    key: ReplicaKey | None
    title: str
    commands: tuple[str, ...]
    sends: str
    waits_for: str
    risks: tuple[str, ...]
    back: str
    voters: tuple[int, ...]

    @property
    def stands(self) -> str:
        """How many failures the set tolerates after this step, with all its voters up."""
        spare = len(self.voters) - (len(self.voters) // 2 + 1)
        return (
            f"voters {', '.join(map(str, self.voters))}: tolerates {spare} failure{'' if spare == 1 else 's'}"
        )


@dataclass(frozen=True, slots=True)
class ReplacementHeader:
    """Who made the plan, and when (ISO 8601)."""

    plan_id: str
    made_at: str
    made_by: str
    tool_version: str


@dataclass(frozen=True, slots=True)
class ReplacementPlan:
    """A request with its steps, which follow from it."""

    header: ReplacementHeader
    wanted: ReplacementRequest
    steps: tuple[ReplacementStep, ...]
    notes: tuple[str, ...]

    def step(self, number: int) -> ReplacementStep:
        return self.steps[number - 1]


def _server(endpoints: tuple[VoterEndpoint, ...], node: int) -> str:
    if not endpoints:
        return f"HOST-OF-{node}:PORT"
    return endpoints[0].address
