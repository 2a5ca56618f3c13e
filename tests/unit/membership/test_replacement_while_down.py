"""A replacement that is planned while a controller is down: sets that could not commit are not offered."""

from __future__ import annotations

import pytest

from backends.simulator.adapter import SimulatorBackend
from console.jobs.quorum.quorum_change_report import review_lines
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from recovery.membership.preflight import LivenessLimits
from recovery.membership.replacement import ReplacementError, ReplacementKind, ReplacementPlan, StepKind
from recovery.membership.replacement_safety import after
from recovery.membership.replacement_state import QuorumPicture, situation
from recovery.membership.voters import ReplicaKey
from tests.unit.membership.quorums import quorum
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
