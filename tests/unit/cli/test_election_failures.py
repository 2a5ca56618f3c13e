"""Elections that fail, stop or are unfinished: how much is sent, what is said, what the status is."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.base.answers import Election, Outcome, Partitions, SurveyRequest, SurveyResult
from backends.base.protocol import Progress
from console.jobs.elect.election_batches import Result, row_failure
from console.journal.journal import _LineFile
from recovery.plan import election_requests
from recovery.plan.values import PlanRow
from recovery.plan.verify import Leading, Order, RowState
from tests.plan_rows import row as plan_row
from tests.unit.cli.command_process import Caller, command_line, invoke, typing
from tests.unit.cli.memory_backend import ALL, CLUSTER_ID, MemoryBackend, cluster_of, log, offline
from tests.unit.cli.planned_orders import AGREED, ANY, planned, sent, tp


def test_failures_are_named_on_stderr_and_results_stay_on_stdout(call: Caller) -> None:
    backend = cluster_of(3)
    backend.fails = {tp(1): "the disk is on fire"}
    ended = call.on(backend)(
        "kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery"
    )
    assert ended.status == 1
    assert "not recovered: orders-1: failed; the disk is on fire" in ended.err
    assert "3 elections: 2 elected, 1 failed" in ended.out
    assert "next: ktriage apply " in ended.err


MENDS = "ktriage resume reverts the replica order"
LED = Election(tp(0), Outcome.ELECTED, 2, 5, "that write may come")


@pytest.mark.parametrize(
    ("election", "said"),
    [
        (
            LED._replace(reverted=False),
            f"not finished: orders-0: broker 2 was elected; that write may come; {MENDS}",
        ),
        (
            LED._replace(reverted=False, detail="", outcome=Outcome.ALREADY_ONLINE),
            f"not finished: orders-0: broker 2 leads; the replica order is not reverted; {MENDS}",
        ),
        (
            LED._replace(in_doubt=True, outcome=Outcome.FAILED, leader=-1),
            "not recovered: orders-0: failed; that write may come; run ktriage resume",
        ),
        (
            LED._replace(reverted=False, outcome=Outcome.FAILED, leader=-1, detail=""),
            "not recovered: orders-0: failed; its assignment order is not reverted; run ktriage resume",
        ),
    ],
    ids=["elected", "without a reason", "in doubt", "not elected"],
)
def test_a_row_that_is_not_finished_says_so_once(election: Election, said: str) -> None:
    row = plan_row(offline("orders", 0), ALL, {1: (2, 100)})
    assert str(row_failure(Result(row, election, None))) == said


def test_a_stale_plan_is_status_4_and_nothing_is_applied(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.logs = {1: log(101), 2: log(100), 3: log(90)}
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 4
    assert sent(backend) == 0
    assert "ended at 100, now at 101" in ended.out
    assert "next: ktriage plan" in ended.err


def test_a_plan_that_is_stale_in_part_is_applied_in_part(call: Caller) -> None:
    backend = cluster_of(3)
    plan = planned(call, backend)
    backend.states[tp(1)] = offline("orders", 1)._replace(leader_epoch=9)
    backend.states[tp(2)] = offline("orders", 2)._replace(leader=1, isr=ALL)
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 1
    assert [row.tp for rows in backend.designated for row in rows] == [tp(0)]
    assert "not recovered: orders-1: stale" in ended.err
    assert "orders-2" not in ended.err


def test_where_all_that_is_left_is_stale_a_new_plan_is_named_and_not_the_old_one(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.states[tp(0)] = backend.states[tp(0)]._replace(leader=1)
    backend.states[tp(1)] = backend.states[tp(1)]._replace(leader_epoch=9)
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 1, str(ended)
    assert sent(backend) == 0
    assert "next: ktriage plan --topic orders" in ended.err
    assert "next: ktriage verify" not in ended.err


def test_what_could_not_be_planned_is_told_apart_from_nothing_to_plan(call: Caller) -> None:
    backend = cluster_of(1)
    backend.states[tp(0)] = backend.states[tp(0)]._replace(leader=1)
    ended = call.on(backend)("ktriage", "plan", *ANY, "plan.json")
    assert ended.status == 0
    assert "plan.json was not written: nothing is offline" in ended.err


def test_a_plan_for_another_cluster_is_refused(call: Caller) -> None:
    backend = cluster_of(1)
    plan = Path(planned(call, backend))
    plan.write_text(plan.read_text().replace(CLUSTER_ID, "another"))
    for command in (("apply", *AGREED), ("verify",), ("review",), ("resume", "--plan")):
        ended = call("ktriage", *command, str(plan), *ANY)
        assert ended.status == 2, command
        assert "the plan is for cluster another, and this is memory-cluster" in ended.err
    assert sent(backend) == 0


def test_offline_partitions_that_may_not_be_seen_are_never_none(call: Caller) -> None:
    backend = cluster_of(0)
    backend.hidden = ("secret",)
    ended = call.on(backend)("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--dry-run")
    assert ended.status == 1
    assert "0 offline partitions that this caller may see" in ended.out
    assert "1 topic may not be seen (needs DESCRIBE on topic secret)" in ended.err


def test_nothing_is_said_of_topics_that_may_not_be_seen_but_that_they_are_not_known(call: Caller) -> None:
    backend = cluster_of(1)
    backend.states[tp(0)] = backend.states[tp(0)]._replace(leader=1)
    backend.hidden = ("secret",)
    secret = "1 topic may not be seen (needs DESCRIBE on topic secret)"
    planned = call.on(backend)("ktriage", "plan", *ANY, "plan.json")
    assert planned.status == 1
    assert "plan.json was not written: nothing that may be seen is offline" in planned.err
    assert secret in planned.err
    shown = call.on(backend)("ktriage", "transactions", "show", *ANY)
    assert shown.status == 1
    assert "none is open in what may be seen" in shown.out and secret in shown.out
    backend.states.clear()
    shown = call.on(backend)("ktriage", "transactions", "show", *ANY)
    assert (shown.status, shown.out.splitlines()[0]) == (1, "transactions in 0 partitions: not known")
    seen = json.loads(call.on(backend)("ktriage", "transactions", "show", *ANY, "--output", "json").out)
    assert (seen["complete"], seen["notSeen"]) == (False, [secret])
    status = call.on(backend)("ktriage", "status", *ANY)
    assert (status.status, f"unknown: {secret}" in status.err) == (1, True)


def test_a_topic_that_may_not_be_seen_is_a_missing_permission(call: Caller) -> None:
    backend = cluster_of(1)
    backend.hidden = ("secret",)
    ended = call.on(backend)("ktriage", "replicas", *ANY, "--topic", "secret")
    assert ended.status == 3
    assert "DESCRIBE on topic secret" in ended.err


def test_verify_of_a_topic_made_again_does_not_send_one_round_in_a_circle(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    for number in range(2):
        backend.states[tp(number)] = backend.states[tp(number)]._replace(topic_id="made-again")
    ended = call("ktriage", "verify", *ANY, plan)
    assert ended.status == 1
    assert "next: ktriage status" in ended.err and "next: ktriage verify" not in ended.err


def test_a_file_that_cannot_be_written_is_refused_before_anybody_is_asked(call: Caller) -> None:
    file = "nowhere/plan.json"
    backend = cluster_of(1)
    asked: list[bool] = []

    async def surveyed() -> None:
        asked.append(True)

    backend.in_survey = surveyed
    ended = call.on(backend)("ktriage", "plan", *ANY, file)
    assert ended.status == 2
    assert len(ended.err.splitlines()) == 1 and file in ended.err
    assert not asked


def test_a_plan_whose_topic_may_not_be_seen_any_more_wants_a_permission_and_no_new_plan(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.states.clear()
    backend.hidden = ("orders",)
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 3, str(ended)
    assert "needs DESCRIBE on topic orders" in ended.err and "Make a new plan" not in ended.err


def test_what_became_of_all_parts_of_a_plan_is_looked_at_together(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(election_requests, "PART", 10)
    backend = cluster_of(30)
    plan = planned(call, backend)
    looks: list[Sequence[str] | None] = []
    ask = MemoryBackend.partitions

    async def partitions(self: MemoryBackend, topics: Sequence[str] | None = None) -> Partitions:
        looks.append(topics)
        return await ask(self, topics)

    monkeypatch.setattr(MemoryBackend, "partitions", partitions)
    assert call("ktriage", "apply", *ANY, plan, *AGREED).status == 0
    assert len(backend.designated) == 3
    assert len(looks) == 2  # the rows before, and all three parts afterwards


def test_neighbours_of_a_topic_are_elected_together_and_told_in_the_order_of_the_plan(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan has the largest partitions first; to describe scattered ones costs as much as the whole topic."""
    monkeypatch.setattr(election_requests, "PART", 10)
    backend = cluster_of(30)
    plan = Path(planned(call, backend))
    fields = json.loads(plan.read_text())
    scattered = [number * 7 % 30 for number in range(30)]
    fields["partitions"] = [fields["partitions"][number] for number in scattered]
    plan.write_text(json.dumps(fields))
    ended = call("ktriage", "apply", *ANY, str(plan), *AGREED, "--output", "json")
    assert ended.status == 0, str(ended)
    batches = [[row.tp.partition for row in rows] for rows in backend.designated]
    assert batches == [list(range(first, first + 10)) for first in (0, 10, 20)]
    assert [row["partition"] for row in json.loads(ended.out)["elections"]] == scattered


