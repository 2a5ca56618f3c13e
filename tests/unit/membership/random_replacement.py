"""Controller replacements on a simulated cluster: an operator who does what each step says, and faults in between.

One seed is one replacement with everything that happens during it. The run is killed now and then and begun again,
as ``ktriage resume`` does, for a run remembers nothing.
"""

# ruff: noqa: ARG002  # the signatures are the protocols'

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from backends.base.errors import BackendError
from backends.base.protocol import Recorder
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.config import Config
from backends.simulator.loop import SECOND
from backends.simulator.network import controller
from backends.simulator.scenario.build import Scenario
from backends.simulator.topology import BrokerSpec, Topology
from backends.simulator.world import World
from console.jobs.quorum.prepared_change import PreparedChange
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from console.jobs.quorum.replacement_steps import ReplacementResult, StopReason, go_through
from console.jobs.quorum.voter_change import VoterChangeResult
from console.journal.change_kinds import CONFIRM
from recovery.membership.preflight import LivenessLimits, strength
from recovery.membership.quorum import MembershipRules, Quorum
from recovery.membership.replacement import (
    ReplacementHeader,
    ReplacementKind,
    ReplacementPlan,
    ReplacementStep,
    StepKind,
)
from recovery.membership.replacement_state import StepSituation
from tests.unit.membership.audited_quorum import Audited, Rehearsed

HEADER = ReplacementHeader("plan", "2026-01-01T00:00:00+00:00", "somebody", "0")
PATIENCE = 120.0
RUNS = 40


class Killed(Exception):
    """The tool dies at this very moment."""


class Never:
    """A run that no signal stops."""

    def __bool__(self) -> bool:
        return False


@dataclass
class Notes:
    """A journal in memory of what is sent; ``kill_at`` is how many intentions from now the tool dies, 0: never."""

    actions: list[str] = field(default_factory=list)
    kill_at: int = 0

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        if action == CONFIRM:
            return ""
        self.actions.append(action)
        self.kill_at -= 1
        if self.kill_at == 0:
            raise Killed
        return str(len(self.actions))

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        """Nothing is read back."""


def cluster(
    voters: tuple[int, ...],
    spares: tuple[int, ...] = (),
    *,
    seed: int = 1,
    auto_join: bool = False,
    add_first: bool = False,
    kraft_version: int = 1,
    released_calls: bool = False,
    brokers: tuple[int, ...] = (1,),
) -> SimulatorBackend:
    """A simulated cluster of these brokers and controllers, at the second at which an operator comes."""
    config = Config(
        auto_join=auto_join,
        kraft_version=kraft_version,
        membership=MembershipRules(duplicate_ids=add_first),
        released_calls=released_calls,
    )
    specs = tuple(map(BrokerSpec, brokers))
    topology = Topology("rehearsal", specs, (), voters, config=config, spare_controllers=spares)
    scenario = Scenario("rehearsal", "", "", "", topology, (), 5 * SECOND, (), 0, ())
    return SimulatorBackend(scenario, seed)


