"""Runs one incident of a drill under one arm, and measures the lost records and the downtime."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import quote
from traceback import extract_tb
from typing import NamedTuple

from backends.base.answers import SurveyRequest
from backends.base.errors import BackendError
from backends.base.judged_partitions import judged
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.events import Event, LogChanged, MetadataCommitted
from backends.simulator.loop import SECOND
from backends.simulator.rehearsal import NullRecorder
from backends.simulator.simulation import Simulation
from backends.simulator.world import World
from pipeline.drills.incident import END, OPERATOR_AGAIN_AT, SHAPES, scenario
from pipeline.drills.recovery_arms import Arm, ArmSetup, arm_setup
from recovery.loss import count, without
from recovery.model import EpochSpan, TopicPartition
from recovery.plan.make import plan_row
from recovery.rescue_branches import RescueBranch, rescue_branches
from recovery.strategy import DecisionKind, decide

SURVEY_SECONDS = 2.0
SETTLE = 60 * SECOND
"""How long a scenario that comes with ktriage goes on after the operator starts."""


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
            f"ktriage pipeline drill --scenario {quote(self.scenario)} --arm {self.arm}{min_isr}"
            f" --seed {self.seed} --seeds 1 --out replay"
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


def run(case: DrillCase) -> DrillRow:
    """Runs the case. Never raises: a case that fails is a row with its error and its replay command."""
    try:
        return asyncio.run(_run(case))
    except Exception as error:  # one seed of many; the row has the seed and the command that repeats it
        at = extract_tb(error.__traceback__)[-1]
        message = (
            f"{type(error).__name__}: {error}".splitlines()[0] + f" ({Path(at.filename).name}:{at.lineno})"
        )
        return DrillRow(*_key(case), 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, message, case.replay)


def _key(case: DrillCase) -> tuple[str, str, int, int]:
    return case.scenario, case.arm, -1 if case.min_isr is None else case.min_isr, case.seed


async def _run(case: DrillCase) -> DrillRow:
    way = arm_setup(Arm(case.arm))
    incident = scenario(case.scenario, case.seed, way.rules, case.min_isr)
    end = round(END * SECOND) if case.scenario in SHAPES else incident.operator_at + SETTLE
    backend = SimulatorBackend(incident, case.seed)
    simulation = backend.load(0)
    costs = _Costs(simulation.world)
    simulation.advance_to(incident.operator_at)
    offline = len(simulation.offline())
    verdicts: Counter[str] = Counter()
    if way.person and offline:
        verdicts.update(await _recover(backend, way, costs))
    if way.person and case.scenario in SHAPES:
        simulation.advance_to(round(OPERATOR_AGAIN_AT * SECOND))
        if simulation.offline():
            verdicts.update(await _recover(backend, way, costs))
    simulation.advance_to(end)
    acknowledged = sum(lost.records for lost in simulation.checker.lost)
    lost = costs.lost(simulation)
    return DrillRow(
        *_key(case),
        acknowledged,
        max(0, lost.records - acknowledged),
        lost.rescuable,
        max(lost.records, acknowledged) - lost.rescuable,
        costs.leaderless(simulation.now),
        offline,
        verdicts.total(),
        verdicts[DecisionKind.WAIT.value],
        len(simulation.offline()),
        len(simulation.checker.broken),
        simulation.world.loop.steps,
        "",
        case.replay,
    )


async def _recover(backend: SimulatorBackend, way: ArmSetup, costs: _Costs) -> Mapping[str, int]:
    """What the operator does; returns the number of decisions by verdict. If no replica can be asked, that is
    a decision too. What a rescue reads before the elections is noted in ``costs``.
    """
    try:
        states = tuple(state for state in (await backend.partitions()).states if state.offline)
        if way.strategy is None or way.ranking is None:
            await backend.elect(False, [state.tp for state in states], NullRecorder())
            return {DecisionKind.ELECT.value: len(states)}
        surveyed = await backend.survey(SurveyRequest(states, SURVEY_SECONDS))
        elr = (await backend.cluster()).elr_enabled
        reported = await judged(backend, elr, surveyed.surveys, await backend.log_dirs())
        chosen = [
            (survey, decide(survey, way.ranking, way.strategy, reported.verdicts.get(survey.tp)))
            for survey in surveyed.surveys
        ]
        elected = [row for row in chosen if row[1].verdict is DecisionKind.ELECT]
        for survey, decision in elected:
            costs.rescue(rescue_branches(survey, decision.leader))
        rows = [plan_row(survey, decision, way.ranking) for survey, decision in elected]
        await backend.designate(rows, way.ranking, NullRecorder(), attempts=1, stop=False)
    except BackendError:
        return {DecisionKind.NO_CANDIDATE.value: len(backend.simulation.offline())}
    return Counter(decision.verdict.value for _, decision in chosen)


class _Costs:
    """Counts written records and the time without a leader in a simulated world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._written: dict[tuple[TopicPartition, int], EpochSpan] = {}
        self._rescued: dict[TopicPartition, list[EpochSpan]] = {}
        self._since = 0
        self._leaderless = self._count()
        self._area = 0
        world.events.subscribers.append(self._saw)

    def _count(self) -> int:
        return len(list(self._world.image.leaderless()))

    def _saw(self, event: Event) -> None:
        if isinstance(event, LogChanged):
            log = self._world.disks[event.broker].logs.get(event.tp)
            if log is not None and log.spans:
                self._note(event.tp, log.spans[-1])
        elif isinstance(event, MetadataCommitted):
            now = self._world.loop.now
            self._area += self._leaderless * (now - self._since)
            self._since, self._leaderless = now, self._count()

    def _note(self, tp: TopicPartition, span: EpochSpan) -> None:
        known = self._written.get((tp, span.epoch))
        if known is None or span.end > known.end:
            start = span.start if known is None else min(known.start, span.start)
            self._written[tp, span.epoch] = EpochSpan(span.epoch, start, span.end)

    def leaderless(self, now: int) -> float:
        """Partition-seconds without a leader up to ``now`` (virtual µs)."""
        return (self._area + self._leaderless * (now - self._since)) / SECOND

    def rescue(self, branches: Iterable[RescueBranch]) -> None:
        """These branches were read before an election."""
        for branch in branches:
            self._rescued.setdefault(branch.tp, []).extend(branch.spans)

    def lost(self, simulation: Simulation) -> _LostRecords:
        """Offsets that were written and that the final leader does not have; none where there is no leader."""
        world, found = simulation.world, _LostRecords(0, 0)
        for (tp, _), span in self._written.items():
            leader = world.image.partitions[tp].leader
            log = world.disks[leader].logs.get(tp) if leader >= 0 else None
            if log is not None and span.end > log.start:
                lost = without([span._replace(start=max(span.start, log.start))], log.spans)
                for_good = without(lost, self._rescued.get(tp, ()))
                found = _LostRecords(
                    found.records + count(lost), found.rescuable + count(lost) - count(for_good)
                )
        return found


class _LostRecords(NamedTuple):
    """``rescuable`` of the ``records`` were read before the election that cut them off."""

    records: int
    rescuable: int
