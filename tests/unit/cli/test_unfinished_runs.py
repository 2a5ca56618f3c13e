"""What an earlier run left half done, or is still doing: the next one is held back until that is finished."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backends.base.answers import Reassignment
from console.journal.journal import Journal, JournalRun
from console.journal.unfinished_entries import unfinished
from recovery.assignment_order import WrittenOrder
from recovery.model import Unknown, Why
from tests.unit.cli.command_process import Caller, typing
from tests.unit.cli.memory_backend import CLUSTER_ID, cluster_of, offline
from tests.unit.cli.test_election_failures import AGREED, ANY, planned, sent, tp


def interrupted(rows: tuple[WrittenOrder, ...]) -> None:
    """What a run that was killed between reorder and restore leaves in the journal."""
    run = JournalRun("killed", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    with Journal.open(CLUSTER_ID, run, lambda: datetime(2026, 1, 1, tzinfo=UTC)) as journal:
        entry = journal.before("reorder", {"rows": rows})
        journal.after(entry, {"applied": [row.tp for row in rows]})


def reordered(partition: int) -> WrittenOrder:
    return WrittenOrder(tp(partition), "orders-id", (1, 2, 3), (2, 1, 3))


def test_an_unfinished_run_holds_the_next_one_back_until_it_is_finished(call: Caller) -> None:
    backend = cluster_of(4)
    interrupted(tuple(reordered(number) for number in range(4)))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    backend.states[tp(1)] = offline("orders", 1, (3, 1, 2))
    del backend.states[tp(2)]
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    held = call.on(backend)(*recover)
    assert held.status == 1
    assert "may have left 4 assignments in the order of an election" in held.err
    assert "ktriage resume --bootstrap-server kafka:9092" in held.err
    assert sent(backend) == 0

    finished = call("ktriage", "resume", *ANY, "--output", "json")
    assert finished.status == 1, "somebody else's change and a deleted topic are told"
    told = {row["partition"]: row["order"] for row in json.loads(finished.out)["assignments"]}
    assert told == {
        0: "restored",
        1: "changed by somebody else",
        2: "changed by somebody else",
        3: "in its own order already",
    }
    # What the killed run had asked for may come after the look: the fourth is written too, and nobody else's.
    assert {row.tp for row in backend.restored} == {tp(0), tp(3)}
    assert backend.states[tp(0)].replicas == (1, 2, 3)

    assert unfinished(CLUSTER_ID).nothing
    assert call("ktriage", "resume", *ANY).status == 0
    assert call(*recover).status == 0


@pytest.mark.parametrize(("answer", "status"), [("yes", 0), ("no", 1), ("", 1)])
def test_on_a_terminal_it_offers_to_finish_the_earlier_run_first(
    call: Caller, answer: str, status: int
) -> None:
    interrupted((reordered(0),))
    recover = ("recover", *ANY, "--all-offline-partitions", "--automated-recovery")
    ended = typing(
        call.home, [sys.executable, "-m", "tests.unit.cli.stoppable_jobs", "never", *recover], answer
    )
    assert ended.status == status, str(ended)
    assert "may have left 1 assignment in the order of an election: orders-0" in ended.err
    assert ("3 elections: 3 elected" in ended.out) == (answer == "yes")
    assert unfinished(CLUSTER_ID).nothing == (answer == "yes")


def test_an_order_is_not_restored_where_it_is_not_known_whether_replicas_are_moving(call: Caller) -> None:
    backend = cluster_of(1)
    interrupted((reordered(0),))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    backend.moving = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on Cluster:kafka-cluster")
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 1
    assert "not restored: orders-0" in ended.err
    assert backend.restored == []
    assert not unfinished(CLUSTER_ID).nothing, "the next run is told again"


def test_somebody_elses_reassignment_is_left_alone_and_stops_no_other_recovery(call: Caller) -> None:
    """It does not end while the partition is offline: nothing else could ever be recovered from here."""
    backend = cluster_of(2)
    interrupted((reordered(0),))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    backend.moving = (Reassignment(tp(0), (2, 1, 3), (), (3,)),)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 1
    assert "not restored: orders-0: a reassignment is in progress" in ended.err
    assert "--cancel" in ended.err and "it was [1, 2, 3]" in ended.err
    assert backend.restored == []
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    assert call(*recover).status == 0


def left_in_doubt(seconds_ago: float, **ended: object) -> None:
    """A run that wrote an order, sent an election and had no answer, so many seconds ago."""
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    run = JournalRun("killed", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    rows = (reordered(0),)
    with Journal.open(CLUSTER_ID, run, lambda: at) as journal:
        journal.after(journal.before("reorder", {"rows": rows}), {"applied": [tp(0)]})
        entry = journal.before("elect", {"rows": rows})
        if ended:
            journal.after(entry, ended)


@pytest.mark.parametrize("ended", [{}, {"unknown": {tp(0): "no answer"}}])
def test_while_an_election_may_still_be_carried_out_the_chosen_one_stays_first(
    call: Caller, ended: dict[str, object]
) -> None:
    backend = cluster_of(1)
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    left_in_doubt(30, **ended)
    held = call.on(backend)("ktriage", "resume", *ANY)
    assert held.status == 1
    assert "may be carried out until" in held.err and "broker 2 stays first until then" in held.err
    assert backend.restored == []
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    assert call(*recover).status == 1, "nothing else is sent meanwhile"
    assert sent(backend) == 0


def test_once_it_leads_the_order_is_put_back(call: Caller) -> None:
    backend = cluster_of(1)
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))._replace(leader=2, leader_epoch=5)
    left_in_doubt(30)
    assert call.on(backend)("ktriage", "resume", *ANY).status == 0
    assert backend.states[tp(0)].replicas == (1, 2, 3)


@pytest.mark.parametrize(
    ("seconds_ago", "ended"),
    [(600, {}), (600, {"unknown": {tp(0): "no answer"}}), (30, {"refused": {tp(0): "not sent"}})],
)
def test_once_it_is_certainly_dead_the_order_is_put_back(
    call: Caller, seconds_ago: float, ended: dict[str, object]
) -> None:
    backend = cluster_of(1)
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    left_in_doubt(seconds_ago, **ended)
    assert call.on(backend)("ktriage", "resume", *ANY).status == 0
    assert backend.states[tp(0)].replicas == (1, 2, 3)


def test_another_host_is_finished_by_its_plan(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    order = json.loads(Path(plan).read_text())["partitions"][1]["order"]
    backend.states[tp(0)] = offline("orders", 0, (3, 2, 1))
    backend.states[tp(1)] = offline("orders", 1, tuple(order))
    ended = call("ktriage", "resume", *ANY, "--plan", plan)
    assert ended.status == 1, "orders-0 was changed by somebody else"
    assert backend.states[tp(0)].replicas == (3, 2, 1)
    assert backend.states[tp(1)].replicas == (1, 2, 3)


def test_a_run_in_progress_keeps_others_out(call: Caller) -> None:
    backend = cluster_of(1)
    plan = planned(call, backend)
    run = JournalRun("other", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    with Journal.open(CLUSTER_ID, run, lambda: datetime(2026, 1, 1, tzinfo=UTC)):
        ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 1
    assert sent(backend) == 0
    assert len(ended.err.splitlines()) == 1
