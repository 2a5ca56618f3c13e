"""When an assignment is reordered for an election, and when no order helps."""

from __future__ import annotations

import pytest

from recovery.assignment_order import blocked_by_last_known_leader, needs_reorder
from recovery.model import PartitionState, Standing

ELECTABLE, FENCED = Standing.ELECTABLE, Standing.FENCED
STATE = PartitionState("t", 0, "id", -1, 7, (1, 2, 3), (), (), (3,), (3,))


@pytest.mark.parametrize(
    ("order", "electable", "needed"),
    [
        ((1, 2, 3), (1, 2, 3), False),
        ((2, 1, 3), (1, 2, 3), True),
        ((1, 3, 2), (1, 2, 3), True),
        ((1, 3, 2), (1, 3), False),
        ((2, 3, 1), (2, 3), True),
        ((3, 2, 1), (2, 3), True),
        ((3, 1, 2), (3,), True),
    ],
)
def test_the_chosen_one_stands_before_those_that_may_be_back_and_the_electable_by_rank(
    order: tuple[int, ...], electable: tuple[int, ...], needed: bool
) -> None:
    standings = {broker: ELECTABLE if broker in electable else FENCED for broker in (1, 2, 3)}
    assert needs_reorder((1, 2, 3), order, standings) is needed


@pytest.mark.parametrize(("order", "needed"), [((2, 3, 1), False), ((3, 2, 1), True)])
def test_with_a_broker_that_is_not_registered_those_that_can_be_elected_decide(
    order: tuple[int, ...], needed: bool
) -> None:
    standings = {1: Standing.UNREGISTERED, 2: ELECTABLE, 3: ELECTABLE}
    assert needs_reorder((1, 2, 3), order, standings) is needed


@pytest.mark.parametrize(
    ("state", "blocked"),
    [
        (STATE, 3),
        (STATE._replace(last_known_elr=(1,)), None),
        (STATE._replace(last_known_elr=()), None),
        (STATE._replace(last_known_elr=None, elr=None), None),
        (STATE._replace(elr=(3,)), None),
        (STATE._replace(isr=(3,)), None),
    ],
)
def test_before_4_1_a_dead_sole_last_known_leader_blocks_every_other(
    state: PartitionState, blocked: int | None
) -> None:
    """KAFKA-19522: no release that has it runs in the testbed (4.0 with the ELR feature on)."""
    standings = {1: ELECTABLE, 2: ELECTABLE, 3: FENCED}
    assert blocked_by_last_known_leader(state, standings) == blocked
