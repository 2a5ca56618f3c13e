"""A replacement that is planned while a controller is down: sets that could not commit are not offered."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from backends.simulator.adapter import SimulatorBackend
from console.app.base.confirmed_change import Confirmed
from console.errors import NotDone
from console.jobs.quorum.quorum_change_report import review_lines
from console.jobs.quorum.replace_controller import ReplaceController
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from console.jobs.quorum.replacement_steps import Watcher
from recovery.cluster_health import ClusterHealth, quorum_finding
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum_health import QuorumHealth, health
from recovery.membership.replacement import ReplacementError, ReplacementKind, ReplacementPlan, StepKind
from recovery.membership.replacement_safety import after, refusal_while_brokers_follow_nobody
from recovery.membership.replacement_state import QuorumPicture, situation
from recovery.membership.voters import ReplicaKey
from recovery.wording.advice_text import AdvicePart
from recovery.wording.cluster_advice import cluster_advice
from tests.unit.membership.quorums import key, quorum
from tests.unit.membership.random_replacement import HEADER, cluster


async def with_102_down() -> SimulatorBackend:
    backend = cluster((100, 101, 102), (103, 104))
    await backend.open()
    backend.simulation.world.kill_controller(102)
    await backend.advance(5)
    return backend


async def planned(choice: ReplacementChoice) -> ReplacementPlan:
    backend = await with_102_down()
    return await plan_replacement(backend.membership, choice, HEADER)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (
            ReplacementChoice(ReplacementKind.SHRINK, (101,)),
            "102 is down or behind: bring it back or replace it first",
        ),
        (ReplacementChoice(ReplacementKind.DISK, (101,)), "nothing could be committed"),
        (
            ReplacementChoice(ReplacementKind.PLANNED, (100,), (103,)),
            "each restart would stop the quorum: 3 of 4 voters up",
        ),
        (ReplacementChoice(ReplacementKind.PLANNED, (102,), (103,)), "--why host"),
        (ReplacementChoice(ReplacementKind.SHRINK, (102,)), "ktriage quorum remove"),
    ],
)
async def test_what_cannot_be_gone_through_today_is_not_planned(choice: ReplacementChoice, said: str) -> None:
    with pytest.raises(ReplacementError) as refused:
        await planned(choice)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "choice",
    [
        ReplacementChoice(ReplacementKind.DISK, (102,)),
        ReplacementChoice(ReplacementKind.HOST, (102,), (103,)),
        ReplacementChoice(ReplacementKind.GROW, (), (103, 104)),
    ],
)
async def test_what_mends_it_is_planned_with_the_figures_of_today(choice: ReplacementChoice) -> None:
    plan = await planned(choice)
    quorum_now = await (await with_102_down()).membership.describe()
    told = [line for line in review_lines(plan, plan.steps[0], quorum_now) if "then:" in line]
    wanted = {
        ReplacementKind.DISK: [
            ("voters 100, 101:", "2 of 2 voters up"),
            ("voters 100, 101, 102:", "3 of 3 voters up"),
        ],
        ReplacementKind.HOST: [
            ("voters 100, 101, 102, 103:", "3 of 4 voters up"),
            ("voters 100, 101, 103:", "3 of 3 voters up"),
        ],
        ReplacementKind.GROW: [
            ("voters 100, 101, 102, 103:", "3 of 4 voters up"),
            ("voters 100, 101, 102, 103, 104:", "4 of 5 voters up"),
        ],
    }
    for line, text in zip(told, wanted[choice.kind], strict=True):
        assert all(part in line for part in text)


def _never(_planned: object, _stop: object) -> AbstractContextManager[Watcher]:
    raise AssertionError("nothing is carried out")


DO_NOT = "Do not replace, format or wipe 102: a rebuild on another host, not seen from here, may have made it"


async def test_a_voter_that_is_down_is_not_replaced_while_a_broker_does_not_follow(tmp_path: Path) -> None:
    """Neither by a new plan nor by one that was made while the brokers followed."""
    backend = cluster((100, 101, 102), brokers=(1, 2))
    await backend.open()
    backend.simulation.world.kill_controller(102)
    await backend.advance(5)
    choice = ReplacementChoice(ReplacementKind.DISK, (102,))
    plan = await plan_replacement(backend.membership, choice, HEADER)
    backend.simulation.world.kill_broker(2)
    await backend.advance(15)
    made = ReplaceController(plan, tmp_path / "plan.json", _never, "disk")
    asked = Confirmed(None, lambda *_: None, lambda *_: None)
    with pytest.raises(NotDone) as refused:
        await plan_replacement(backend.membership, choice, HEADER)
    with pytest.raises(NotDone) as later:
        await made.prepare(backend.membership, plan.wanted.cluster_id, asked)
    for one in (refused, later):
        assert DO_NOT in str(one.value) and "ktriage quorum evidence LOG_DIR" in str(one.value)
        assert "broker 2 is not seen to follow controller 10" in str(one.value)
        assert str(one.value).endswith(
            "where broker 2 cannot come back, give --not-rebuilt; nothing was sent"
        )
    looked = ReplacementChoice(ReplacementKind.DISK, (102,), not_rebuilt=True)
    assert await plan_replacement(backend.membership, looked, HEADER)
    assert await dataclasses.replace(made, not_rebuilt=True).prepare(
        backend.membership, plan.wanted.cluster_id, asked
    )
    backend.simulation.world.start_broker(2)
    await backend.advance(15)
    assert await plan_replacement(backend.membership, choice, HEADER)


@pytest.mark.parametrize(
    ("leaving", "elsewhere", "said"),
    [
        (102, (), ""),
        (102, (1, 2), "brokers 1 and 2 are not seen to follow controller 101"),
        (100, (1, 2), ""),
    ],
    ids=["every broker follows", "brokers answer and follow another quorum", "the voter that leaves is up"],
)
def test_one_broker_that_follows_old_voters_does_not_speak_for_the_others(
    leaving: int, elsewhere: tuple[int, ...], said: str
) -> None:
    """Broker 3 follows 101; 1 and 2 hold the log of a quorum that was rebuilt with 102, and answer."""
    led = quorum(100, 101, 102, down=(102,), observers=(key(3),), leader=key(101))
    found = health(led, LivenessLimits(), {100, 101, 102})
    refused = refusal_while_brokers_follow_nobody((leaving,), found, elsewhere)
    assert bool(refused) == bool(said)
    # Who says that nothing was rebuilt is contradicted by brokers that answer and follow others.
    looked = refusal_while_brokers_follow_nobody((leaving,), found, elsewhere, not_rebuilt=True)
    assert looked == refused and "--not-rebuilt" not in refused
    assert said in refused and (DO_NOT in refused or not said), refused
    advised = " ".join(one.text.instead for one in _advised(found, elsewhere))
    assert ("Or replace it" in advised) == (not elsewhere)


def _advised(found: QuorumHealth, fenced: tuple[int, ...]) -> tuple[AdvicePart, ...]:
    """What ``status`` says of it, where these brokers answer and are fenced."""
    finding = ClusterHealth(quorum_finding(found.quorum), brokers_fenced=fenced)
    advice = cluster_advice(finding, found, None, (), ())
    return (*advice.first, *advice.then)


async def test_controllers_are_not_restarted_while_a_restart_would_stop_the_quorum() -> None:
    backend = cluster((1, 2, 3), (4,))
    await backend.open()
    plan = await plan_replacement(
        backend.membership, ReplacementChoice(ReplacementKind.PLANNED, (1,), (4,)), HEADER
    )
    step = next(step for step in plan.steps if step.kind is StepKind.SERVERS)
    servers = {"controller 2": ("elsewhere:1",), "broker 1": ("elsewhere:1",)}
    assert not situation(plan, step, QuorumPicture(quorum(1, 2, 3), servers)).blockers
    (held,) = situation(plan, step, QuorumPicture(quorum(1, 2, 3, down=(3,)), servers)).blockers
    assert "restarting a controller would stop the quorum" in held
    only_brokers = {"broker 1": ("elsewhere:1",)}
    assert not situation(plan, step, QuorumPicture(quorum(1, 2, 3, down=(3,)), only_brokers)).blockers


async def test_an_old_disk_beside_the_new_one_counts_as_the_one_that_is_down() -> None:
    backend = cluster((1, 2, 3), add_first=True)
    await backend.open()
    plan = await plan_replacement(backend.membership, ReplacementChoice(ReplacementKind.DISK, (3,)), HEADER)
    added = next(step for step in plan.steps if step.kind is StepKind.ADD)
    found = after(plan, added, quorum(1, 2, 3, down=(3,)), LivenessLimits())
    assert str(found) == "tolerates no more failures: 3 of 4 voters up, majority 3"
    assert found.down == (ReplicaKey(3, "dir3"),)


async def test_no_static_voter_is_taken_away_while_another_is_down() -> None:
    backend = cluster((100, 101, 102), kraft_version=0)
    await backend.open()
    backend.simulation.world.kill_controller(102)
    await backend.advance(5)
    with pytest.raises(ReplacementError, match=r"takes a voter away while another is down or behind: 102"):
        await plan_replacement(backend.membership, ReplacementChoice(ReplacementKind.DISK, (101,)), HEADER)
    assert await plan_replacement(backend.membership, ReplacementChoice(ReplacementKind.DISK, (102,)), HEADER)