def test_an_error_that_should_not_happen_leaves_a_report_without_secrets(call: Caller) -> None:
    async def break_down() -> None:
        raise RuntimeError("password=hunter2 in sasl.jaas.config=org.Module required password='hunter2';")

    backend = cluster_of(1)
    backend.in_survey = break_down
    ended = call.on(backend)("ktriage", "replicas", *ANY)
    assert ended.status == 1
    assert "Traceback" not in ended.out + ended.err
    assert len(ended.err.splitlines()) == 1
    path = Path(ended.err.rsplit(" ", 1)[1].strip())
    report = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert "RuntimeError" in report
    assert "in break_down" in report
    assert "hunter2" not in report
    assert backend.closed == 1


def test_an_unclean_election_of_all_is_held_for_exactly_those_that_were_counted(tmp_path: Path) -> None:
    """What goes offline while the question stands was not agreed to."""
    simulated = ("--simulate", "last-replica-standing")
    words = ("elect", "--election-type", "unclean", "--all-topic-partitions", *simulated)
    ended = typing(tmp_path, command_line("ktriage", *words), "1")
    assert ended.status == 0, str(ended)
    assert "each of the 1 offline partitions" in ended.err
    assert "Read first: " in ended.err
    told = invoke(tmp_path, "ktriage", "journal", *simulated, "--output", "json")
    (asked,) = [
        e for run in json.loads(told.out)["runs"] for e in run["events"] if e.get("action") == "elect"
    ]
    assert asked["detail"]["partitions"] == [{"topic": "payments", "partition": 0}]


