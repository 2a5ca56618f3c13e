"""The page on scenarios: its example is one, and every key of a file is named there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from backends.simulator.scenario.file_model import (
    BrokerModel,
    ClusterModel,
    ConsumerModel,
    Expectation,
    LogModel,
    ManyBrokers,
    NetworkModel,
    OperatorModel,
    PartitionModel,
    ScenarioModel,
    Switches,
    TopicModel,
    WorkloadModel,
)
from backends.simulator.scenario.files import parse
from backends.simulator.simulation import Simulation

PAGE = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
MODELS = (
    ScenarioModel,
    ClusterModel,
    ManyBrokers,
    BrokerModel,
    NetworkModel,
    Switches,
    TopicModel,
    PartitionModel,
    LogModel,
    WorkloadModel,
    ConsumerModel,
    OperatorModel,
    Expectation,
)


def test_the_example_runs_and_the_operator_meets_what_it_says() -> None:
    indented = [line.removeprefix("    ") for line in PAGE.splitlines() if line.startswith("    ")]
    lines = [line for line in indented if not line.startswith("$ ")]
    scenario = parse("\n".join(lines), "mine", "mine.yaml")
    simulation = Simulation(scenario, 1)
    simulation.advance_to(scenario.operator_at)
    assert len(simulation.offline()) == scenario.offline > 0


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_named(model: type[BaseModel]) -> None:
    prose = "\n".join(line for line in PAGE.splitlines() if not line.startswith("    "))
    named = PAGE if model is ScenarioModel else prose
    assert [key for key in model.model_fields if key not in named] == []
