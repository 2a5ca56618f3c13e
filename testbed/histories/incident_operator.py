"""An operator in a random incident: reads the cluster, judges what each choice loses, and elects, by the code that
does so in production. What that code reports and decides is held against what the simulated brokers hold and
acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from random import Random

from backends.base.answers import Outcome, SurveyRequest
from backends.base.errors import BackendError
from backends.base.judged_partitions import judged
from backends.base.metadata_log import MetadataLogSource
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.broker.replica_log import Log, missing
from backends.simulator.rehearsal import NullRecorder
from backends.simulator.simulation import Simulation
from recovery.acknowledged.partition_facts import NOT_ASKED, PartitionFacts
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.controller.registration import Registration
from recovery.model import ReplicaLog, Survey, TopicPartition, Unknown
from recovery.plan.make import plan_row
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from testbed.histories.verdict_soundness import VerdictPromise, VerdictSoundness

SURVEY_SECONDS = 5.0
"""Virtual seconds that a silent broker is waited for."""
LOOKS, ELECTS = 0.9, 0.7
"""How often the operator looks before a fault, and elects what may be elected after a look."""
_HOW = "as the live adapter reads it"

_Logs = Mapping[tuple[TopicPartition, int], Log | None]
_Registrations = Mapping[TopicPartition, Registration]


class IncidentOperator:
    """Looks in at random moments, drawn from ``random``, at which partitions have no leader."""

    def __init__(self, simulation: Simulation, soundness: VerdictSoundness, random: Random) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._soundness = soundness
        self._random = random
        self._backend = SimulatorBackend.at(simulation)
        self._source = MetadataLogSource()

    def broken_promises(self) -> Iterator[tuple[str, str]]:
        """(promise, detail) of each that was broken. Virtual time passes, by as much as the answers take."""
        if self._random.random() < LOOKS and self._simulation.offline():
            yield from asyncio.run(self._recover())

    def close(self) -> None:
        """Ends the operator's connections."""
        asyncio.run(self._backend.close())

    async def _recover(self) -> list[tuple[str, str]]:
        counts, backend, world = self._soundness.counts, self._backend, self._world
        counts.looks += 1
        logs, registrations = self._logs(), dict(world.image.partitions.items())
        try:
            cluster = await backend.cluster()
            states = (await backend.partitions()).states
            offline = tuple(state for state in states if state.offline)
            surveys = (await backend.survey(SurveyRequest(offline, SURVEY_SECONDS))).surveys
            dirs = await backend.log_dirs()
            reported = await judged(backend, cluster.elr_enabled, surveys, dirs, source=self._source)
        except BackendError:
            counts.looks_refused += 1  # a cluster of which no broker is reached answers nothing
            return []
        strategy = self._random.choice((Strategy.BALANCED, Strategy.AGGRESSIVE))
        same = self._unchanged(logs, registrations)
        broken: list[tuple[str, str]] = []
        chosen: list[tuple[PartitionFacts, PlanRow]] = []
        for survey in surveys:
            verdicts = reported.verdicts.get(survey.tp)
            if survey.tp not in same or verdicts is None:
                counts.overtaken += 1
                continue
            broken += _misread(survey, logs)
            facts = PartitionFacts(survey, cluster.elr_enabled, NOT_ASKED, compacted=False)
            broken += self._soundness.hold(facts, verdicts.candidates, _HOW)
            decision = decide(survey, Ranking.LAST_RECORD, strategy, verdicts)
            if decision.verdict is DecisionKind.ELECT:
                chosen.append((facts, plan_row(survey, decision, Ranking.LAST_RECORD)))
        if chosen and self._random.random() < ELECTS:
            broken += await self._elect(chosen, reported.verdicts)
        return broken

    async def _elect(
        self,
        chosen: list[tuple[PartitionFacts, PlanRow]],
        verdicts: Mapping[TopicPartition, PartitionVerdicts],
    ) -> list[tuple[str, str]]:
        rows = [row for _, row in chosen]
        elections = await self._backend.designate(
            rows, Ranking.LAST_RECORD, NullRecorder(), attempts=3, stop=False
        )
        broken: list[tuple[str, str]] = []
        for (facts, _), election in zip(chosen, elections, strict=True):
            registration = self._world.image.partitions.get(election.tp)
            if election.outcome is not Outcome.ELECTED or registration is None:
                continue
            if (registration.leader, registration.leader_epoch) != (election.leader, election.leader_epoch):
                continue  # another leader came since
            self._soundness.counts.elected += 1
            verdict = verdicts[election.tp].candidates[election.leader]
            broken += self._soundness.hold(facts, {election.leader: verdict}, f"{_HOW}, elected")
        return broken

    def _logs(self) -> _Logs:
        return {
            (tp, replica): self._soundness.readable_log(tp, replica)
            for tp, registration in self._world.image.partitions.items()
            for replica in registration.replicas
        }

    def _unchanged(self, logs: _Logs, registrations: _Registrations) -> set[TopicPartition]:
        """The partitions whose records and registration are those of before: what was read is what is there."""
        now = self._logs()
        moved = {key[0] for key in {*logs, *now} if _records(logs.get(key)) != _records(now.get(key))}
        partitions = self._world.image.partitions
        return {tp for tp, row in partitions.items() if registrations.get(tp) == row and tp not in moved}


def _records(log: Log | None) -> tuple[object, ...] | None:
    return None if log is None else (log.spans, log.start)


def _misread(survey: Survey, logs: _Logs) -> Iterator[tuple[str, str]]:
    for replica in survey.replicas:
        answer, log = replica.log, logs.get((survey.tp, replica.broker))
        if isinstance(answer, Unknown):
            continue
        if log is None or not _is_of(answer, log):
            detail = f"{survey.tp}: broker {replica.broker} was read as {answer}, and has {log}"
            yield VerdictPromise.READ_AS_IT_IS.value, detail


def _is_of(answer: ReplicaLog, log: Log) -> bool:
    """The epochs may have been read only down to where the logs part."""
    if (answer.log_start_offset, answer.log_end_offset) != (log.start, log.end):
        return False
    if isinstance(answer.lineage, Unknown):
        return True
    return answer.lineage.last_epoch == log.last_epoch and not missing(log, answer.lineage.spans)