def test_a_disk_that_is_full_at_the_very_end_does_not_swallow_what_was_done(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = cluster_of(1)
    plan = planned(call, backend)
    written = _LineFile._write

    def full(descriptor: int, lines: bytes) -> None:
        """Stands in for a disk that fills up between the last request and the journal's last line."""
        if b'"kind":"end"' in lines:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(descriptor, lines)

    monkeypatch.setattr(_LineFile, "_write", staticmethod(full))
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 0, str(ended)
    assert "1 elections: 1 elected" in ended.out or "1 election: 1 elected" in ended.out
    assert "the journal is not complete; only this output shows what was done" in ended.err
    assert "No space left" in ended.err


def test_nothing_is_sent_when_nothing_can_be_recorded(call: Caller, tmp_path: Path) -> None:
    backend = cluster_of(1)
    plan = planned(call, backend)
    (tmp_path / "state").write_text("a file where the journal's directory should be")
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 1
    assert sent(backend) == 0
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"leader_epoch": 9}, True),
        ({"replicas": (3, 2, 1)}, True),
        ({"leader": 3, "isr": (3,), "leader_epoch": 9}, True),
        ({"topic_id": "another"}, False),
    ],
    ids=["led in between", "another order", "an unplanned leader", "made again"],
)
def test_traces_of_somebody_else_are_called_so(call: Caller, changed: dict[str, Any], said: bool) -> None:
    backend = cluster_of(1)
    plan = planned(call, backend)
    backend.states[tp(0)] = backend.states[tp(0)]._replace(**changed)
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status in (1, 4)
    assert ("somebody else may be at work" in ended.out) is said
    assert sent(backend) == 0


