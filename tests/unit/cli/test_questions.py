"""What a person is asked before elections are held: how many, and on which cluster."""

from __future__ import annotations

import pytest

from console.cli.base.run import Run
from console.journal.run_records import read_runs
from recovery.model import Unknown, Why
from tests.command_server import Ended
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import CLUSTER_ID, MemoryBackend, cluster_of, log
from tests.unit.cli.planned_orders import ANY, planned, sent


@pytest.mark.parametrize(("offline", "counted"), [(1, "1 election will"), (2, "2 elections will")])
def test_the_question_counts_the_elections_and_names_the_cluster(
    call: Caller, monkeypatch: pytest.MonkeyPatch, offline: int, counted: str
) -> None:
    backend = cluster_of(offline)
    plan = planned(call, backend)
    asked: list[str] = []

    async def hears(_run: Run, question: str) -> str:
        asked.append(question)
        return ""

    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)
    monkeypatch.setattr(Run, "ask", hears)
    ended = call("ktriage", "apply", *ANY, plan)
    assert asked[0].startswith(f"{counted} be run on cluster {CLUSTER_ID} (kafka:9092).")
    assert "not confirmed" in ended.err
    assert sent(backend) == 0


def test_the_question_says_whom_to_start_instead_of_an_election(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hears(_run: Run, _question: str) -> str:
        return ""

    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)
    monkeypatch.setattr(Run, "ask", hears)
    simulated = ("--simulate", "last-replica-standing")
    call("ktriage", "plan", *simulated, "plan.json")
    ended = call("ktriage", "apply", *simulated, "plan.json")
    said = " ".join(ended.err.split())
    assert "Risk: Start broker 2 instead if its host kept power: its log may hold more." in said
    assert "after the election, read its disk before it starts" in said
    assert "not confirmed" in said


SILENT = Unknown(Why.NOT_ANSWERED, "timed out")


def applying(
    call: Caller, monkeypatch: pytest.MonkeyPatch, offline: int, *answers: str, words: tuple[str, ...] = ()
) -> tuple[MemoryBackend, Ended, list[str]]:
    """``apply`` of that many partitions that may lose something, with the lines typed; and what it asked."""
    backend = cluster_of(offline)
    backend.logs = {1: log(100), 2: log(100), 3: SILENT}
    call.on(backend)("ktriage", "plan", *ANY, "plan.json", "--strategy", "aggressive")
    asked: list[str] = []
    typed = iter(answers)

    async def hears(_run: Run, question: str) -> str:
        asked.append(question)
        return next(typed)

    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)
    monkeypatch.setattr(Run, "ask", hears)
    return backend, call("ktriage", "apply", *ANY, "plan.json", *words), asked


