"""Runs one incident of a drill under several arms, and measures the lost records and the downtime.

Equal seeds are equal incidents until somebody acts. So what the arms have in common is simulated once, and each
goes on with a copy of the run from where it differs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from traceback import extract_tb
from typing import NamedTuple

from backends.base.answers import SurveyRequest
from backends.base.errors import BackendError
from backends.base.judged_partitions import judged
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.loop import SECOND
from backends.simulator.rehearsal import NullRecorder
from backends.simulator.scenario.build import Scenario
from backends.simulator.session.checkpoint import pickled, unpickled
from backends.simulator.simulation import Simulation
from benchmarks.drill.incident import END, OPERATOR_AGAIN_AT, SHAPES, scenario
from benchmarks.drill.incident_costs import IncidentCosts
from benchmarks.drill.recovery_arms import Arm, ArmSetup, arm_setup
from recovery.model import Survey
from recovery.plan.make import plan_row
from recovery.rescue_branches import rescue_branches
from recovery.strategy import Decision, DecisionKind, decide


class DrillCase(NamedTuple):
    """One incident: the scenario or kind of incident, the recovery method, min ISR (None: as the scenario
    sets it), the seed.
    """

    scenario: str
    arm: str
    min_isr: int | None
    seed: int

    @property
    def replay(self) -> str:
        """The command that runs this case again."""
        min_isr = "" if self.min_isr is None else f" --min-isr {self.min_isr}"
        return (
            f"python -m benchmarks.drill --scenario {quote(self.scenario)} --arm {self.arm}{min_isr}"
            f" --seed {self.seed} --seeds 1"
        )


class DrillRow(NamedTuple):
    """The results of a case. Offsets: ``lost_acknowledged`` with acks=all, ``lost_other`` anything else that
    was written and is not in the leader's log. ``rescuable``: those of both kinds that a replica which answered had
    when the operator elected another one, so that ``ktriage rescue`` reads them first; ``lost_for_good``: the rest.
    ``unavailable_s``: partition-seconds of virtual time without a
    leader. ``offline``: partitions without a leader when the operator started; ``decisions``: those for which
    a person had to choose, each look counted; ``waits``: those for which the strategy said to wait.
    ``offline_after``: partitions offline at the end. ``error``: the case could not be run; its numbers mean
    nothing.
    """

    scenario: str
    arm: str
    min_isr: int
    seed: int
    lost_acknowledged: int
    lost_other: int
    rescuable: int
    lost_for_good: int
    unavailable_s: float
    offline: int
    decisions: int
    waits: int
    offline_after: int
    broken: int
    steps: int
    error: str
    replay: str

    @classmethod
    def failed(cls, case: DrillCase, error: Exception) -> DrillRow:
        """The row of a case that could not be run."""
        at = extract_tb(error.__traceback__)[-1]
        message = (
            f"{type(error).__name__}: {error}".splitlines()[0] + f" ({Path(at.filename).name}:{at.lineno})"
        )
        return cls(*case_key(case), 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, message, case.replay)


def case_key(case: DrillCase) -> tuple[str, str, int, int]:
    """The first columns of the case's row."""
    return case.scenario, case.arm, -1 if case.min_isr is None else case.min_isr, case.seed


SURVEY_SECONDS = 2.0
SETTLE = 60 * SECOND
"""How long a scenario that comes with ktriage goes on after the operator starts."""


def run(case: DrillCase) -> DrillRow:
    """Runs the case. Never raises: a case that fails is a row with its error and its replay command."""
    (row,) = run_arms(case.scenario, (case.arm,), case.min_isr, case.seed)
    return row


def run_arms(name: str, arms: Sequence[str], min_isr: int | None, seed: int) -> list[DrillRow]:
    """A row for each arm, as :func:`run` gives it."""
    cases = [DrillCase(name, arm, min_isr, seed) for arm in arms]
    rows: dict[DrillCase, DrillRow] = {}
    by_rules: dict[object, list[_ArmRun]] = {}
    for case in cases:
        try:
            setup = arm_setup(Arm(case.arm))
        except ValueError as error:
            rows[case] = DrillRow.failed(case, error)
        else:
            by_rules.setdefault(setup.rules, []).append(_ArmRun(case, setup))
    for alike in by_rules.values():
        rows.update(asyncio.run(_rows(alike)))
    return [rows[case] for case in cases]


