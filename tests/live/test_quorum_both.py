"""One story of a quorum, told by real Kafka and by the simulator: after each step both show the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

import pytest

from backends.base.errors import BackendError
from backends.base.membership import ChangeAnswer, Membership
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.quorum.quorum_log import QuorumLog
from backends.simulator.scenario.files import BUILT_IN, parse
from recovery.membership.quorum import Quorum
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.live_backend import MemoryRecorder, open_backend
from tests.side_by_side.quorum import lasting

CLUSTER = ClusterSpec(controllers=3, brokers=1, spare_controllers=1)
FIRST, SPARE = (100, 101, 102), 103
FRESH_MS = 2_000
SETTLE = 60.0


class Side(Protocol):
    """A quorum, and the hosts of its controllers."""

    membership: Membership

    def kill(self, node: int) -> None: ...

    def start(self, node: int) -> None: ...

    def wipe(self, node: int) -> None:
        """A new disk, formatted without initial controllers."""
        ...

    def endpoint(self, node: int) -> VoterEndpoint: ...


class Real:
    def __init__(self, cluster: KafkaCluster, membership: Membership) -> None:
        self.membership = membership
        self._cluster = cluster

    def kill(self, node: int) -> None:
        self._cluster.node(node).kill()

    def start(self, node: int) -> None:
        self._cluster.node(node).start()

    def wipe(self, node: int) -> None:
        self._cluster.format_again(node)

    def endpoint(self, node: int) -> VoterEndpoint:
        return VoterEndpoint("CONTROLLER", "127.0.0.1", self._cluster.node(node).port)


class Simulated:
    def __init__(self, backend: SimulatorBackend) -> None:
        self.membership: Membership = backend.membership
        self.world = backend.simulation.world

    def kill(self, node: int) -> None:
        self.world.kill_controller(node)

    def start(self, node: int) -> None:
        self.world.start_controller(node)

    def wipe(self, node: int) -> None:
        self.world.replace_controller_disk(node)

    def endpoint(self, node: int) -> VoterEndpoint:
        return self.quorum.context.hosts[node].endpoints[0]

    @property
    def quorum(self) -> QuorumLog:
        return self.world.quorum


class Shown(NamedTuple):
    """By node id: the voters, and the controllers that fetch as observers; and whether the leader is a voter."""

    voters: tuple[int, ...]
    observers: tuple[int, ...]
    leader_is_voter: bool


def shown(quorum: Quorum) -> Shown:
    keys = quorum.voters.keys
    fresh = [held for held in quorum.progress if quorum.now_ms - held.last_fetch_ms < FRESH_MS]
    observers = [held.key.id for held in fresh if held.key not in keys and held.key.id >= FIRST[0]]
    voters = tuple(sorted(key.id for key in keys))
    return Shown(voters, tuple(sorted(observers)), quorum.leader in keys)


async def described(side: Side) -> Quorum:
    """Once somebody leads."""
    deadline = time.monotonic() + SETTLE
    while True:
        try:
            return await side.membership.describe()
        except BackendError:
            if time.monotonic() > deadline:
                raise
            await side.membership.pause(0.5)


async def key(side: Side, node: int, *, voter: bool) -> ReplicaKey:
    """The node's key among the voters or the observers, the one that fetched last, once there is one."""
    deadline = time.monotonic() + SETTLE
    while time.monotonic() < deadline:
        quorum = await described(side)
        voters = quorum.voters.keys
        mine = [held for held in quorum.progress if held.key.id == node and (held.key in voters) is voter]
        mine = [
            h
            for h in mine
            if voter or (h.last_caught_up_ms > 0 and h.last_fetch_ms > quorum.now_ms - FRESH_MS)
        ]
        if mine:
            return max(mine, key=lambda held: held.last_fetch_ms).key
        await side.membership.pause(0.5)
    raise AssertionError(f"{node} does not fetch")


async def add(side: Side, node: int) -> ChangeAnswer:
    held = await key(side, node, voter=False)
    voter = Voter(held, (side.endpoint(node),))
    membership = side.membership
    return await lasting(
        membership,
        lambda: membership.add_voter(voter, MemoryRecorder()),
        lambda quorum: held in quorum.voters.keys,
    )