class Operator:
    """Does on the hosts what each step says; a :class:`console.jobs.quorum.replacement_steps.Watcher`."""

    def __init__(self, world: World, plan: ReplacementPlan) -> None:
        self.world = world
        self.plan = plan
        self.done: set[int] = set()
        self.stopped: set[int] = {k.id for k in plan.wanted.leaving if k.id not in world.controllers}
        self.swapped: set[int] = set()
        self.said: list[str] = []
        self.typed: list[str] = []
        self.waited = 0

    @property
    def confirmed(self) -> frozenset[int]:
        return frozenset(self.done)

    def begins(self, step: ReplacementStep, step_state: StepSituation) -> None:
        self.said.append(f"begins {step.number} {step.kind}")
        if step.kind is StepKind.SERVERS:
            self.typed += step.commands
        self.waited = 0
        self.act(step, step_state)

    def act(self, step: ReplacementStep, step_state: StepSituation) -> None:
        """On the host, unless something speaks against it."""
        if step_state.blockers:
            return
        if step.kind is StepKind.STOP:
            self.stopped.add(step.node)
            self.world.kill_controller(step.node)
        elif step.kind is StepKind.START:
            self.start(step.node, new_disk=self.plan.wanted.kind is ReplacementKind.DISK)
        elif step.kind is StepKind.SWAP and step.node not in self.swapped:
            self.world.kill_controller(step.node)
        elif step.kind is StepKind.STAY_OUT:
            self.world.quorum.configure(step.node, auto_join=False)
            self.world.kill_controller(step.node)
            self.world.start_controller(step.node)
        elif step.kind is StepKind.SERVERS:
            self.done.add(step.number)

    def start(self, node: int, *, new_disk: bool) -> None:
        self.stopped.discard(node)
        if node in self.world.controllers:
            return
        old = {key.directory_id for key in self.plan.wanted.leaving}
        if new_disk and self.world.quorum.disks[node].key.directory_id in old:
            self.world.replace_controller_disk(node)
        self.world.start_controller(node)

    def waits(self, step: ReplacementStep, step_state: StepSituation, seconds_left: float | None) -> None:
        self.waited += 1
        if step.kind is StepKind.SWAP and self.waited % 10 == 9 and step.node not in self.world.controllers:
            self.swapped.add(step.node)
            self.world.replace_controller_disk(step.node)
            self.world.start_controller(step.node)
        elif self.waited % 10 == 0:
            self.act(step, step_state)

    def quorum_unknown(self, step: ReplacementStep, why: BackendError) -> None:
        self.said.append(f"unseen {step.number}")

    def judged(self, step: ReplacementStep, prepared: PreparedChange) -> None:
        self.said.append(f"judged {step.number} {prepared.verdict.allowed}")

    async def allows(self, step: ReplacementStep, prepared: PreparedChange) -> bool:
        return True

    def says(self, step: ReplacementStep, said: str) -> None:
        """Nobody reads it."""

    def changed(self, step: ReplacementStep, changed: VoterChangeResult) -> None:
        self.said.append(f"changed {step.number} {changed.done}")
        if step.kind is StepKind.REMOVE and self.plan.wanted.auto_join:
            self.stopped.add(step.node)  # started again it would add itself

    def ends(self, step: ReplacementStep) -> None:
        self.said.append(f"ends {step.number}")


class Unlucky(Operator):
    """The same while controllers die and come back, links break, leaders change, and the tool itself is killed."""

    def __init__(self, world: World, plan: ReplacementPlan, random: Random, rehearsed: Rehearsed) -> None:
        super().__init__(world, plan)
        self.random = random
        self.rehearsed = rehearsed
        self.dead: dict[int, int] = {}
        self.calm = False
        self.note_who_is_up: Callable[[], None] = lambda: None

    def begins(self, step: ReplacementStep, step_state: StepSituation) -> None:
        super().begins(step, step_state)
        self.misfortune()

    def waits(self, step: ReplacementStep, step_state: StepSituation, seconds_left: float | None) -> None:
        super().waits(step, step_state, seconds_left)
        self.misfortune()

    def ends(self, step: ReplacementStep) -> None:
        super().ends(step)
        self.misfortune()

    def misfortune(self) -> None:
        self.back()
        if self.calm or self.random.random() > 0.25:
            return
        what = self.random.choice((self.die, self.die, self.cut, self.heal, self.lead, self.kill_tool))
        self.rehearsed.faults.append(f"{self.world.loop.now / SECOND:.1f} {what.__name__}")
        what()

    def back(self) -> None:
        """Whoever died comes back by and by, but for who was stopped by the operator."""
        for node, until in list(self.dead.items()):
            if self.world.loop.now >= until:
                if self.better_dead(node):
                    continue
                del self.dead[node]
                if node not in self.world.controllers and node not in self.stopped:
                    self.world.start_controller(node)

    def better_dead(self, node: int) -> bool:
        """Whether who is to go, and would add itself again, may stay dead: the quorum does without it."""
        wanted = self.plan.wanted
        goes = node in {key.id for key in wanted.leaving} - set(wanted.joining)
        return wanted.auto_join and goes and self.world.quorum.leader is not None

    def die(self) -> None:
        self.note_who_is_up()
        running = sorted(self.world.controllers)
        if running:
            node = self.random.choice(running)
            self.world.kill_controller(node)
            self.dead[node] = self.world.loop.now + self.random.randint(1, 15) * SECOND

    def cut(self) -> None:
        nodes = sorted(self.world.controllers)
        if len(nodes) > 1:
            one, other = self.random.sample(nodes, 2)
            self.world.network.cut([controller(one)], [controller(other)])

    def heal(self) -> None:
        self.world.network.heal_all()

    def lead(self) -> None:
        running = sorted(self.world.controllers)
        if running:
            self.world.failover(self.random.choice(running))

    def kill_tool(self) -> None:
        raise Killed

    def peace(self) -> None:
        """Everything is mended; from now on nothing happens."""
        self.calm = True
        self.heal()
        self.dead = dict.fromkeys(self.dead, 0)
        self.back()


