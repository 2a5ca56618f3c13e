"""KIP-966's invariants hold whatever happens to a cluster, and each check catches a rule that is broken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.controller.invariants import Excuse, Invariant, state_violations, step_violations
from recovery.controller.registration import PartitionChange, Registration, merge
from recovery.controller.rules import KIP_966, ControllerRules, UncleanRecoveryStrategy, shipped
from recovery.controller.transition import transition
from recovery.controller.transition_targets import ElectionKind, Proposal
from recovery.model import NO_LEADER
from tests.repetitions import repetitions
from tests.unit.controller.histories import Event, History, events

RULES = {
    "4.3": shipped((4, 3), elr=True),
    "4.3 without ELR": shipped((4, 3), elr=False),
    "4.1": shipped((4, 1), elr=True),
    "KIP-966": KIP_966,
    "KIP-966 without its manager": ControllerRules(kip966_reassignment=True, kip966_min_isr_change=True),
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
@pytest.mark.parametrize("strategy", UncleanRecoveryStrategy)
@settings(max_examples=repetitions(60, 800), deadline=None)
@given(
    happened=st.lists(events(reassignments=False), max_size=25)
    | st.lists(events(reassignments=True), max_size=25),
    min_isr=st.integers(1, 4),
)
def test_the_invariants_hold_after_every_step(
    rules: ControllerRules, strategy: UncleanRecoveryStrategy, happened: list[Event], min_isr: int
) -> None:
    history = History(rules, strategy, min_isr)
    for event in happened:
        assert history.step(event) == []


@settings(max_examples=repetitions(40, 80), deadline=None)
@given(happened=st.lists(events(reassignments=True), max_size=20), alive=st.frozensets(st.integers(0, 5)))
def test_a_controller_that_looks_again_finds_nothing_to_change(
    happened: list[Event], alive: frozenset[int]
) -> None:
    """Only where an added replica was just elected, a second look finds its reassignment complete."""
    rules = ControllerRules()
    history = History(rules, UncleanRecoveryStrategy.BALANCED, 2)
    for event in happened:
        history.step(event)
    for before in history.image.partitions.values():
        for election in (ElectionKind.ONLINE, ElectionKind.UNCLEAN, ElectionKind.PREFERRED):
            asked = Proposal(alive, 2, election)
            partition = before
            for _ in range(2 if before.reassigning else 1):
                change = transition(partition, asked, rules)
                partition = partition if change is None else merge(partition, change)
            assert transition(partition, asked, rules) is None


HEALTHY = Registration((1, 2, 3), (1, 2, 3), 1, 5, 9)
UNDER = Registration((1, 2, 3), (1,), 1, 5, 9, elr=(2,))


@pytest.mark.parametrize(
    ("broken", "invariant"),
    [
        (UNDER._replace(elr=(1, 2)), Invariant.ELR_OUTSIDE_ISR),
        (HEALTHY._replace(isr=(1, 2), elr=(3,)), Invariant.ELR_ONLY_UNDER_MIN_ISR),
        (UNDER._replace(leader=3), Invariant.LEADER_IN_ISR),
        (UNDER._replace(isr=()), Invariant.LEADER_IN_ISR),
        (UNDER._replace(elr=(9,)), Invariant.MEMBERS_ARE_REPLICAS),
        (HEALTHY._replace(isr=(1, 9)), Invariant.MEMBERS_ARE_REPLICAS),
        (UNDER._replace(elr=(2, 2)), Invariant.NO_MEMBER_TWICE),
        (UNDER._replace(last_known_elr=(NO_LEADER,)), Invariant.NO_MEMBER_TWICE),
    ],
)
def test_a_partition_that_breaks_an_invariant_is_caught(broken: Registration, invariant: Invariant) -> None:
    assert {found.invariant for found in state_violations(broken, 2, elr=True)} == {invariant}


def test_an_empty_isr_without_the_elr_is_caught() -> None:
    nobody = HEALTHY._replace(isr=(), leader=NO_LEADER)
    found = list(state_violations(nobody, 2, elr=False))
    assert [violation.invariant for violation in found] == [Invariant.ISR_KEPT_WITHOUT_ELR]


@pytest.mark.parametrize(
    ("change", "after", "invariant"),
    [
        (None, HEALTHY._replace(isr=(1, 2)), Invariant.ONLY_RECORDS_CHANGE),
        (
            PartitionChange(isr=(1, 2)),
            merge(HEALTHY, PartitionChange(isr=(1,))),
            Invariant.ONLY_RECORDS_CHANGE,
        ),
        (PartitionChange(), merge(HEALTHY, PartitionChange()), Invariant.NO_EMPTY_RECORD),
        (
            PartitionChange(isr=(1,)),
            merge(HEALTHY, PartitionChange(isr=(1,))),
            Invariant.DURABLE_MEMBERS_KEPT,
        ),
        (
            PartitionChange(leader=2),
            merge(HEALTHY, PartitionChange(leader=2))._replace(leader_epoch=5),
            Invariant.EPOCHS_RISE,
        ),
        (
            PartitionChange(isr=(1, 2)),
            merge(HEALTHY, PartitionChange(isr=(1, 2)))._replace(partition_epoch=9),
            Invariant.EPOCHS_RISE,
        ),
    ],
)
def test_a_step_that_breaks_an_invariant_is_caught(
    change: PartitionChange | None, after: Registration, invariant: Invariant
) -> None:
    found = {violation.invariant for violation in step_violations(HEALTHY, change, after, 2, elr=True)}
    assert invariant in found


def test_a_lost_member_is_excused_only_by_name() -> None:
    change = PartitionChange(isr=(1,))
    after = merge(HEALTHY, change)
    assert list(step_violations(HEALTHY, change, after, 2, elr=True))
    excuses = frozenset((Excuse.UNCLEAN_SHUTDOWN,))
    assert not list(step_violations(HEALTHY, change, after, 2, elr=True, excuses=excuses))


def test_rules_that_forget_the_elr_are_caught_by_a_history() -> None:
    """The whole net, once: a controller that empties the ELR on every fencing does not get through."""
    history = History(ControllerRules(), UncleanRecoveryStrategy.BALANCED, 2, forgets_elr=True)
    found = [violation for broker in (0, 1) for violation in history.step(Event("fence", broker))]
    assert Invariant.DURABLE_MEMBERS_KEPT in {violation.invariant for violation in found}
