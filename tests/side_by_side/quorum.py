"""The metadata quorum of either side, by common names: the first leader and the two others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from backends.base.errors import BackendError, NoLeader
from backends.base.membership import ChangeAnswer, ChangeEnd, Membership
from backends.base.protocol import Backend
from backends.live.adapter import LiveBackend
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.world import World
from recovery.membership.quorum import Quorum
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from testbed.kafka import KafkaCluster
from tests.contract.backend_requests import MemoryRecorder
from tests.contract.cluster_driver import ClusterDriver
from tests.contract.simulated_cluster_driver import QUICK
from tests.side_by_side.both_clusters import SimulatedSide
from tests.side_by_side.script import Script, Step, VoterChange

NAMES = ("first", "second", "third")
"""The leader when the script begins, then the others by their ids."""

RETRIES = 90
PASSING = ("REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER")
"""Errors after which an operator tries again: the leader is new and has no high watermark yet, cannot connect to a
node that has just started, waits for another answer, or no longer leads; on a busy machine a controller that was
removed can count as lagging behind for half a minute.
"""
LEADS_ON = 5
"""Seconds after which a removed leader that still leads does not resign."""
SETTLED = 12.0
"""Seconds of the simulator's time in which a change of the quorum is over."""


class QuorumSnapshot(NamedTuple):
    """``voters`` with whether their directory is the node's present one; ``observers`` are controllers only."""

    voters: tuple[tuple[str, bool], ...]
    observers: tuple[str, ...]


class Hosts(Protocol):
    """The hosts of the controllers."""

    def directory(self, controller: int) -> str:
        """The id of its metadata log dir as it is now."""
        ...

    def voter(self, controller: int) -> Voter:
        """The voter, as it would be added."""
        ...

    def kill(self, controller: int) -> None: ...

    def start(self, controller: int) -> None: ...

    def new_disk(self, controller: int) -> None:
        """An empty disk, formatted for joining, for a dead controller."""
        ...


class Controllers:
    """One side's controllers, named when the script begins."""

    def __init__(self, hosts: Hosts, quorum: Quorum) -> None:
        self.hosts = hosts
        ids = sorted(voter.key.id for voter in quorum.voters.voters)
        ids.sort(key=lambda controller: controller != quorum.leader.id)
        self.ids: Mapping[str, int] = dict(zip(NAMES, ids, strict=True))
        self.dead: set[int] = set()

    def snapshot(self, quorum: Quorum) -> QuorumSnapshot:
        names = {controller: name for name, controller in self.ids.items()}
        voting = {voter.key for voter in quorum.voters.voters}
        voters = ((names[key.id], key.directory_id == self.hosts.directory(key.id)) for key in voting)
        # A dead one stays in the leader's list for some minutes.
        observers = {
            names[row.key.id]
            for row in quorum.progress
            if row.key.id in names
            and row.key.id not in self.dead
            and row.key not in voting
            and row.key.directory_id == self.hosts.directory(row.key.id)
        }
        return QuorumSnapshot(tuple(sorted(voters)), tuple(sorted(observers)))

    async def do(self, backend: Backend, step: Step) -> None:
        """One step; a change of the voters must end as the script says."""
        if step.kill_controller is not None:
            self.dead.add(self.ids[step.kill_controller])
            self.hosts.kill(self.ids[step.kill_controller])
        elif step.new_disk_controller is not None:
            self.hosts.new_disk(self.ids[step.new_disk_controller])
        elif step.start_controller is not None:
            self.dead.discard(self.ids[step.start_controller])
            self.hosts.start(self.ids[step.start_controller])
        else:
            wanted = step.add_voter or step.remove_voter
            assert wanted is not None
            answer = await self._change(membership_of(backend), wanted, add=step.add_voter is not None)
            if wanted.refused is None:
                assert answer.ended is ChangeEnd.DONE, answer
                if step.remove_voter is not None:
                    await self._restart_removed_leader(membership_of(backend))
            else:
                assert (answer.ended, answer.error) == (ChangeEnd.REFUSED, wanted.refused), answer

    async def _change(self, membership: Membership, wanted: VoterChange, *, add: bool) -> ChangeAnswer:
        def done(quorum: Quorum) -> bool:
            return wanted.refused is None and quorum.voters.has_id(self.ids[wanted.controller]) is add

        return await lasting(membership, lambda: self._send(membership, wanted, add=add), done)

    async def _restart_removed_leader(self, membership: Membership) -> None:
        """As the quorum's status advises, if a leader whose removal timed out goes on leading: it may on a busy
        machine, where the commit of its removal takes over 2 s.
        """
        for _ in range(LEADS_ON):
            try:
                quorum = await membership.describe()
            except BackendError:
                return  # nobody leads: it resigned
            if not quorum.led_by_non_voter:
                return
            await membership.pause(1.0)
        self.hosts.kill(quorum.leader.id)
        self.hosts.start(quorum.leader.id)

    async def _send(self, membership: Membership, wanted: VoterChange, *, add: bool) -> ChangeAnswer:
        controller = self.ids[wanted.controller]
        if add:
            return await membership.add_voter(self.hosts.voter(controller), MemoryRecorder())
        voter_keys = [key for key in (await membership.describe()).voters.keys if key.id == controller]
        present = ReplicaKey(controller, self.hosts.directory(controller))
        key = voter_keys[0] if voter_keys and not wanted.by_disk else present
        return await membership.remove_voter(key, MemoryRecorder())


