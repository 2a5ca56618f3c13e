"""Each promise about ISR, ELR, leaders and epochs is broken once on purpose, by breaking the controller's rule that
guards it, and some random history meets it. How many seeds that took is printed with ``-rP``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from backends.simulator.invariants.checker import Checker
from backends.simulator.loop import SECOND
from backends.simulator.world import World
from recovery.controller import transition
from recovery.controller.invariants import Invariant
from recovery.controller.registration import PartitionChange, Registration, merge
from recovery.controller.rules import ControllerRules
from recovery.controller.transition import ElectedLeader, elect
from recovery.controller.transition_targets import Proposal, Targets, without
from testbed.histories.random_histories import prepare, run
from tests.unit.simulator.clusters import topology, without_elr

SEEDS = 40
OF_BROKERS = ("kill", "start all", "shut down", "isolate", "heal", "reassign")

Wrong = Callable[[Targets, Targets, Registration, Proposal], Targets]
"""What comes of the right ELR: given that, what it was made from, the partition and what was asked for."""


def caught(promise: Invariant) -> None:
    for seed in range(SEEDS):
        world, checker = prepare(seed)
        # Brokers may stumble over metadata that should not be: the promise is broken before that.
        with suppress(ValueError, KeyError, AssertionError):
            run(world, seed, 30, OF_BROKERS)
        checker.settle()
        if promise in [found.name for found in checker.broken]:
            print(f"{promise}: caught with seed {seed}, the {seed + 1}. that was tried")
            return
    raise AssertionError(f"{SEEDS} seeds did not meet: {promise}")


def elr_by(monkeypatch: pytest.MonkeyPatch, wrong: Wrong) -> None:
    right = transition.update_elr

    def update(
        partition: Registration, targets: Targets, proposal: Proposal, rules: ControllerRules
    ) -> Targets:
        found = right(partition, targets, proposal, rules)
        return wrong(found, targets, partition, proposal) if rules.elr else found

    monkeypatch.setattr(transition, "update_elr", update)


def test_an_elr_that_keeps_who_is_in_the_isr_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def keeping(found: Targets, *_: object) -> Targets:
        return found if not found.elr else found._replace(elr=tuple({*found.elr, *found.isr}))

    elr_by(monkeypatch, keeping)
    caught(Invariant.ELR_OUTSIDE_ISR)


def test_an_elr_that_outlasts_min_isr_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def lasting(found: Targets, given: Targets, _: Registration, proposal: Proposal) -> Targets:
        enough = len(found.isr) >= proposal.min_isr
        return found._replace(elr=without(given.elr, found.isr)) if enough else found

    elr_by(monkeypatch, lasting)
    caught(Invariant.ELR_ONLY_UNDER_MIN_ISR)


def test_members_that_leave_the_isr_and_are_forgotten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(_: Targets, given: Targets, partition: Registration, _asked: Proposal) -> Targets:
        return given._replace(elr=without(given.elr, (*given.isr, *partition.isr)))

    elr_by(monkeypatch, forgetful)
    caught(Invariant.DURABLE_MEMBERS_KEPT)


def test_a_leader_that_is_kept_though_it_left_the_isr_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def keeping(
        partition: Registration, targets: Targets, proposal: Proposal, rules: ControllerRules
    ) -> ElectedLeader:
        if partition.has_leader and targets.isr:
            return ElectedLeader(partition.leader, unclean=False)
        return elect(partition, targets, proposal, rules)

    monkeypatch.setattr("recovery.controller.transition.elect", keeping)
    caught(Invariant.LEADER_IN_ISR)


def test_a_removed_replica_that_stays_in_the_isr_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = transition.complete_reassignment

    def leaving(targets: Targets, min_isr: int, rules: ControllerRules) -> Targets:
        return complete(targets, min_isr, rules)._replace(isr=targets.isr)

    monkeypatch.setattr(transition, "complete_reassignment", leaving)
    caught(Invariant.MEMBERS_ARE_REPLICAS)


def test_a_new_leader_without_a_new_epoch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def still(partition: Registration, change: PartitionChange) -> Registration:
        return merge(partition, change)._replace(leader_epoch=partition.leader_epoch)

    monkeypatch.setattr("recovery.controller.cluster_image.merge", still)
    caught(Invariant.EPOCHS_RISE)


def test_an_isr_that_is_emptied_without_the_elr_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    after = transition._after_election

    def emptying(
        partition: Registration,
        targets: Targets,
        elected: ElectedLeader,
        min_isr: int,
        rules: ControllerRules,
    ) -> Targets:
        found = after(partition, targets, elected, min_isr, rules)
        return found if rules.elr or targets.isr else found._replace(isr=())

    monkeypatch.setattr(transition, "_after_election", emptying)
    world = World(topology(acks=None, config=without_elr()), 1)
    checker = Checker(world, strict=False)
    for number in (1, 2, 3):
        world.kill_broker(number)
    world.loop.run_for(10 * SECOND)
    assert [found.name for found in checker.broken] == [Invariant.ISR_KEPT_WITHOUT_ELR]
