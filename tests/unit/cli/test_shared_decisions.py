"""Partitions that are equal in all that is judged are decided once: the decision is the one that each would get."""

from __future__ import annotations

import asyncio

import pytest

from backends.simulator.adapter import SimulatorBackend
from console.jobs.elect.leader_choice import Choices
from console.jobs.elect.recover_partitions import ChoiceOptions, survey_and_choose
from console.reading.partition_selection import Selection, Which
from console.simulator_backend import scenario
from recovery.strategy import Strategy, decide


async def chosen(strategy: Strategy) -> Choices:
    backend = SimulatorBackend(scenario("zone-power-loss"))
    await backend.open()
    return await survey_and_choose(backend, ChoiceOptions(Selection(which=Which.OFFLINE), strategy=strategy))


@pytest.mark.parametrize("strategy", [Strategy.BALANCED, Strategy.AGGRESSIVE])
def test_each_partition_gets_the_decision_that_its_own_logs_give(strategy: Strategy) -> None:
    choices = asyncio.run(chosen(strategy))
    verdicts = choices.reading.verdicts
    header = choices.plan.header
    assert [row.decision for row in choices.rows] == [
        decide(row.survey, header.ranking, strategy, verdicts.get(row.tp)) for row in choices.rows
    ]
    assert len({id(row.decision) for row in choices.rows}) < len(choices.rows) == 8