async def remove(side: Side, node: int) -> ChangeAnswer:
    held = await key(side, node, voter=True)
    membership = side.membership
    return await lasting(
        membership,
        lambda: membership.remove_voter(held, MemoryRecorder()),
        lambda quorum: held not in quorum.voters.keys,
    )


async def remove_stranger(side: Side, node: int) -> ChangeAnswer:
    stranger = replace_id(await key(side, node, voter=True))
    membership = side.membership
    return await lasting(
        membership, lambda: membership.remove_voter(stranger, MemoryRecorder()), lambda _quorum: False
    )


def replace_id(held: ReplicaKey) -> ReplicaKey:
    return held._replace(directory_id="AAAAAAAAAAAAAAAAAAAAAQ")


Step = Callable[[Side, int], Awaitable[ChangeAnswer | None]]


async def spare_starts(side: Side, _leader: int) -> None:
    side.wipe(SPARE)
    side.start(SPARE)
    await key(side, SPARE, voter=False)


async def spare_added(side: Side, _leader: int) -> ChangeAnswer:
    return await add(side, SPARE)


def follower(leader: int) -> int:
    return next(node for node in FIRST if node != leader)


async def follower_dies(side: Side, leader: int) -> None:
    side.kill(follower(leader))
    await side.membership.pause(4)


async def its_new_disk(side: Side, leader: int) -> None:
    node = follower(leader)
    side.wipe(node)
    side.start(node)
    await key(side, node, voter=False)


async def added_too_early(side: Side, leader: int) -> ChangeAnswer:
    return await add(side, follower(leader))


async def wrong_directory(side: Side, leader: int) -> ChangeAnswer:
    return await remove_stranger(side, follower(leader))


async def old_disk_removed(side: Side, leader: int) -> ChangeAnswer:
    return await remove(side, follower(leader))


async def new_disk_added(side: Side, leader: int) -> ChangeAnswer:
    return await add(side, follower(leader))


async def leader_removed(side: Side, leader: int) -> ChangeAnswer:
    return await remove(side, leader)


STEPS: tuple[tuple[Step, str], ...] = (
    (spare_starts, ""),
    (spare_added, ""),
    (follower_dies, ""),
    (its_new_disk, ""),
    (added_too_early, "DUPLICATE_VOTER"),
    (wrong_directory, "VOTER_NOT_FOUND"),
    (old_disk_removed, ""),
    (new_disk_added, ""),
    (leader_removed, ""),
)


@pytest.fixture
async def sides(cluster: KafkaCluster) -> AsyncIterator[tuple[Real, Simulated]]:
    text = (BUILT_IN / "controller-node-failure.yaml").read_text(encoding="utf-8")
    scenario = replace(parse(text, "both", "both.yaml"), faults=())
    simulated = SimulatorBackend(scenario, 1)
    await simulated.open()
    async with open_backend(cluster) as real:
        await real.membership.open()
        yield Real(cluster, real.membership), Simulated(simulated)
    await simulated.close()


async def same_leader(real: Real, simulated: Simulated) -> int:
    """Who leads is chance: the simulated quorum is handed over to whom the real one has elected."""
    leader = (await described(real)).leader.id
    simulated.world.failover(leader)
    for _ in range(100):
        if (await described(simulated)).leader.id == leader:
            return leader
        await simulated.membership.pause(0.2)
    raise AssertionError(f"{leader} does not lead the simulated quorum")


async def settled(real: Real, expected: Shown) -> Shown:
    """What the real quorum comes to, waiting for what is expected."""
    deadline = time.monotonic() + SETTLE
    while True:
        found = shown(await described(real))
        if found == expected or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.5)


async def test_both_answer_and_show_the_same_after_every_step(sides: tuple[Real, Simulated]) -> None:
    real, simulated = sides
    leader = await same_leader(real, simulated)
    for step, refused in STEPS:
        of_simulated, of_real = await step(simulated, leader), await step(real, leader)
        for answer in (of_simulated, of_real):
            assert ("" if answer is None else answer.error) == refused, (step.__name__, str(answer))
        await simulated.membership.pause(10)
        expected = shown(await described(simulated))
        assert await settled(real, expected) == expected, step.__name__