class _ArmChoice(NamedTuple):
    """The decision for one partition, with what the replicas said."""

    survey: Survey
    decision: Decision


@dataclass(slots=True)
class _ArmRun:
    """``offline``: partitions without a leader when the operator started. ``choices`` are those of the last survey,
    ``verdicts`` counts all.
    """

    case: DrillCase
    setup: ArmSetup
    offline: int = 0
    choices: tuple[_ArmChoice, ...] = ()
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def elected(self) -> list[_ArmChoice]:
        """The choices of the last survey that elect."""
        return [choice for choice in self.choices if choice.decision.verdict is DecisionKind.ELECT]


async def _rows(arms: Sequence[_ArmRun]) -> dict[DrillCase, DrillRow]:
    """The rows of arms with equal controller rules."""
    case, rules = arms[0].case, arms[0].setup.rules
    try:
        incident = scenario(case.scenario, case.seed, rules, case.min_isr)
        player = _Player(incident, drawn=case.scenario in SHAPES)
        simulation = Simulation(incident, case.seed)
        simulation.advance_to(0)
        shared = _SharedRun(simulation, IncidentCosts(simulation.world))
    except Exception as error:  # as in _Player.play
        return {arm.case: DrillRow.failed(arm.case, error) for arm in arms}
    await player.play(shared, arms, 0)
    return player.rows


class _SharedRun(NamedTuple):
    """One course of the incident, the same so far for several arms."""

    simulation: Simulation
    costs: IncidentCosts

    def copies(self, count: int) -> Iterator[_SharedRun]:
        """``count`` runs that go on alike. This one is the last of them."""
        content = pickled(self) if count > 1 else b""
        for _ in range(count - 1):
            yield unpickled(content)
        yield self


class _Player:
    """Plays one incident to its end. ``drawn``: it is a random one, at which the operator looks twice."""

    def __init__(self, incident: Scenario, *, drawn: bool) -> None:
        again = (round(OPERATOR_AGAIN_AT * SECOND),) if drawn else ()
        self._survey_times = (incident.operator_at, *again)
        self._end = round(END * SECOND) if drawn else incident.operator_at + SETTLE
        self.rows: dict[DrillCase, DrillRow] = {}

    async def play(self, shared: _SharedRun, arms: Sequence[_ArmRun], number: int) -> None:
        """Goes on to the end. ``number``: of the operator's next survey, from 0. Never raises."""
        try:
            if number < len(self._survey_times):
                await self._survey(shared, arms, number)
            else:
                shared.simulation.advance_to(self._end)
                self.rows.update((arm.case, _row(shared, arm)) for arm in arms)
        except Exception as error:  # one seed of many; the row has the seed and the command that repeats it
            for arm in arms:
                self.rows.setdefault(arm.case, DrillRow.failed(arm.case, error))

    async def _survey(self, shared: _SharedRun, arms: Sequence[_ArmRun], number: int) -> None:
        shared.simulation.advance_to(self._survey_times[number])
        offline = len(shared.simulation.offline())
        if number == 0:
            for arm in arms:
                arm.offline = offline
        acting = [arm for arm in arms if offline and arm.setup.person]
        blind = [arm for arm in acting if arm.setup.unclean]
        asking = [arm for arm in acting if not arm.setup.unclean]
        waiting = [arm for arm in arms if arm not in acting]
        groups = [group for group in (blind, asking, waiting) if group]
        for group, own in zip(groups, shared.copies(len(groups)), strict=True):
            if group is blind:
                await _elect_uncleanly(own, group)
                await self.play(own, group, number + 1)
            elif group is asking:
                await self._ask(own, group, number)
            else:
                await self.play(own, group, number + 1)

    async def _ask(self, own: _SharedRun, arms: Sequence[_ArmRun], number: int) -> None:
        """Each arm decides by the same answers. Those that elect the same by the same ranking go on together."""
        try:
            async with _operator(own) as backend:
                await _decide(backend, arms)
        except BackendError:
            _note_silence(own, arms)
            await self.play(own, arms, number + 1)
            return
        alike: dict[object, list[_ArmRun]] = {}
        for arm in arms:
            orders = tuple((choice.survey.tp, choice.decision.order) for choice in arm.elected)
            alike.setdefault((arm.setup.ranking, orders), []).append(arm)
        for group, run_of_group in zip(alike.values(), own.copies(len(alike)), strict=True):
            await _designate(run_of_group, group)
            await self.play(run_of_group, group, number + 1)


