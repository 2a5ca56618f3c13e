"""While a question stands open the cluster goes on: after every answer everything is compared again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.network import OPERATOR
from backends.simulator.network import broker as node
from console.change.change import Question
from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from recovery.model import TopicPartition, Unknown, Why
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import MemoryBackend, cluster_of, log
from tests.unit.cli.planned_orders import ANY, planned, tp
from tests.unit.simulator.operators import backend as simulated

LONGEST_LOG = ("--election-type", "longest-log", "--all-topic-partitions", "--strategy", "aggressive")
UNCLEAN = ("--election-type", "unclean", "--all-topic-partitions")
SILENT = Unknown(Why.NOT_ANSWERED, "timed out")

Meanwhile = list[Callable[[], None]]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Somebody who agrees to everything, but only after what is put here has happened."""
    happenings: Meanwhile = []

    async def agrees(_terminal: object, question: Question, _prepared: object) -> str:
        for happens in happenings:
            happens()
        return question.answers[0]

    async def reason(_terminal: object) -> str:
        return "a drill"

    monkeypatch.setattr(TerminalOperator, "answers", agrees)
    monkeypatch.setattr(TerminalOperator, "gives_reason", reason)
    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)
    return happenings


def elected(backend: MemoryBackend) -> list[int]:
    return [row.tp.partition for rows in backend.designated for row in rows]


def test_a_plan_leaves_out_the_row_that_moved(call: Caller, meanwhile: Meanwhile) -> None:
    backend = cluster_of(3)
    plan = planned(call, backend)
    moved = backend.states[tp(1)]._replace(leader_epoch=9)
    meanwhile.append(lambda: backend.states.update({tp(1): moved}))
    ended = call("ktriage", "apply", *ANY, plan)
    assert ended.status == 1
    assert elected(backend) == [0, 2]
    assert "not recovered: orders-1: stale: the leader epoch is 9" in ended.err


def test_a_plan_of_which_everything_moved_is_stale_and_a_new_one_is_the_next_step(
    call: Caller, meanwhile: Meanwhile
) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    for number in (0, 1):
        moved = backend.states[tp(number)]._replace(leader_epoch=9)
        meanwhile.append(partial(backend.states.update, {tp(number): moved}))
    ended = call("ktriage", "apply", *ANY, plan)
    assert ended.status == 4, ended
    assert elected(backend) == []
    assert "no row can be applied any more; nothing was applied" in ended.err
    assert (
        "next: ktriage plan --topic orders --ranking last-record --strategy balanced plan-2.json" in ended.err
    )


def test_a_chosen_broker_that_is_silent_leads_back_to_the_same_plan(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.logs = {**backend.logs, 1: SILENT}
    ended = call("ktriage", "apply", *ANY, plan, "--yes", "--reason", "a drill")
    assert ended.status == 1 and elected(backend) == [], ended
    assert "orders-0: try again: broker 1: not answered" in ended.err, ended
    assert f"next: ktriage apply {plan} " in ended.err and "next: ktriage verify" not in ended.err, ended


def test_a_chosen_broker_that_is_fenced_leads_to_a_new_plan_and_not_to_the_same_again(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.fenced = (1,)
    ended = call("ktriage", "apply", *ANY, plan, "--yes", "--reason", "a drill")
    assert ended.status == 1 and elected(backend) == [], ended
    assert "orders-0: try again: broker 1 is" in ended.err, ended
    assert "next: ktriage plan --topic orders" in ended.err and "next: ktriage apply" not in ended.err, ended


def test_before_the_elections_every_log_is_read_once_and_once_more_where_they_are_sent(
    call: Caller, meanwhile: Meanwhile
) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    surveys: list[int] = []

    async def counts() -> None:
        surveys.append(sum(map(len, backend.designated)))

    backend.in_survey = counts
    assert call("ktriage", "apply", *ANY, plan).status == 0
    assert surveys == [0, 2], "one comparison before the question, one reading of the leaders at the end"


def test_the_longest_log_is_not_elected_once_a_better_one_is_back(call: Caller, meanwhile: Meanwhile) -> None:
    backend = cluster_of(2)
    backend.logs = {1: log(100), 2: log(100), 3: SILENT}
    meanwhile.append(lambda: setattr(backend, "logs", {**backend.logs, 3: log(500)}))
    ended = call.on(backend)("kafka-elect-leaders", *LONGEST_LOG, "--recovery-duration-ms", "1000", *ANY)
    assert ended.status == 4, str(ended)
    assert elected(backend) == []
    assert "broker 3 did not answer when the plan was made, and now answers with a better log" in ended.err
    assert "next: ktriage plan --all-offline-partitions --strategy aggressive" in ended.err


def test_the_longest_log_is_elected_where_nothing_moved(call: Caller, meanwhile: Meanwhile) -> None:
    backend = cluster_of(3)
    moved = backend.states[tp(1)]._replace(leader=2, leader_epoch=9, isr=(2,))
    meanwhile.append(lambda: backend.states.update({tp(1): moved}))
    ended = call.on(backend)("kafka-elect-leaders", *LONGEST_LOG, "--recovery-duration-ms", "1000", *ANY)
    assert elected(backend) == [0, 2], str(ended)


def test_an_unclean_election_is_not_held_where_another_would_be_elected(
    call: Caller, meanwhile: Meanwhile
) -> None:
    """The memory cluster fails the test where an election reaches it."""
    backend = cluster_of(1)
    returned = backend.states[tp(0)]._replace(offline_replicas=(1, 2))
    backend.states[tp(0)] = returned._replace(offline_replicas=(1,))
    meanwhile.append(lambda: backend.states.update({tp(0): returned}))
    ended = call.on(backend)("kafka-elect-leaders", *UNCLEAN, *ANY)
    assert ended.status == 4, str(ended)
    assert "offline_replicas was [1] and is [1, 2]" in ended.err
    assert "nothing was sent" in ended.err


def test_a_broker_that_is_back_with_acknowledged_records_is_not_overridden(
    call: Caller, meanwhile: Meanwhile
) -> None:
    """On a simulated cluster: broker 1 alone has them all, and is out of reach until the question is put."""
    backend = simulated("last-replica-standing")
    partition = TopicPartition("payments", 0)
    world = backend.load(60 * SECOND).world
    network = world.network
    network.cut([OPERATOR], [node(1)])
    meanwhile.append(lambda: network.heal([OPERATOR], [node(1)]))
    ended = call.on(backend)("kafka-elect-leaders", *LONGEST_LOG, "--recovery-duration-ms", "3000", *ANY)
    assert ended.status == 4, str(ended)
    assert f"not recovered: {partition}: stale: broker 1 did not answer when the plan was made" in ended.err
    assert world.image.partitions[partition].leader == -1
