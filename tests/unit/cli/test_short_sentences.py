"""What each scenario says at first sight is short: advice, what a confirmation says, why nobody is elected."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import names, read
from console.change.loss_consent import outline
from console.reading.cluster_reading import ClusterReading
from console.reading.read_cluster import read_cluster
from recovery.advice import FirstStep
from recovery.plan.make import make_plan
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from recovery.wording.advice_text import advice_text, short_reason, steps_lines
from tests.unit.plan.plans import HEADER
from tests.unit.recovery.short_sentences import too_much

OWN = sorted((Path(__file__).parent / "scenarios").glob("*.yaml"))
QUICK = {"stale-long-tail", "disk-failure"}
LARGE = {"partitions-200000"}
INCIDENTS = [*(name for name in names() if name not in LARGE), *map(str, OWN)]


def read_whole(incident: str) -> ClusterReading:
    async def asked() -> ClusterReading:
        backend = SimulatorBackend(read(incident), 1)
        try:
            return await read_cluster(backend, 10.0, 0.0)
        finally:
            await backend.close()

    return asyncio.run(asked())


@pytest.mark.parametrize(
    "incident",
    [
        pytest.param(name, id=Path(name).stem, marks=() if Path(name).stem in QUICK else pytest.mark.long)
        for name in INCIDENTS
    ],
)
def test_a_sentence_that_is_read_first_is_short(incident: str) -> None:
    reading = read_whole(incident)
    advice = reading.cluster_advice
    assert reading.health.well or reading.steps or advice.first or advice.then, "nothing to do first"
    troubles = [trouble for step in reading.steps for trouble in of_step(step)]
    for text, _ in (*advice.first, *advice.then):
        troubles += [
            too_much(text.action, 90),
            *(too_much(one, 120) for one in (text.instead, *text.warnings)),
        ]
    offline = [one for one in reading.surveys if one.state.offline][:50]
    for strategy in (Strategy.BALANCED, Strategy.COMPLETE, Strategy.AGGRESSIVE):
        decided = [
            (one, decide(one, Ranking.LAST_RECORD, strategy, reading.verdicts.get(one.tp))) for one in offline
        ]
        troubles += [
            too_much(short_reason(decision), 120)
            for _, decision in decided
            if decision.verdict is not DecisionKind.ELECT
        ]
        said = outline(make_plan(HEADER, decided, reading.topic_marks), native=False)
        troubles += [too_much(said.elects, 90), *(too_much(line, 120) for _, line in said.parts())]
    assert not list(filter(None, troubles))


def of_step(step: FirstStep) -> list[str]:
    told = advice_text(step.advice, step.partitions)
    assert next(steps_lines([step])).endswith(" ".join(filter(None, (told.action, told.instead))))
    return [
        too_much(told.action, 90),
        *(too_much(sentence, 120) for sentence in (told.instead, *told.warnings)),
    ]
