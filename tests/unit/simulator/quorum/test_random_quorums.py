"""Short random histories of controllers alone, with shrinking: a majority that is back always goes on."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from backends.simulator.invariants.checker import Checker
from backends.simulator.loop import MILLISECOND
from backends.simulator.messages import SetConfig
from backends.simulator.world import World
from recovery.membership.raft_votes import RaftRole
from recovery.membership.voter_changes import RemoveRaftVoter
from testbed.histories.random_histories import mend
from tests.repetitions import repetitions
from tests.unit.simulator.quorum.quorums import announced, cut, quorum, until

EVERYBODY = (100, 101, 102, 103, 104)
CONTROLLER = st.sampled_from(EVERYBODY)


class Controllers(RuleBasedStateMachine):
    """Three voters and two more machines."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World
        self.checker: Checker

    @initialize(seed=st.integers(0, 2**16), kept=st.sampled_from((5, 512)))
    def begin(self, seed: int, kept: int) -> None:
        made = quorum(metadata_records_retained=kept).topology
        self.world = World(replace(made, brokers=(), topics=()), seed)
        self.checker = Checker(self.world, strict=False)

    @rule(number=CONTROLLER)
    def kill(self, number: int) -> None:
        self.world.kill_controller(number)

    @rule(number=CONTROLLER)
    def start(self, number: int) -> None:
        self.world.start_controller(number)

    @rule(number=CONTROLLER)
    def lose_the_disk(self, number: int) -> None:
        self.world.kill_controller(number)
        self.world.replace_controller_disk(number)
        self.world.start_controller(number)

    @rule(one=CONTROLLER, other=CONTROLLER)
    def cut(self, one: int, other: int) -> None:
        if one != other:
            cut(self.world, (one,), (other,))

    @rule(number=CONTROLLER)
    def isolate(self, number: int) -> None:
        cut(self.world, (number,), tuple(other for other in EVERYBODY if other != number))

    @rule()
    def heal(self) -> None:
        self.world.network.heal_all()

    @rule(number=CONTROLLER)
    def add(self, number: int) -> None:
        self.world.send_to_quorum(self.world.quorum.add(number))

    @rule(place=st.integers(0, 4))
    def remove(self, place: int) -> None:
        leader = self.world.quorum.leader
        if leader is not None:
            keys = leader.voters.keys
            body = RemoveRaftVoter(keys[place % len(keys)], self.world.quorum.context.cluster_id)
            self.world.send_to_quorum(body)

    @rule(value=st.sampled_from(("1", "2", "3")))
    def write(self, value: str) -> None:
        active = self.world.active
        if active is not None and active.active is not None:
            active.active.handle(SetConfig("foo", "min.insync.replicas", value), lambda _reply: None)

    @rule(milliseconds=st.integers(1, 5_000))
    def wait(self, milliseconds: int) -> None:
        self.world.loop.run_for(milliseconds * MILLISECOND)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "checker"):
            self.checker.settle()
            assert not self.checker.broken, str(self.checker.broken[0])

    def _can_be_led(self) -> bool:
        """Whether of every set that a voter's disk holds, committed or not, a majority of the disks is there.

        A leader that died while it removed itself is no voter to itself and has the longest log: where the others
        need its vote, nobody is elected (KIP-853 lets only voters stand).
        """
        disks = self.world.quorum.disks.values()
        present = [disk.key for disk in disks]
        voting = [disk for disk in disks if disk.log.voters.find(disk.key) is not None]
        sets = [disk.log.voters for disk in voting]
        there = [sum(key in present for key in held.keys) >= held.majority for held in sets]
        itself = [disk for disk in disks if disk not in voting and any(held.find(disk.key) for held in sets)]
        return bool(there) and all(there) and not itself

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        mend(self.world)
        if self._can_be_led():
            until(self.world, self._settled)
        self.holds()

    def _settled(self) -> bool:
        """One leads, and everybody else has its log."""
        leader = self.world.quorum.leader
        if leader is None or not announced(leader):
            return False
        rest = [replica for replica in self.world.quorum.replicas.values() if replica is not leader]
        followed = all(r.state.role is RaftRole.FOLLOWER and r.epoch == leader.epoch for r in rest)
        return followed and all(leader.log.end - r.log.end < 5 for r in rest)


TestControllers = Controllers.TestCase
TestControllers.settings = settings(
    max_examples=repetitions(20, 60),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