async def lasting(
    membership: Membership, send: Callable[[], Awaitable[ChangeAnswer]], done: Callable[[Quorum], bool]
) -> ChangeAnswer:
    """The answer that lasts: after a passing one an operator looks whether it is ``done``, and asks again."""
    answer = await send()
    for _ in range(RETRIES):
        if answer.error not in PASSING:
            break
        await membership.pause(1.0)
        try:
            quorum = await membership.describe()
        except BackendError:
            continue  # nobody leads
        if done(quorum):
            return ChangeAnswer(ChangeEnd.DONE)  # it was written before the answer was lost with the leader
        answer = await send()
    return answer


def membership_of(backend: Backend) -> Membership:
    assert isinstance(backend, (LiveBackend, SimulatorBackend))
    return backend.membership


async def described(membership: Membership) -> Quorum | None:
    """None while nobody leads."""
    try:
        return await membership.describe()
    except NoLeader:
        return None


async def play(
    script: Script, side: ClusterDriver, hosts: Hosts, wanted: Sequence[QuorumSnapshot | None] = ()
) -> list[QuorumSnapshot | None]:
    """What the quorum comes to after each step, None where nobody leads it; where it is ``wanted`` to come to
    something, when it has.
    """
    snapshots: list[QuorumSnapshot | None] = []
    async with side.backend() as backend:
        membership = membership_of(backend)
        await membership.open()
        quorum = await side.until(lambda: described(membership), _led, "a leader")
        assert quorum is not None
        controllers = Controllers(hosts, quorum)
        for number, step in enumerate(script.steps):
            await controllers.do(backend, step)
            await membership.pause(0 if wanted else SETTLED)

            def right(quorum: Quorum | None, number: int = number, step: Step = step) -> bool:
                if quorum is None or not step.led:
                    return (quorum is None) is not step.led
                return not wanted or controllers.snapshot(quorum) == wanted[number]

            what = f"step {number + 1}, {step}, to come to {wanted[number : number + 1]}"
            quorum = await side.until(lambda: described(membership), right, what)
            snapshots.append(None if quorum is None else controllers.snapshot(quorum))
    return snapshots


def _led(quorum: Quorum | None) -> bool:
    return quorum is not None


class SimulatedHosts:
    """Implements :class:`Hosts`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def directory(self, controller: int) -> str:
        return self._world.quorum.disks[controller].key.directory_id

    def voter(self, controller: int) -> Voter:
        return self._world.quorum.context.hosts[controller].voter(self._world.quorum.disks[controller].key)

    def kill(self, controller: int) -> None:
        self._world.kill_controller(controller)

    def start(self, controller: int) -> None:
        self._world.start_controller(controller)

    def new_disk(self, controller: int) -> None:
        self._world.replace_controller_disk(controller)


def joining() -> tuple[SimulatedSide, SimulatedHosts]:
    """A simulated cluster whose controllers join by themselves."""
    side = SimulatedSide(config=replace(QUICK, auto_join=True))
    return side, SimulatedHosts(side.world)


class RealHosts:
    """Implements :class:`Hosts`."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster

    def directory(self, controller: int) -> str:
        return self._cluster.node(controller).directory_id

    def voter(self, controller: int) -> Voter:
        node = self._cluster.node(controller)
        return Voter(
            ReplicaKey(controller, node.directory_id), (VoterEndpoint("CONTROLLER", "127.0.0.1", node.port),)
        )

    def kill(self, controller: int) -> None:
        self._cluster.node(controller).kill()

    def start(self, controller: int) -> None:
        self._cluster.node(controller).start()

    def new_disk(self, controller: int) -> None:
        self._cluster.format_again(controller)
