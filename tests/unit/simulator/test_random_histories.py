"""Random faults, every invariant at every step: seeds for many histories, hypothesis for short ones that shrink."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from backends.simulator.invariants.checker import Checker
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.network import broker, controller
from backends.simulator.world import World
from testbed.histories.history_pool import histories_of
from testbed.histories.random_histories import mend, random_history, topology
from tests.repetitions import repetitions
from tests.unit.simulator import clusters

SEEDS = repetitions(20, 200)
SHARDS = 10


@pytest.mark.parametrize("shard", range(SHARDS))
def test_short_histories_break_nothing(shard: int) -> None:
    for seed in range(shard, SEEDS, SHARDS):
        result = random_history(seed, seconds=30)
        assert not result.failed, f"{result.error or result.broken[0]}\nreplay: {result.replay}"


def test_a_seed_replays_to_the_same_history_and_its_topology_is_its_own() -> None:
    assert random_history(3, 10) == random_history(3, 10)
    assert random_history(3, 10).digest != random_history(4, 10).digest
    assert topology(3) == topology(3)


@pytest.mark.long
def test_two_processes_see_what_one_sees() -> None:
    alone, together = (list(histories_of(range(4), jobs, seconds=10)) for jobs in (1, 2))
    assert alone == together


@pytest.mark.long
def test_a_defect_is_told_with_the_seed_that_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders that never truncate their followers: some seed meets it, and names itself."""
    monkeypatch.setattr("backends.simulator.broker.fetch_sessions._divergence", lambda _log, _position: None)
    failed = next(result for seed in range(100) if (result := random_history(seed, 30)).failed)
    print(f"caught with seed {failed.seed}")
    assert failed.replay == f"python -m benchmarks.soak simulator --first {failed.seed} --rounds 1"


BROKERS = st.integers(1, 3)


class Incidents(RuleBasedStateMachine):
    """Three brokers, min ISR 2, somebody who produces with acks=all; whatever happens, nothing that was promised
    is lost, and when everything is mended everybody is in the ISR.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world: World
        self.checker: Checker

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.world = World(clusters.topology(), seed)
        self.checker = Checker(self.world, strict=False)

    @rule(number=BROKERS)
    def kill(self, number: int) -> None:
        self.world.kill_broker(number)

    @rule(number=BROKERS)
    def lose_power(self, number: int) -> None:
        self.world.power_off([number])

    @rule(number=BROKERS)
    def shut_down(self, number: int) -> None:
        self.world.shut_down_broker(number)

    @rule(number=BROKERS)
    def start(self, number: int) -> None:
        self.world.start_broker(number)

    @rule(one=BROKERS, other=BROKERS)
    def cut(self, one: int, other: int) -> None:
        self.world.network.cut([broker(one)], [broker(other)])

    @rule(number=BROKERS)
    def cut_from_the_controllers(self, number: int) -> None:
        self.world.network.cut([broker(number)], clusters.controllers(self.world))

    @rule(number=BROKERS, late=st.integers(1, 5_000))
    def delay(self, number: int, late: int) -> None:
        self.world.network.delay(broker(number), controller(100), late * MILLISECOND, "alter-partition")

    @rule()
    def heal(self) -> None:
        self.world.network.heal_all()

    @rule(number=st.sampled_from((100, 101, 102)))
    def fail_over(self, number: int) -> None:
        self.world.failover(number)

    @rule(milliseconds=st.integers(1, 6_000))
    def wait(self, milliseconds: int) -> None:
        self.world.loop.run_for(milliseconds * MILLISECOND)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "checker"):
            self.checker.settle()
            assert not self.checker.broken, str(self.checker.broken[0])

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        mend(self.world)
        # Twice: a broker that was still in its controlled shutdown goes first.
        self.world.loop.run_for(20 * SECOND)
        mend(self.world)
        clusters.until(self.world, lambda: set(clusters.foo(self.world).isr) == {1, 2, 3})
        self.holds()


TestIncidents = Incidents.TestCase
TestIncidents.settings = settings(
    max_examples=repetitions(10, 40),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
