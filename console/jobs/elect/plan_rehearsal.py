"""``apply --rehearse``: a plan is applied to a simulated copy of the cluster first, by the code that applies it for
real; then once more, and the broker that is to lead most of it drops out in the middle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from backends.base.answers import Outcome
from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.loop import SECOND
from backends.simulator.partition_table import id_of
from backends.simulator.rehearsal import NullRecorder
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.files import parse
from backends.simulator.simulation import Simulation
from console.errors import NotDone
from console.jobs.elect.election_batches import Elected, execute
from console.jobs.simulate.cluster_copy import ClusterCopy, read_copy
from console.provenance import now
from console.reading.plan_comparison import prepare
from console.signals import StopRequest
from recovery.plan.values import Plan
from recovery.wording.quantity_text import and_more, counted

NAME = "rehearsal"
SETTLE = 30 * SECOND
"""Virtual µs after the elections, until who leads is looked at: a broker that drops out is fenced by then."""


class DropOut(NamedTuple):
    """A broker is killed at this virtual time, in µs."""

    broker: int
    at: int


@dataclass(frozen=True, slots=True)
class Performance:
    """One run. ``refused`` are the rows that did not hold in the copy, for which nothing was sent, and those that
    were not elected. ``began`` and ``ended`` are in virtual µs. At the end ``led`` partitions have a leader,
    ``wrong`` another one than planned, and the assignment of ``orders_open`` still has the order that was written
    for the election.
    """

    elected: Elected | None
    refused: tuple[str, ...]
    began: int
    ended: int
    led: int
    wrong: tuple[str, ...]
    orders_open: int
    problem: str = ""

    @property
    def as_planned(self) -> int:
        """How many rows were elected."""
        return 0 if self.elected is None else self.elected.counts[Outcome.ELECTED]


@dataclass(frozen=True, slots=True)
class PlanRehearsal:
    """``rows`` of the plan were rehearsed: ``whole`` undisturbed, ``broken`` with ``drop``. ``copy`` says what was
    assumed.
    """

    rows: int
    whole: Performance
    broken: Performance | None
    drop: DropOut | None
    copy: ClusterCopy

    @property
    def succeeded(self) -> bool:
        """Whether every row was elected, and nobody else."""
        whole = self.whole
        return whole.as_planned == whole.led == self.rows and not whole.wrong and not whole.orders_open

    def lines(self) -> Iterator[str]:
        """What happened, the worst first."""
        done = f"{self.whole.as_planned:,} of {self.rows:,} elected as planned"
        yield f"{done} on a simulated copy of this cluster, where everything is allowed."
        yield from _trouble(self.whole)
        if self.broken is not None and self.drop is not None:
            broken = self.broken
            led = f"{broken.led:,} of {self.rows:,} have a leader then"
            yield f"If broker {self.drop.broker} drops out in the middle: {led}, {_orders(broken)}."
            # Why a row has no leader then is told of the copy alone: its requests are in doubt nowhere else.
            if broken.problem:
                yield f"! Then: {broken.problem}"
            if broken.wrong:
                yield f"! Then another replica leads: {broken.wrong[0]}{and_more(len(broken.wrong))}."
        yield from (f"! A guess: {one}." for one in self.copy.guessed)


def _orders(run: Performance) -> str:
    if run.orders_open:
        return f"and ktriage resume puts {counted(run.orders_open, 'replica order')} back"
    return "and every replica order is put back"


def _trouble(run: Performance) -> Iterator[str]:
    if run.problem:
        yield f"! {run.problem}"
    if run.wrong:
        yield f"! Another replica leads: {run.wrong[0]}{and_more(len(run.wrong))}."
    if run.refused:
        yield f"! Not elected: {run.refused[0]}{and_more(len(run.refused))}."


async def rehearsed(
    cluster: Backend, plan: Plan, *, attempts: int, seconds: float, progress: Progress | None = None
) -> PlanRehearsal:
    """Copies the cluster as it is now and applies the plan there, twice; nothing is sent to the cluster.
    ``seconds`` limits the replicas' answers. Raises BackendError, InputError and NotDone where the cluster cannot
    be copied.
    """
    copy = await read_copy(cluster, seconds, now().timestamp(), progress)
    scenario = parse(copy.text, NAME, "the copy of the cluster")
    whole = await _performed(scenario, plan, attempts, None)
    chosen = Counter(row.leader for row in plan.rows).most_common()
    drop = DropOut(min(chosen, key=lambda one: (-one[1], one[0]))[0], (whole.began + whole.ended) // 2)
    broken = await _performed(scenario, plan, attempts, drop) if whole.as_planned else None
    return PlanRehearsal(len(plan.rows), whole, broken, drop, copy)


async def _performed(scenario: Scenario, plan: Plan, attempts: int, drop: DropOut | None) -> Performance:
    backend = SimulatorBackend(scenario)
    simulation = backend.load(scenario.operator_at)
    world = simulation.world
    try:
        own = _for_copy(plan, backend.cluster_id, simulation)
        await backend.open()
        prepared = await prepare(backend, own, backend.cluster_id)
        refused = tuple(f"{one.tp}: {one.decision}: {one.detail}" for one in prepared.refused)
        began = simulation.now
        if drop is not None:
            world.loop.call_at(max(drop.at, began), world.kill_broker, drop.broker)
        elected, problem = None, ""
        if prepared.holding.rows:
            try:
                elected = await execute(
                    backend, prepared.holding, NullRecorder(), attempts=attempts, stop=StopRequest()
                )
            except BackendError as error:
                problem = str(error)
        ended = simulation.now
        failures = () if elected is None else elected.failures
        refused += tuple(f"{one.row.tp}: {one.election.detail or one.election.outcome}" for one in failures)
        simulation.advance_to(ended + SETTLE)
        led, wrong, orders_open = _leaders(simulation, own)
        return Performance(elected, refused, began, ended, led, wrong, orders_open, problem)
    finally:
        await backend.close()


def _leaders(simulation: Simulation, plan: Plan) -> tuple[int, tuple[str, ...], int]:
    """How many partitions have a leader, those that another replica leads, and how many still have the order of the
    election.
    """
    image = simulation.world.image.partitions
    wrong, led, orders_open = [], 0, 0
    for row in plan.rows:
        registered = image[row.tp]
        if (
            registered.has_leader
            and registered.leader != row.leader
            and registered.leader not in row.clean_electors
        ):
            wrong.append(f"broker {registered.leader} leads {row.tp}, and not {row.leader}")
        led += registered.has_leader
        orders_open += registered.replicas != row.replicas and set(registered.replicas) == set(row.replicas)
    return led, tuple(wrong), orders_open


def _for_copy(plan: Plan, cluster_id: str, simulation: Simulation) -> Plan:
    """The plan with the ids of the copy. Raises NotDone for a partition that the copy does not have."""
    image = simulation.world.image
    missing = next((row.tp for row in plan.rows if row.tp not in image.partitions), None)
    if missing is not None:
        raise NotDone(f"{missing} is not in the copy of the cluster: it could not be described")
    return replace(
        plan,
        header=replace(plan.header, cluster_id=cluster_id),
        rows=tuple(row._replace(topic_id=id_of(image, row.tp.topic)) for row in plan.rows),
    )