def choice_of(random: Random) -> tuple[ReplacementChoice, tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Some replacement: what is wanted, the voters, the spare hosts, and what kind of cluster it is."""
    kind = random.choice(list(ReplacementKind))
    sizes = {ReplacementKind.GROW: (1, 3), ReplacementKind.SHRINK: (3, 5)}.get(kind, (3, 3, 5))
    voters = tuple(range(100, 100 + random.choice(sizes)))
    spares = (110, 111)
    leaving: tuple[int, ...] = ()
    joining: tuple[int, ...] = ()
    if kind in (ReplacementKind.DISK, ReplacementKind.HOST, ReplacementKind.PLANNED):
        leaving = (random.choice(voters),)
    elif kind is ReplacementKind.SHRINK:
        leaving = tuple(random.sample(voters, 2))
    if kind in (ReplacementKind.HOST, ReplacementKind.PLANNED):
        joining = spares[:1]
    elif kind is ReplacementKind.GROW:
        joining = spares
    cluster_kind = {"auto_join": random.random() < 0.2, "add_first": random.random() < 0.2}
    return ReplacementChoice(kind, leaving, joining), voters, spares, cluster_kind


async def rehearse(seed: int) -> Rehearsed:
    """One seed. The tool is killed and begun again until the replacement is done."""
    random = Random(seed)
    choice, voters, spares, kind = choice_of(random)
    rehearsed = Rehearsed(seed, choice.kind)
    backend = cluster(voters, spares, seed=seed, **kind)
    await backend.open()
    world = backend.simulation.world
    membership: Any = Audited(backend.membership, world, rehearsed)
    if choice.kind is ReplacementKind.HOST:
        world.kill_controller(choice.leaving[0])
        await backend.advance(5)
    plan = await plan_replacement(membership, choice, HEADER)
    operator = Unlucky(world, plan, random, rehearsed)
    operator.note_who_is_up = membership.note_who_is_up
    while rehearsed.runs < RUNS and rehearsed.reason is not StopReason.DONE:
        rehearsed.runs += 1
        if rehearsed.runs > RUNS // 2:
            operator.peace()
        notes = Notes(kill_at=0 if operator.calm else random.choice((0, 0, 1, 2)))
        try:
            gone = await go_through(membership, plan, notes, operator, Never(), patience=PATIENCE)
        except (Killed, BackendError):
            await backend.advance(1)
            operator.back()
            continue
        rehearsed.reason = gone.reason
    operator.peace()
    await backend.advance(10)
    # Who was to go may have come back meanwhile and joined by itself: going on takes it out again.
    with suppress(BackendError):
        await go_through(membership, plan, Notes(), operator, Never(), patience=PATIENCE)
    await backend.advance(10)
    await _check(backend, plan, rehearsed)
    await backend.close()
    return rehearsed


async def _check(backend: SimulatorBackend, plan: ReplacementPlan, rehearsed: Rehearsed) -> None:
    """Whether the end is as it was wanted, and no promise was broken on the way."""
    checker = backend.simulation.checker
    checker.settle()
    rehearsed.wrong += [str(broken) for broken in checker.broken]
    if rehearsed.reason is not StopReason.DONE:
        rehearsed.wrong.append(f"not done after {rehearsed.runs} runs: {rehearsed.reason}")
    try:
        quorum: Quorum = await backend.membership.describe()
    except BackendError as error:
        rehearsed.wrong.append(str(error))
        return
    left = {key for key in plan.wanted.leaving if key in quorum.voters.keys}
    missing = set(plan.wanted.joining) - {key.id for key in quorum.voters.keys}
    if left or missing:
        rehearsed.wrong.append(f"voters {quorum.voters.keys}: {left} should be gone, {missing} are missing")
    if not strength(quorum, quorum.voters, LivenessLimits()).commits:
        rehearsed.wrong.append("the quorum does not commit in the end")


def rehearsed(seed: int) -> Rehearsed:
    """:func:`rehearse` from where no loop runs."""
    return asyncio.run(rehearse(seed))


async def through(
    backend: SimulatorBackend,
    plan: ReplacementPlan,
    operator: Operator | None = None,
    recorder: Recorder | None = None,
) -> tuple[ReplacementResult, Operator]:
    """One run through a plan with an operator who does as he is told."""
    watcher = operator or Operator(backend.simulation.world, plan)
    gone = await go_through(
        backend.membership, plan, recorder or Notes(), watcher, Never(), patience=PATIENCE
    )
    return gone, watcher
