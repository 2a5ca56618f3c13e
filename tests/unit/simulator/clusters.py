"""Small clusters for tests, and ways to wait for what happens in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from backends.simulator.config import Config
from backends.simulator.invariants.checker import Checker
from backends.simulator.loop import SECOND
from backends.simulator.network import NetworkNode, broker, controller
from backends.simulator.topology import BrokerSpec, ProducerSpec, TopicSpec, Topology
from backends.simulator.world import World
from recovery.controller.registration import Registration
from recovery.controller.rules import ControllerRules
from recovery.model import TopicPartition

FOO = TopicPartition("foo", 0)

QUICK = Config(
    broker_heartbeat_interval=SECOND // 2,
    broker_session_timeout=3 * SECOND,
    replica_lag_time_max=5 * SECOND,
    flush_interval=600 * SECOND,
    auto_leader_rebalance=False,
)


def topology(
    brokers: int = 3,
    *,
    min_isr: int = 2,
    records: int = 1000,
    acks: int | None = -1,
    config: Config = QUICK,
    log_dirs: int = 1,
    partitions: int = 1,
) -> Topology:
    """Topic foo on all of the brokers, 1 to ``brokers``; with ``acks``, somebody produces to it."""
    replicas = tuple(range(1, brokers + 1))
    producers = () if acks is None else (ProducerSpec("foo", (0,), acks, 10, SECOND // 10),)
    return Topology(
        "test",
        tuple(BrokerSpec(number, log_dirs=log_dirs) for number in replicas),
        (TopicSpec("foo", partitions, (replicas,), records=records),),
        min_isr=min_isr,
        config=config,
        producers=producers,
    )


def without_elr(config: Config = QUICK) -> Config:
    """As Kafka is where the ELR feature is off."""
    return replace(config, rules=ControllerRules(elr=False))


def cluster(made: Topology, seed: int = 1, *, strict: bool = True) -> World:
    """The cluster with every invariant checked at every step."""
    world = World(made, seed)
    Checker(world, strict=strict)
    return world


def foo(world: World) -> Registration:
    return world.image.partitions[FOO]


def until(world: World, condition: Callable[[], bool], limit: int = 120 * SECOND) -> None:
    """Run until the condition holds; fails where it does not come to that."""
    if not world.loop.run_while(lambda: not condition(), limit):
        lines = "\n".join(str(line) for line in world.history.lines[-30:])
        raise AssertionError(f"not within {limit // SECOND} s: {foo(world)}\n{lines}")


def tell(world: World, body: object) -> Any:
    """The active controller's answer."""
    active = world.active
    assert active is not None
    assert active.active is not None
    heard: list[Any] = []
    active.active.handle(body, heard.append)
    until(world, lambda: bool(heard))
    return heard[0]


def ask(world: World, body: object, number: int = 1) -> Any:
    """A broker's answer to somebody outside the cluster."""
    heard: list[Any] = []
    world.operator.ask(broker(number), body, 10 * SECOND, heard.append)
    until(world, lambda: bool(heard))
    return heard[0]


def everybody_else(world: World, *brokers: int) -> list[NetworkNode]:
    """All nodes but these brokers."""
    return [node for node in world.nodes() if node not in {broker(number) for number in brokers}]


def controllers(world: World) -> list[NetworkNode]:
    return [controller(number) for number in world.topology.controllers]


def isolate(world: World, number: int) -> None:
    """Cut the broker off from every other node."""
    world.network.cut([broker(number)], everybody_else(world, number))


def end(world: World, number: int) -> int:
    """The log end offset of foo-0 on the broker's disk."""
    return world.disks[number].logs[FOO].end


def isr_change_pending(world: World, number: int = 1) -> bool:
    """Whether the leader has asked for another ISR of foo, and has no answer yet."""
    lead = world.brokers[number].leader.leading(FOO)
    return lead is not None and lead.pending is not None