def test_for_one_partition_that_may_lose_something_its_topic_is_typed_and_a_reason(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, ended, asked = applying(call, monkeypatch, 1, "orders", "incident 4711")
    assert ended.status == 0, ended
    assert asked[0].endswith("type the name of the topic that may lose something:")
    assert asked[1] == "Type the reason, for the journal:"
    assert sent(backend) == 1
    assert [run.header["reason"] for run in read_runs(CLUSTER_ID)] == ["incident 4711"]
    assert "reason: incident 4711" in call("ktriage", "journal", *ANY).out


def test_for_several_their_number_is_typed_and_a_reason_that_was_given_is_not_asked_again(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, ended, asked = applying(call, monkeypatch, 2, "2", words=("--reason", "incident 4711"))
    assert ended.status == 0, ended
    assert len(asked) == 1
    assert [run.header["reason"] for run in read_runs(CLUSTER_ID)] == ["incident 4711"]
    assert sent(backend) == 2


@pytest.mark.parametrize("typed", ["1,200", "1200"])
def test_a_number_is_shown_with_separators_and_may_be_typed_with_them(
    call: Caller, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    backend, ended, _ = applying(call, monkeypatch, 1_200, "1.200", words=("--reason", "incident 4711"))
    assert ended.status == 1 and "may lose something is 1,200" in ended.err
    assert sent(backend) == 0
    ended = applying(call, monkeypatch, 1_200, typed, words=("--reason", "incident 4711"))[1]
    assert ended.status == 0, ended


@pytest.mark.parametrize(
    ("offline", "answers", "said"),
    [
        (1, ("1",), "the name of the topic that may lose something is orders"),
        (2, ("orders",), "the number of partitions that may lose something is 2"),
        (2, ("2", ""), "give a reason for the journal"),
    ],
)
def test_anything_else_sends_nothing(
    call: Caller, monkeypatch: pytest.MonkeyPatch, offline: int, answers: tuple[str, ...], said: str
) -> None:
    backend, ended, _ = applying(call, monkeypatch, offline, *answers)
    assert ended.status == 1
    assert said in ended.err and "nothing was sent" in ended.err
    assert sent(backend) == 0


def test_where_nothing_may_be_lost_no_reason_is_asked(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = cluster_of(1)
    backend.logs = {1: log(100), 2: log(100), 3: log(100)}
    planned(call, backend)
    asked: list[str] = []

    async def hears(_run: Run, question: str) -> str:
        asked.append(question)
        return "0"

    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)
    monkeypatch.setattr(Run, "ask", hears)
    assert call("ktriage", "apply", *ANY, "plan.json").status == 0
    assert len(asked) == 1
    assert sent(backend) == 1


def test_the_question_tells_what_the_successors_would_lose(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = cluster_of(2)
    backend.logs = {1: log(100), 2: log(60), 3: log(40)}
    plan = planned(call, backend)
    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)

    async def hears(_run: Run, _question: str) -> str:
        return ""

    monkeypatch.setattr(Run, "ask", hears)
    ended = call("ktriage", "apply", *ANY, plan)
    told = [line for line in ended.err.splitlines() if "fails too" in line or "would lead" in line]
    assert "2 of 2" in told[0] and "80 instead of nothing" in told[0]
    assert ["orders-0: broker 2 would lead" in told[1], "orders-1: broker 2 would lead" in told[2]] == [
        True
    ] * 2
    assert "lose 40" in told[1]


def test_where_the_cluster_elects_the_designated_leader_or_nobody_the_question_says_so(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = cluster_of(2)
    backend.logs = {1: log(100), 2: log(60), 3: log(40)}
    backend.native = True
    plan = planned(call, backend)
    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)

    async def hears(_run: Run, _question: str) -> str:
        return ""

    monkeypatch.setattr(Run, "ask", hears)
    ended = call("ktriage", "apply", *ANY, plan)
    said = "If a chosen leader fails too, its partition is offline again"
    assert said in ended.err and said in ended.out
    assert "would lead" not in ended.err


STAYS, MAY = "its partition is offline again", "2 of 2 may lose more, or newer records: 80 instead of nothing"
UNLESS = f"{MAY} (with ElectLeaders v3: they stay offline)"


@pytest.mark.parametrize(("native", "said", "unsaid"), [(True, STAYS, UNLESS), (False, MAY, STAYS)])
def test_plan_review_its_markdown_and_recover_say_the_same_of_a_leader_that_drops_out(
    call: Caller, monkeypatch: pytest.MonkeyPatch, native: bool, said: str, unsaid: str
) -> None:
    backend = cluster_of(2)
    backend.logs = {1: log(100), 2: log(60), 3: log(40)}
    backend.native = native

    async def hears(_run: Run, _question: str) -> str:
        return ""

    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)
    monkeypatch.setattr(Run, "ask", hears)
    on = call.on(backend)
    reviewed = ("ktriage", "review", *ANY, "plan.json")
    for words in (
        ("ktriage", "plan", *ANY, "plan.json"),
        reviewed,
        (*reviewed, "--output", "markdown"),
        ("ktriage", "recover", *ANY, "--automated-recovery", "--all-offline-partitions"),
    ):
        ended = on(*words)
        text = " ".join((ended.out + ended.err).split())
        assert said in text and unsaid not in text, words


def test_a_review_without_a_cluster_names_both_outcomes_of_a_leader_that_drops_out(call: Caller) -> None:
    backend = cluster_of(2)
    backend.logs = {1: log(100), 2: log(60), 3: log(40)}
    plan = planned(call, backend)
    for output in ("table", "markdown"):
        assert UNLESS in call("ktriage", "review", plan, "--output", output).out


def test_the_limit_is_for_the_successor_too_unless_told_otherwise(call: Caller) -> None:
    backend = cluster_of(1)
    backend.logs = {1: log(100), 2: log(60), 3: log(40)}
    plan = planned(call, backend)
    limit = ("--yes", "--reason", "a test", "--max-loss", "39")
    ended = call("ktriage", "apply", *ANY, plan, *limit)
    assert ended.status == 2
    assert "no partition of the plan is left" in ended.err
    assert sent(backend) == 0
    alone = call("ktriage", "apply", *ANY, plan, "--ignore-successor-loss", "--yes", "--reason", "a test")
    assert (alone.status, "--max-loss" in alone.err) == (2, True)
    assert call("ktriage", "apply", *ANY, plan, *limit, "--ignore-successor-loss").status == 0
    assert sent(backend) == 1