@asynccontextmanager
async def _operator(own: _SharedRun) -> AsyncIterator[SimulatorBackend]:
    """Who asks and elects on that course of the incident."""
    backend = SimulatorBackend.at(own.simulation)
    try:
        yield backend
    finally:
        await backend.close()


async def _elect_uncleanly(own: _SharedRun, arms: Sequence[_ArmRun]) -> None:
    """By Kafka's released tools, which ask no replica."""
    try:
        async with _operator(own) as backend:
            offline = [state.tp for state in (await backend.partitions()).states if state.offline]
            await backend.elect(False, offline, NullRecorder())
    except BackendError:
        _note_silence(own, arms)
        return
    for arm in arms:
        arm.verdicts[DecisionKind.ELECT.value] += len(offline)


async def _decide(backend: SimulatorBackend, arms: Sequence[_ArmRun]) -> None:
    """Surveys what is offline. Raises BackendError."""
    states = tuple(state for state in (await backend.partitions()).states if state.offline)
    surveyed = await backend.survey(SurveyRequest(states, SURVEY_SECONDS))
    elr = (await backend.cluster()).elr_enabled
    reported = await judged(backend, elr, surveyed.surveys, await backend.log_dirs())
    for arm in arms:
        ranking, strategy = arm.setup.ranking, arm.setup.strategy
        assert ranking is not None and strategy is not None  # who asks the replicas has both
        arm.choices = tuple(
            _ArmChoice(survey, decide(survey, ranking, strategy, reported.verdicts.get(survey.tp)))
            for survey in surveyed.surveys
        )


async def _designate(own: _SharedRun, arms: Sequence[_ArmRun]) -> None:
    """Holds the elections of the arms, which are the same. What a rescue reads before them is noted."""
    elected, ranking = arms[0].elected, arms[0].setup.ranking
    assert ranking is not None
    for survey, decision in elected:
        own.costs.rescue(rescue_branches(survey, decision.leader))
    rows = [plan_row(survey, decision, ranking) for survey, decision in elected]
    try:
        async with _operator(own) as backend:
            await backend.designate(rows, ranking, NullRecorder(), attempts=1, stop=False)
    except BackendError:
        _note_silence(own, arms)
        return
    for arm in arms:
        arm.verdicts.update(choice.decision.verdict.value for choice in arm.choices)


def _note_silence(own: _SharedRun, arms: Sequence[_ArmRun]) -> None:
    """If no replica can be asked, that is a decision too."""
    for arm in arms:
        arm.verdicts[DecisionKind.NO_CANDIDATE.value] += len(own.simulation.offline())


def _row(shared: _SharedRun, arm: _ArmRun) -> DrillRow:
    simulation, costs = shared
    acknowledged = sum(lost.records for lost in simulation.checker.lost)
    lost = costs.lost(simulation)
    return DrillRow(
        *case_key(arm.case),
        acknowledged,
        max(0, lost.records - acknowledged),
        lost.rescuable,
        max(lost.records, acknowledged) - lost.rescuable,
        costs.leaderless(simulation.now),
        arm.offline,
        arm.verdicts.total(),
        arm.verdicts[DecisionKind.WAIT.value],
        len(simulation.offline()),
        len(simulation.checker.broken),
        simulation.world.loop.steps,
        "",
        arm.case.replay,
    )
