"""Each kind of replacement on a simulated quorum, undisturbed, and with the tool killed at every step."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from backends.base.errors import BackendError
from backends.base.membership import ClusterNode, Membership, ProcessRole
from backends.simulator.adapter import SimulatorBackend
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from console.jobs.quorum.replacement_steps import StopReason, go_through, standing
from recovery.membership.replacement import (
    ReplacementError,
    ReplacementKind,
    ReplacementPlan,
    ReplacementStep,
    StepKind,
)
from recovery.membership.replacement_state import StepSituation
from recovery.model import Unknown
from tests.unit.membership.audited_quorum import Audited, Rehearsed
from tests.unit.membership.random_replacement import (
    HEADER,
    PATIENCE,
    Killed,
    Never,
    Notes,
    Operator,
    cluster,
    through,
)


class Story(NamedTuple):
    """A replacement on a kind of cluster; ``sent`` is what the tool sends, ``voters`` who votes in the end."""

    choice: ReplacementChoice
    voters: tuple[int, ...]
    sent: tuple[str, ...]
    after: frozenset[int]
    kind: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it


THREE = (100, 101, 102)
STORIES = {
    "a follower's disk": Story(
        ReplacementChoice(ReplacementKind.DISK, (102,)),
        THREE,
        ("remove-voter", "add-voter"),
        frozenset(THREE),
    ),
    "the leader's disk": Story(
        ReplacementChoice(ReplacementKind.DISK, (100,)),
        THREE,
        ("remove-voter", "add-voter"),
        frozenset(THREE),
    ),
    "a disk where the document's order is allowed": Story(
        ReplacementChoice(ReplacementKind.DISK, (102,)),
        THREE,
        ("add-voter", "remove-voter"),
        frozenset(THREE),
        {"add_first": True},
    ),
    "a disk of a controller that joins by itself": Story(
        ReplacementChoice(ReplacementKind.DISK, (102,)), THREE, (), frozenset(THREE), {"auto_join": True}
    ),
    "a disk of a static quorum": Story(
        ReplacementChoice(ReplacementKind.DISK, (102,)), THREE, (), frozenset(THREE), {"kraft_version": 0}
    ),
    "a host that is lost": Story(
        ReplacementChoice(ReplacementKind.HOST, (101,), (110,)),
        THREE,
        ("add-voter", "remove-voter"),
        frozenset((100, 102, 110)),
    ),
    "the leader moved to a new host": Story(
        ReplacementChoice(ReplacementKind.PLANNED, (100,), (110,)),
        THREE,
        ("add-voter", "remove-voter"),
        frozenset((101, 102, 110)),
    ),
    "a host that is lost, where the cluster unregisters controllers": Story(
        ReplacementChoice(ReplacementKind.HOST, (101,), (110,)),
        THREE,
        ("add-voter", "remove-voter", "unregister-controller"),
        frozenset((100, 102, 110)),
        {"released_calls": True},
    ),
    "a controller that runs, where the cluster unregisters controllers": Story(
        ReplacementChoice(ReplacementKind.PLANNED, (101,), (110,)),
        THREE,
        ("add-voter", "remove-voter", "unregister-controller"),
        frozenset((100, 102, 110)),
        {"released_calls": True},
    ),
    "from one to three": Story(
        ReplacementChoice(ReplacementKind.GROW, (), (110, 111)),
        (100,),
        ("add-voter", "add-voter"),
        frozenset((100, 110, 111)),
    ),
    "from three to five": Story(
        ReplacementChoice(ReplacementKind.GROW, (), (110, 111)),
        THREE,
        ("add-voter", "add-voter"),
        frozenset((*THREE, 110, 111)),
    ),
    "from one to three by auto-join": Story(
        ReplacementChoice(ReplacementKind.GROW, (), (110, 111)),
        (100,),
        (),
        frozenset((100, 110, 111)),
        {"auto_join": True},
    ),
    "from five to three": Story(
        ReplacementChoice(ReplacementKind.SHRINK, (100, 104)),
        (100, 101, 102, 103, 104),
        ("remove-voter", "remove-voter"),
        frozenset((101, 102, 103)),
    ),
    "from three to one, with auto-join": Story(
        ReplacementChoice(ReplacementKind.SHRINK, (101, 102)),
        THREE,
        ("remove-voter", "remove-voter"),
        frozenset((100,)),
        {"auto_join": True},
    ),
}


async def begun(story: Story) -> tuple[SimulatorBackend, ReplacementPlan]:
    backend = cluster(story.voters, (110, 111), **story.kind)
    await backend.open()
    if story.choice.kind is ReplacementKind.HOST:
        backend.simulation.world.kill_controller(story.choice.leaving[0])
        await backend.advance(5)
    return backend, await plan_replacement(backend.membership, story.choice, HEADER)


async def as_wanted(backend: SimulatorBackend, story: Story, plan: ReplacementPlan) -> None:
    """The right voters, with the right directories, and no promise of the quorum broken."""
    await backend.advance(5)
    quorum = await backend.membership.describe()
    assert {key.id for key in quorum.voters.keys} == story.after
    if not plan.wanted.static:
        assert not set(plan.wanted.leaving) & set(quorum.voters.keys)
    backend.simulation.checker.settle()
    assert not backend.simulation.checker.broken


@pytest.mark.parametrize("name", STORIES)
async def test_the_steps_lead_to_what_was_wanted(name: str) -> None:
    story = STORIES[name]
    backend, plan = await begun(story)
    notes = Notes()
    gone, operator = await through(backend, plan, recorder=notes)
    assert gone.reason is StopReason.DONE, operator.said
    assert tuple(notes.actions) == story.sent
    await as_wanted(backend, story, plan)
    if story.kind.get("released_calls"):
        listed = await backend.membership.controllers()
        assert not isinstance(listed, Unknown)
        assert {one.id for one in listed} == story.after
    assert not any("HOST-OF" in line for line in operator.typed), operator.typed
    _, step = await standing(backend.membership, plan, operator.confirmed)
    assert step is None or plan.wanted.static


class Dying(Operator):
    """The operator of a tool that is killed when a step begins, and once more when it waits."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.killed: set[tuple[str, int]] = set()

    def begins(self, step: ReplacementStep, seen: StepSituation) -> None:
        self.die("begins", step)
        super().begins(step, seen)

    def waits(self, step: ReplacementStep, seen: StepSituation, seconds_left: float | None) -> None:
        super().waits(step, seen, seconds_left)
        self.die("waits", step)

    def die(self, where: str, step: ReplacementStep) -> None:
        if (where, step.number) not in self.killed:
            self.killed.add((where, step.number))
            raise Killed