def test_a_reassignment_in_progress_is_a_trace_of_somebody_else(call: Caller) -> None:
    backend = cluster_of(1)
    plan = planned(call, backend)

    async def busy(request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        found = await survey(request, progress)
        return replace(found, surveys=tuple(one._replace(reassigning=True) for one in found.surveys))

    survey = backend.survey
    backend.survey = busy  # type: ignore[method-assign]
    ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 4
    assert "somebody else may be at work" in ended.out


def test_a_leader_that_lost_records_of_its_planned_log_is_no_success() -> None:
    row = plan_row(offline("orders", 0), ALL, {1: (2, 100)})
    elected = Election(row.tp, Outcome.ELECTED, 1, 5, "")
    kept = RowState(row.tp, 1, Leading.RIGHT, True, True, Order.REVERTED, 0, ())
    assert Result(row, elected, kept).succeeded
    assert not Result(row, elected, kept._replace(gap=5)).succeeded


def test_an_unanswered_election_is_done_only_where_the_planned_leader_is_seen(call: Caller) -> None:
    class Unanswered(MemoryBackend):
        async def designate(self, rows: Sequence[PlanRow], *_: Any, **_options: Any) -> tuple[Election, ...]:
            """orders-0 is led by its planned leader, orders-1 by another one."""
            for row in rows:
                leader = row.leader if row.tp.partition == 0 else 3
                self.states[row.tp] = self.states[row.tp]._replace(leader=leader, leader_epoch=5)
            return tuple(Election(row.tp, Outcome.FAILED, -1, -1, "no answer") for row in rows)

    backend = Unanswered(cluster_of(2).states)
    plan = planned(call, backend)
    ended = call("ktriage", "apply", *ANY, plan, *AGREED, "--output", "json")
    rows = {row["partition"]: row["outcome"] for row in json.loads(ended.out)["elections"]}
    assert rows == {0: "elected", 1: "failed"}
    assert ended.status == 1


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (("replicas",), "not shown"),
        (("elect", "--election-type", "unclean", "--no-rescue", "--reason", "a test"), "not elected"),
        (("elect", "--election-type", "preferred"), "not elected"),
    ],
)
def test_a_row_of_a_file_that_does_not_exist_refuses_no_other_one(
    call: Caller, words: tuple[str, ...], refused: str
) -> None:
    rows = [("deleted", 0), ("payments", 0), ("payments", 99)]
    named = [{"topic": topic, "partition": number} for topic, number in rows]
    (call.home / "rows.json").write_text(json.dumps({"partitions": named}))
    tail = ("--simulate", "stale-long-tail", "--seed", "2")
    ended = call("ktriage", *words, "--path-to-json-file", "rows.json", *tail)
    assert ended.status == 1 and "payments-0" in ended.out, ended
    assert f"{refused}: deleted-0: no such partition" in ended.err, ended
    assert f"{refused}: payments-99: no such partition" in ended.err, ended
    told = json.loads(
        call("ktriage", *words, "--path-to-json-file", "rows.json", *tail, "--output", "json").out
    )
    left_out = told["missing" if words == ("replicas",) else "failures"]
    assert [(row["topic"], row["partition"]) for row in left_out[:2]] == [("deleted", 0), ("payments", 99)]
