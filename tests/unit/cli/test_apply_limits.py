"""What an operator limits: the failures before the rest is not tried, the part of a plan, the loss."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backends.base.answers import Election, Outcome
from recovery.model import Unknown, Why
from recovery.plan.values import PlanRow
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import MemoryBackend, cluster_of, log
from tests.unit.cli.planned_orders import AGREED, ANY, planned, sent, tp


def test_a_canary_stops_when_as_many_elections_failed_as_were_allowed(call: Caller) -> None:
    backend = cluster_of(30)
    backend.fails = {tp(number): "NOT_CONTROLLER" for number in (1, 4, 5, 6)}
    plan = planned(call, backend)
    ended = call("ktriage", "apply", *ANY, plan, *AGREED, "--stop-after", "3", "--output", "json")
    told = json.loads(ended.out)
    assert ended.status == 1
    assert told["elected"]["outcomes"]["failed"] == 3
    assert sent(backend) < 30
    # Every partition of the plan is accounted for, sent or not.
    assert len(told["elections"]) == 30
    untried = [row for row in told["elections"] if row["outcome"] == "not attempted"]
    assert len(untried) == 30 - sent(backend)
    assert all("3 failures" in row["detail"] for row in untried)


def test_a_part_of_a_plan_is_applied_and_the_rest_is_not_touched(call: Caller) -> None:
    backend = cluster_of(10)
    plan = planned(call, backend)
    ended = call("ktriage", "apply", *ANY, plan, *AGREED, "--first", "3")
    assert ended.status == 0, str(ended)
    assert [row.tp.partition for rows in backend.designated for row in rows] == [0, 1, 2]
    assert call("ktriage", "apply", *ANY, plan, *AGREED).status == 0
    assert sent(backend) == 10


def test_what_may_lose_more_than_allowed_is_left_out(call: Caller) -> None:
    backend = cluster_of(2)
    silent = Unknown(Why.NOT_ANSWERED, "connection refused")
    backend.logs = {1: log(100), 2: log(100), 3: silent}
    call.on(backend)("ktriage", "plan", *ANY, "plan.json", "--strategy", "aggressive")
    ended = call("ktriage", "apply", *ANY, "plan.json", *AGREED, "--max-loss", "1000")
    assert ended.status == 2
    assert "no partition of the plan is left to elect" in ended.err
    assert "each of the 2 may lose more than --max-loss 1000 allows; nothing was sent" in ended.err
    assert sent(backend) == 0


def test_where_only_successors_lose_more_than_allowed_the_option_that_leaves_them_out_is_named(
    call: Caller,
) -> None:
    backend = cluster_of(2)
    backend.logs = {1: log(100), 2: log(100), 3: log(90)}
    planned(call, backend)
    document = json.loads(Path("plan.json").read_text())
    assert [row["successor"] for row in document["partitions"]] == [2, 2]
    backend.logs = {1: log(100), 2: log(90), 3: log(80)}
    call.on(backend)("ktriage", "plan", *ANY, "worse.json")
    ended = call("ktriage", "apply", *ANY, "worse.json", *AGREED, "--max-loss", "0")
    assert ended.status == 2
    assert "2 of them only if the chosen leader drops out (--ignore-successor-loss)" in ended.err
    assert call("ktriage", "apply", *ANY, "plan.json", *AGREED, "--max-loss", "0").status != 2


def test_no_batch_has_more_rows_than_failures_are_left(call: Caller) -> None:
    """The first batch of two has one failure, so that the next has one row."""
    backend = cluster_of(5)
    backend.fails = {tp(number): "NOT_CONTROLLER" for number in (0, 2, 3)}
    plan = planned(call, backend)
    call("ktriage", "apply", *ANY, plan, *AGREED, "--stop-after", "2")
    assert [len(rows) for rows in backend.designated] == [2, 1]


def test_another_leader_is_a_failure_that_counts_for_the_limit(call: Caller) -> None:
    class Others(MemoryBackend):
        async def designate(self, rows: Sequence[PlanRow], *_: Any, **_options: Any) -> tuple[Election, ...]:
            self.designated.append(tuple(rows))
            return tuple(Election(row.tp, Outcome.OTHER_LEADER, 3, 5, "3 leads") for row in rows)

    backend = Others(cluster_of(4).states)
    plan = planned(call, backend)
    assert call("ktriage", "apply", *ANY, plan, *AGREED, "--stop-after", "1").status == 1
    assert sent(backend) == 1
