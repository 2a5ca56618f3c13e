"""The first lines about a plan's partitions afterwards: the worst first, and nothing that another line denies."""

from __future__ import annotations

import json

import pytest

from console.jobs.consumers.election_aftermath import ElectionAftermath
from console.jobs.elect.plan_table import state_counts
from console.jobs.elect.review_report import verified_lines
from console.jobs.elect.verify_plan import Verified
from recovery.model import Unknown, Why
from recovery.plan.verify import Leading, Order, RowState
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import cluster_of, log
from tests.unit.cli.planned_orders import ANY, planned, tp


def row(
    number: int, leading: Leading, *, gap: int = 0, lost: int | None = None, order: Order = Order.REVERTED
) -> RowState:
    return RowState(tp(number), 2, leading, True, False, order, gap, (), lost)


def test_the_worst_is_counted_first() -> None:
    every = [row(n, leading) for n, leading in enumerate(Leading)]
    unread = Unknown(Why.NOT_ANSWERED, "not asked for here")
    verified = Verified(tuple(every), ElectionAftermath(unread, unread), {})
    first = next(verified_lines(verified, 0))
    assert first == (
        "6 partitions of the plan: 1 led by another leader, 1 led by nobody, 1 not seen,"
        " 1 led by a replica that took over later and has the planned log, 1 led by a member of ISR or ELR,"
        " 1 led by the right leader"
    )


@pytest.mark.parametrize(
    ("worst", "said"),
    [
        (row(1, Leading.RIGHT, gap=300), "1 LOST OFFSETS of the planned log, 2 under the right leader"),
        (row(1, Leading.OTHER, lost=300), "1 LOST OFFSETS of the planned log, 1 under the right leader"),
        (
            row(1, Leading.RIGHT, order=Order.NOT_REVERTED),
            "1 not in the original assignment order, 2 under the right leader",
        ),
    ],
)
def test_a_leader_as_planned_is_counted_and_what_is_wrong_stands_before_it(
    worst: RowState, said: str
) -> None:
    (line,) = state_counts([row(0, Leading.RIGHT), worst])
    assert line.startswith(f"seen afterwards: {said}, ")


@pytest.mark.parametrize(("end", "said"), [(80, True), (100, False)], ids=["20 offsets lost", "none lost"])
def test_that_waiting_does_not_bring_records_back_is_said_where_a_leader_lost_some(
    call: Caller, end: int, said: bool
) -> None:
    """The leader is the planned one; the other replicas are not in the ISR yet."""
    backend = cluster_of(1)
    plan = planned(call, backend)
    (leader,) = (one["designatedLeader"] for one in json.loads((call.home / plan).read_text())["partitions"])
    backend.states[tp(0)] = backend.states[tp(0)]._replace(leader=leader, leader_epoch=5, isr=(leader,))
    backend.logs = {**backend.logs, leader: log(end)}
    ended = call("ktriage", "verify", *ANY, plan)
    assert ended.status == 1
    assert ("does not come back by waiting" in ended.err) is said
    assert f"next: ktriage verify {plan}" in ended.err
