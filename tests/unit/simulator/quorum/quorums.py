"""Small quorums for tests: three voters, 100 to 102, of which 100 leads, and machines for more of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from backends.simulator.invariants.checker import Checker
from backends.simulator.loop import SECOND
from backends.simulator.network import NetworkNode, controller
from backends.simulator.quorum.raft_messages import DescribeQuorum, RaftVoterReply
from backends.simulator.quorum.raft_replica import RaftReplica
from backends.simulator.world import World
from recovery.membership.quorum import Quorum
from recovery.membership.voters import ReplicaKey
from tests.unit.simulator import clusters

VOTERS = (100, 101, 102)
SPARE = (103, 104)


def quorum(
    voters: tuple[int, ...] = VOTERS, *, seed: int = 1, observers: tuple[int, ...] = (), **config: Any
) -> World:
    """Every invariant is checked at every step. ``observers`` are spare controllers that run and have caught up."""
    made = replace(
        clusters.topology(acks=None),
        controllers=voters,
        spare_controllers=tuple(number for number in (*VOTERS, *SPARE) if number not in voters),
        config=replace(clusters.QUICK, **config),
    )
    world = World(made, seed)
    Checker(world)
    for number in observers:
        world.start_controller(number)
    if observers:
        until(world, lambda: all(knows(world, number) for number in observers))
    return world


def knows(world: World, number: int) -> bool:
    """Whether the replica has everything that is committed."""
    replica = world.quorum.replicas.get(number)
    leader = world.quorum.leader
    return replica is not None and leader is not None and replica.log.end == leader.log.end


def until(world: World, condition: Callable[[], bool], limit: int = 60 * SECOND) -> None:
    """Run until the condition holds; fails, with the history, where it does not come to that."""
    if not world.loop.run_while(lambda: not condition(), limit):
        lines = "\n".join(str(line) for line in world.history.lines[-30:])
        raise AssertionError(f"not within {limit // SECOND} s\n{lines}")


def leads(world: World) -> RaftReplica:
    """The leader, once there is one that may write."""
    until(world, lambda: world.quorum.leader is not None and announced(world.quorum.leader))
    leader = world.quorum.leader
    assert leader is not None
    return leader


def announced(replica: RaftReplica) -> bool:
    return replica.leadership is not None and replica.leadership.announced


def key(world: World, number: int) -> ReplicaKey:
    return world.quorum.disks[number].key


def voters(world: World, number: int | None = None) -> tuple[int, ...]:
    """The node ids of the voters, as the leader or a given controller has them on its disk."""
    log = leads(world).log if number is None else world.quorum.disks[number].log
    return tuple(sorted(key.id for key in log.voters.keys))


def cut(world: World, one: tuple[int, ...], other: tuple[int, ...]) -> None:
    world.network.cut(nodes(one), nodes(other))


def nodes(numbers: tuple[int, ...]) -> list[NetworkNode]:
    return [controller(number) for number in numbers]


def others(world: World, number: int) -> tuple[int, ...]:
    return tuple(other for other in world.topology.every_controller if other != number)


def send(world: World, number: int, body: Any) -> list[Any]:
    """The operator asks that controller; what it answers comes into the list."""
    replies: list[Any] = []
    world.operator.ask(controller(number), body, 600 * SECOND, replies.append)
    return replies


def ask(world: World, number: int, body: Any) -> RaftVoterReply:
    """As :func:`send`, waiting for the answer."""
    replies = send(world, number, body)
    until(world, lambda: bool(replies))
    reply = replies[0]
    assert isinstance(reply, RaftVoterReply)
    return reply


def described(world: World) -> Quorum:
    """DescribeQuorum, as the leader answers it now."""
    answers: list[Any] = []
    world.quorum.receive(leads(world).id, DescribeQuorum(), answers.append)
    found = answers[0]
    assert isinstance(found, Quorum)
    return found


def error(reply: RaftVoterReply) -> str:
    return "NONE" if reply.refusal is None else reply.refusal.error.value
