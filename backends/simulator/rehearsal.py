"""A whole incident without a person: the scenario until the operator arrives, a recovery by a strategy, and
what is left of the data. Only a simulation can tell the last, because it knows what was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from backends.base.answers import Outcome, SurveyRequest
from backends.base.errors import BackendError
from backends.base.judged_partitions import judged
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.history import Line
from backends.simulator.invariants.promises import BrokenInvariant, FinalLoss, LostRecords
from backends.simulator.loop import SECOND
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.fault_targets import nodes
from backends.simulator.scenario.faults import BrokerFault, Fault
from backends.simulator.simulation import Simulation
from recovery.plan.make import plan_row
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide

SURVEY_SECONDS = 30.0
SETTLE = 60 * SECOND
"""Virtual µs without any fault at the end of a run, by default."""


class Interrupted(Exception):
    """The run was stopped before its end."""


class RehearsalResult(NamedTuple):
    """``offline`` are the partitions without a leader when the operator came, and ``offline_after`` at the end.

    ``unmet`` says what the scenario expects of that moment and was not so. ``verdicts`` and ``outcomes`` count the
    strategy's decisions and the elections; ``problem`` says why nothing could be asked. ``lost`` is what was
    acknowledged with acks=all and is gone at the end, ``lacked`` what a new leader lacked of it when it took over
    (a later leader may have it), ``broken`` the invariants that did not hold.
    """

    scenario: str
    seed: int
    now: int
    offline: int
    offline_after: int
    verdicts: Mapping[str, int]
    outcomes: Mapping[str, int]
    lost: tuple[FinalLoss, ...]
    lacked: tuple[LostRecords, ...]
    broken: tuple[BrokenInvariant, ...]
    steps: int
    digest: str
    history: tuple[Line, ...]
    problem: str = ""
    unmet: tuple[str, ...] = ()


class NullRecorder:
    """Records nothing: a rehearsal needs no journal."""

    def before(self, action: str, detail: Mapping[str, object]) -> str:  # noqa: ARG002  # its protocol's
        return action

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        """Does nothing."""


def end_of(scenario: Scenario) -> int:
    """Virtual µs: a minute after the operator's arrival and the last fault."""
    last = max((_last_of(fault, scenario) for fault in scenario.faults), default=0)
    return max(scenario.operator_at, last) + SETTLE


def _last_of(fault: Fault, scenario: Scenario) -> int:
    if not isinstance(fault, BrokerFault):
        return round(fault.at * SECOND)
    turns = len(nodes(fault.nodes, scenario.topology, ())) - 1
    return round((fault.at + turns * fault.every) * SECOND)


def unmet(scenario: Scenario, simulation: Simulation) -> tuple[str, ...]:
    """The expectations of the scenario that do not hold now, when the operator arrives: one line each."""
    offline, quorum = len(simulation.offline()), simulation.world.quorum
    found = []
    if offline != scenario.offline:
        found.append(f"{scenario.offline:,} partitions offline expected, {offline:,} are")
    if (quorum.leader is not None) != scenario.led:
        found.append(
            "a leader of the quorum expected, there is none"
            if scenario.led
            else "no leader of the quorum expected"
        )
    if scenario.voters is not None and quorum.leader is not None:
        voters = sorted(key.id for key in quorum.leader.voters.keys)
        if voters != sorted(scenario.voters):
            found.append(f"the voters {sorted(scenario.voters)} expected, they are {voters}")
    broken = {row.name for row in simulation.checker.broken}
    found += [f"{name} expected to break, and did not" for name in scenario.breaks if name not in broken]
    return tuple(found)


async def rehearse(
    scenario: Scenario,
    seed: int,
    strategy: Strategy | None = None,
    ranking: Ranking = Ranking.LAST_RECORD,
    until: int | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
    at_end: Callable[[Simulation], None] = lambda _: None,
) -> RehearsalResult:
    """Run the scenario to ``until`` (virtual µs), with a recovery by ``strategy`` when the operator arrives.

    Without a strategy nothing is done. The default end is :func:`end_of` the scenario. ``stop`` is called after
    every step; raises Interrupted when it returns True. ``at_end`` is called with the run at its end.
    """

    def after_step(_ran: object) -> None:
        if stop():
            raise Interrupted

    backend = SimulatorBackend(scenario, seed)
    end = end_of(scenario) if until is None else until
    verdicts: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    problem = ""
    missed: tuple[str, ...] = ()
    try:
        simulation = backend.load(min(end, scenario.operator_at), after_step)
        offline = len(simulation.offline())
        if end >= scenario.operator_at:
            missed = unmet(scenario, simulation)
            try:
                if strategy is not None:
                    await recover(backend, strategy, ranking, verdicts, outcomes)
            except BackendError as error:
                problem = str(error)
        simulation.advance_to(end)
        at_end(simulation)
        found = _left(simulation)._replace(offline=offline, unmet=missed, problem=problem)
        return found._replace(verdicts=verdicts, outcomes=outcomes)
    finally:
        await backend.close()


def _left(simulation: Simulation) -> RehearsalResult:
    """The result now, without the operator's part."""
    world, checker = simulation.world, simulation.checker
    return RehearsalResult(
        scenario=simulation.scenario.name,
        seed=simulation.seed,
        now=world.loop.now,
        offline=0,
        offline_after=len(simulation.offline()),
        verdicts={},
        outcomes={},
        lost=tuple(checker.lost_now()),
        lacked=tuple(checker.lost),
        broken=tuple(checker.broken),
        steps=world.loop.steps,
        digest=world.history.digest(),
        history=tuple(world.history.lines),
    )


async def recover(
    backend: SimulatorBackend,
    strategy: Strategy,
    ranking: Ranking,
    verdicts: dict[str, int],
    outcomes: dict[str, int],
) -> None:
    """Elects what the strategy elects of the partitions that have no leader now; ``verdicts`` and ``outcomes``
    count its decisions and the elections. Raises BackendError.
    """
    states = (await backend.partitions()).states
    offline = tuple(state for state in states if state.offline)
    if not offline:
        return
    surveyed = await backend.survey(SurveyRequest(offline, SURVEY_SECONDS))
    reported = await judged(backend, (await backend.cluster()).elr_enabled, surveyed.surveys)
    rows = []
    for survey in surveyed.surveys:
        decision = decide(survey, ranking, strategy, reported.verdicts.get(survey.tp))
        verdicts[decision.verdict.value] = verdicts.get(decision.verdict.value, 0) + 1
        if decision.verdict is DecisionKind.ELECT:
            rows.append(plan_row(survey, decision, ranking))
    elections = await backend.designate(rows, ranking, NullRecorder(), attempts=3, stop=False)
    for election in elections:
        outcome: Outcome = election.outcome
        outcomes[outcome.value] = outcomes.get(outcome.value, 0) + 1