@pytest.mark.parametrize("before_sending", [True, False])
@pytest.mark.parametrize("name", [name for name in STORIES if "static" not in name])
async def test_a_tool_killed_at_every_step_goes_on_from_where_the_cluster_is(
    name: str, before_sending: bool
) -> None:
    story = STORIES[name]
    backend, plan = await begun(story)
    told = Rehearsed(1, story.choice.kind)
    membership: Any = Audited(backend.membership, backend.simulation.world, told)
    operator = Dying(backend.simulation.world, plan)
    kills = 0
    for run in range(40):
        notes = Notes(kill_at=1 if before_sending and run % 2 == 0 else 0)
        try:
            gone = await go_through(membership, plan, notes, operator, Never(), patience=PATIENCE)
        except (Killed, BackendError):
            kills += 1
            await backend.advance(1)
            continue
        if gone.reason is StopReason.DONE:
            break
    assert gone.reason is StopReason.DONE, operator.said
    assert kills >= len(plan.steps) // 2
    assert not told.wrong
    assert len(told.sent) <= len(story.sent) + kills
    await as_wanted(backend, story, plan)


async def test_two_operators_with_one_plan_do_no_harm() -> None:
    story = STORIES["a follower's disk"]
    backend, plan = await begun(story)
    await through(backend, plan)
    gone, second = await through(backend, plan)
    assert gone.reason is StopReason.DONE
    assert not [line for line in second.said if line.startswith("changed")]
    await as_wanted(backend, story, plan)


async def test_a_newcomer_that_stops_fetching_is_not_added() -> None:
    backend, plan = await begun(STORIES["from three to five"])
    world = backend.simulation.world

    class Absent(Operator):
        def begins(self, step: ReplacementStep, seen: StepSituation) -> None:
            super().begins(step, seen)
            if step.number == 3:  # it has caught up, and its turn to be added has come
                world.kill_controller(110)

        def act(self, step: ReplacementStep, seen: StepSituation) -> None:
            if step.number == 1 and 110 not in world.quorum.registered:
                super().act(step, seen)

    notes = Notes()
    gone = await go_through(backend.membership, plan, notes, Absent(world, plan), Never(), patience=30.0)
    assert gone.reason is StopReason.TOO_LONG
    assert notes.actions == []
    quorum = await backend.membership.describe()
    assert {key.id for key in quorum.voters.keys} == set(THREE)


class BrokersNotListed:
    """A quorum whose brokers are all restarting: the cluster lists none of them."""

    def __init__(self, membership: Membership, *, asks_brokers: bool) -> None:
        self._membership = membership
        self.asks_brokers = asks_brokers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._membership, name)

    async def nodes(self) -> tuple[ClusterNode, ...]:
        found = await self._membership.nodes()
        return tuple(node for node in found if node.role is not ProcessRole.BROKER)


@pytest.mark.parametrize(
    ("asks_brokers", "reason"), [(True, StopReason.TOO_LONG), (False, StopReason.UNCONFIRMED)]
)
async def test_brokers_that_restart_are_waited_for_and_those_that_are_never_asked_are_not(
    asks_brokers: bool, reason: StopReason
) -> None:
    backend, plan = await begun(STORIES["a host that is lost"])

    class Restarting(Operator):
        @property
        def confirmed(self) -> frozenset[int]:
            return frozenset()

    membership: Any = BrokersNotListed(backend.membership, asks_brokers=asks_brokers)
    operator = Restarting(backend.simulation.world, plan)
    gone = await go_through(membership, plan, Notes(), operator, Never(), patience=30.0, attended=False)
    assert gone.step is not None
    assert (gone.step.kind, gone.reason) == (StepKind.SERVERS, reason)


async def test_what_cannot_be_planned_is_refused_in_one_line() -> None:
    backend = cluster(THREE, (110,))
    await backend.open()
    for choice, said in (
        (ReplacementChoice(ReplacementKind.GROW, (), (101,)), "101 is a voter already"),
        (ReplacementChoice(ReplacementKind.SHRINK, THREE), "nobody would be left"),
        (ReplacementChoice(ReplacementKind.HOST, (101,), ()), "needs one voter that goes"),
        (ReplacementChoice(ReplacementKind.PLANNED, (101,), (101,)), "a new host needs a new node id"),
        (ReplacementChoice(ReplacementKind.DISK, (101,), (110,)), "same node id"),
    ):
        with pytest.raises(ReplacementError, match=said):
            await plan_replacement(backend.membership, choice, HEADER)


async def test_a_static_quorum_is_not_changed_by_requests() -> None:
    backend = cluster(THREE, (110,), kraft_version=0)
    await backend.open()
    with pytest.raises(ReplacementError, match=r"quorum upgrade"):
        await plan_replacement(
            backend.membership, ReplacementChoice(ReplacementKind.HOST, (101,), (110,)), HEADER
        )
