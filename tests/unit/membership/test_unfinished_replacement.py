"""A replacement that was begun and is not done: it is gone on with, or given up, without a terminal too."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.loop import SECOND
from console.jobs.quorum import replacement_run
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from console.jobs.quorum.replacement_run import LoadedReplacement, run_replacement, save_replacement
from console.journal.change_kinds import REPLACE
from console.journal.journal import Journal
from console.journal.unfinished_entries import unfinished
from console.signals import StopRequest
from recovery.membership.replacement import ReplacementKind, ReplacementPlan, ReplacementStep, StepKind
from recovery.membership.replacement_state import StepSituation
from tests.unit.cli.command_process import Caller
from tests.unit.journal.runs import Clock, row, run
from tests.unit.membership.controllers_only import BC, killed, reached
from tests.unit.membership.random_replacement import HEADER, Killed, Operator, cluster

YES = ("--yes", "--reason", "a test")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


class Dies(Operator):
    """An operator of a tool that is killed when a step of this kind begins."""

    at = StepKind.REMOVE

    def begins(self, step: ReplacementStep, seen: StepSituation) -> None:
        if step.kind is self.at:
            raise Killed
        super().begins(step, seen)


class DiesAtTheServers(Dies):
    at = StepKind.SERVERS


def half_done(backend: SimulatorBackend, dies: type[Dies] = Dies, *, not_rebuilt: bool = False) -> int:
    """Node 103 takes the place of 100 as far as that; returns the number of the step that has to be confirmed."""

    async def go() -> ReplacementPlan:
        cluster_id = await backend.membership.open()
        plan = await plan_replacement(
            backend.membership, ReplacementChoice(ReplacementKind.PLANNED, (100,), (103,)), HEADER
        )
        file = save_replacement(plan)
        watcher = dies(backend.simulation.world, plan)
        with pytest.raises(Killed), Journal.open(cluster_id, run("half"), Clock()) as journal:
            await run_replacement(
                backend.membership,
                LoadedReplacement.of(plan, file),
                journal,
                watcher,
                StopRequest(),
                not_rebuilt=not_rebuilt,
            )
        return plan

    plan = asyncio.run(go())
    return next(step.number for step in plan.steps if step.kind is StepKind.SERVERS)


@pytest.fixture
def backend(call: Caller, monkeypatch: pytest.MonkeyPatch) -> SimulatorBackend:  # sets the home
    found = cluster((100, 101, 102), (103,))
    reached(monkeypatch, found)
    monkeypatch.setattr(replacement_run, "PATIENCE", 5.0)
    return found


def test_what_was_confirmed_is_not_asked_again(call: Caller, backend: SimulatorBackend) -> None:
    number = half_done(backend)
    assert set(unfinished(backend.cluster_id).confirmed.values()) == {frozenset({number})}
    ended = call("ktriage", "resume", *YES, *BC)
    assert "remove voter 100" in ended.out
    assert "bootstrap.servers everywhere" not in ended.out


@pytest.mark.parametrize("not_rebuilt", [False, True])
def test_who_is_told_to_resume_is_told_what_had_been_looked_at(
    call: Caller, backend: SimulatorBackend, not_rebuilt: bool
) -> None:
    """Without that option the very next command would be refused."""
    half_done(backend, not_rebuilt=not_rebuilt)
    told = call("ktriage", "quorum", "status", *BC).err
    assert "next: ktriage resume" in told and ("resume --not-rebuilt" in told) == not_rebuilt, told


def test_a_dry_run_counts_what_was_confirmed_in_an_earlier_run(
    call: Caller, backend: SimulatorBackend
) -> None:
    """Otherwise it would show as the next step what ``resume`` does not do again."""
    number = half_done(backend)
    left = unfinished(backend.cluster_id).replacement
    assert left is not None
    ended = call("ktriage", "quorum", "replace", "--plan", str(left.file), "--dry-run", *BC)
    assert ended.status == 0, str(ended)
    steps = {int(text.partition(".")[0]): text for text in ended.out.splitlines() if text[:1].isdigit()}
    assert steps[number].endswith("(done)")
    assert steps[number + 1].startswith(f"{number + 1}. remove voter 100")
    assert not steps[number + 1].endswith("(done)")
    assert unfinished(backend.cluster_id).replacement == left, "nothing was sent, and nothing was recorded"


def test_the_next_command_says_that_a_step_is_done_where_nobody_can_be_asked(
    call: Caller, backend: SimulatorBackend
) -> None:
    number = half_done(backend, DiesAtTheServers)
    ended = call("ktriage", "resume", *YES, *BC)
    assert ended.status == 1
    # It says so and ends: no broker is asked through the controllers, and nobody is there to type it.
    assert f"nobody said that it is done at step {number}" in ended.err
    assert "there is no terminal to ask on" in ended.err
    assert "waiting:" not in ended.err
    named = ("resume", *BC, "--confirmed", str(number), "--yes", "--reason", "TEXT")
    (following,) = [line for line in ended.err.splitlines() if line.startswith("next: ")]
    assert set(named) <= set(following.split())
    ended = call("ktriage", *named)
    assert f"{number}. done" in ended.out or "remove voter 100" in ended.out
    assert "removed: 100" in ended.out


def test_a_replacement_that_somebody_is_at_is_not_called_an_earlier_run_s(
    call: Caller, backend: SimulatorBackend
) -> None:
    half_done(backend)
    looks = (("quorum", "status", *BC), ("journal", *BC))
    for words in looks:
        ended = call("ktriage", *words)
        assert "a controller replacement of an earlier run" in ended.err
        assert "next: ktriage resume" in ended.err
    with Journal.open(backend.cluster_id, run("now", "ktriage", "resume"), Clock()) as journal:
        for words in looks:
            assert "is not done" in call("ktriage", *words).err, "it holds the lock, and is not at that yet"
        journal.before(REPLACE, {"file": "plan.json", "planId": "x"})
        for words in looks:
            ended = call("ktriage", *words)
            assert "pid 4711 of ann on ops1 since 2026-01-31T12:00:01.000Z: ktriage resume" in ended.err
            assert "still going on" in ended.err
            assert "is not done" not in ended.err
            assert "next: ktriage resume" not in ended.err
        assert "ann@ops1 is still going on\n  ktriage resume" in ended.out
        assert "did not end" not in ended.out
    assert "next: ktriage resume" in call("ktriage", "quorum", "status", *BC).err


def test_a_replacement_in_the_way_is_given_up_by_the_command_that_is_named(
    call: Caller, backend: SimulatorBackend
) -> None:
    half_done(backend)
    other = ("quorum", "replace", "102", "--why", "disk", *YES, *BC)
    ended = call("ktriage", *other)
    assert ended.status == 1
    assert "another replacement is half done" in ended.err
    assert "resume" in ended.err
    assert "--give-up" in ended.err
    ended = call("ktriage", "resume", "--give-up", *BC)
    assert ended.status == 0, str(ended)
    assert "given up: the voters stay as they are" in ended.err
    assert "another replacement" not in call("ktriage", *other).err
    for option in (("--give-up",), ("--confirmed", "3")):
        none = call("ktriage", "resume", *option, "--simulate", "controller-disk-failure")
        assert none.status == 1 and "no unfinished controller replacement" in none.err, none


def voters(backend: SimulatorBackend) -> set[int]:
    return {key.id for key in asyncio.run(backend.membership.describe()).voters.keys}


def test_no_voter_is_changed_where_nobody_can_be_asked(call: Caller, backend: SimulatorBackend) -> None:
    half_done(backend)
    ended = call("ktriage", "resume", *BC)
    assert ended.status == 1
    assert "continuing it would send step" in ended.err
    assert "remove voter 100" in ended.err
    assert "there is no terminal to ask on: give --yes and --reason TEXT; nothing was sent" in ended.err
    assert "next: ktriage resume --yes --reason TEXT" in ended.err
    assert voters(backend) == {100, 101, 102, 103}
    assert call("ktriage", "resume", "--yes", *BC).status == 2
    assert "removed: 100" in call("ktriage", "resume", *YES, *BC).out
    assert voters(backend) == {101, 102, 103}


def test_orders_that_stand_are_told_through_controllers_who_do_not_put_them_back(
    call: Caller, backend: SimulatorBackend, tmp_path: Path
) -> None:
    half_done(backend)
    killed(tmp_path, backend.cluster_id, "reorder", {"rows": (row(),)})
    backend.simulation.world.kill_controller(100)
    backend.simulation.advance_to(backend.simulation.now + 10 * SECOND)
    refused = call("ktriage", "resume", *YES, *BC)
    assert refused.status == 1 and "no broker was asked: whether they follow" in refused.err, refused
    ended = call("ktriage", "resume", "--not-rebuilt", *YES, *BC)
    assert "the replacement is done" in ended.out
    assert "not reverted: orders-0: reverting it needs the brokers" in ended.err
    assert ended.status == 1
    assert unfinished(backend.cluster_id).orders


def test_a_plan_that_is_gone_names_what_forgets_the_replacement(
    call: Caller, backend: SimulatorBackend
) -> None:
    half_done(backend)
    begun = unfinished(backend.cluster_id).replacement
    assert begun is not None
    begun.file.unlink()
    ended = call("ktriage", "resume", *BC)
    assert ended.status == 2
    assert "resume --give-up" in ended.err
    assert call("ktriage", "resume", "--give-up", *BC).status == 0


def test_help_of_resume_tells_of_replacements(call: Caller) -> None:
    said = call("ktriage", "resume", "--help").out
    assert "controller replacement" in said
    assert "--give-up" in said


def test_the_journal_names_the_voter_and_is_found_through_controllers(
    call: Caller, backend: SimulatorBackend
) -> None:
    half_done(backend)
    call("ktriage", "resume", *YES, *BC)
    ended = call("ktriage", "journal", *BC)
    assert ended.status == 0, str(ended)
    assert "add-voter 103-" in ended.out
    assert "remove-voter 100-" in ended.out
    assert "0 partitions" not in ended.out
    document = json.loads(call("ktriage", "journal", "--output", "json", *BC).out)
    events = [event for told in document["runs"] for event in told["events"]]
    (removed,) = [event for event in events if event.get("action") == "remove-voter"]
    assert removed["detail"]["voter"] == 100
    assert removed["detail"]["directoryId"]
    (added,) = [event for event in events if event.get("action") == "add-voter"]
    assert added["detail"]["endpoints"]
    answers = {event["entry"]: event["result"] for event in events if event["kind"] == "after"}
    assert answers[removed["entry"]] == {"answer": "done"}
