"""A simulated leader that is cut off from the controllers answers as a real one does: it still leads."""

from __future__ import annotations

from backends.base.answers import SurveyRequest
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import parse
from recovery.model import Survey
from recovery.old_leaders import OldLeader, old_leaders
from tests.unit.simulator.operators import Record, chosen, elect

SCENARIO = """
title: A leader that is cut off from the controllers
about: 1 is alone in the ISR, and loses its links to the controllers. 2 and 3 are back.
cluster:
  brokers: {count: 3}
  min_isr: 1
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}
topics:
  - {name: payments, replicas: [[1, 2, 3]], records: 1000}
faults:
  - {at: 5, do: kill, nodes: [broker-3, broker-2], every: 1}
  - {at: 20, do: cut, nodes: [broker-1], others: [controllers]}
  - {at: 30, do: start, nodes: [broker-2, broker-3]}
operator: {at: 50}
expect: {offline: 1}
"""


async def opened() -> SimulatorBackend:
    backend = SimulatorBackend(parse(SCENARIO, "cut-off", "cut-off"), 1)
    await backend.open()
    return backend


async def surveyed(backend: SimulatorBackend) -> Survey:
    states = (await backend.partitions()).states
    (found,) = (await backend.survey(SurveyRequest(states, 30.0))).surveys
    return found


async def test_the_survey_finds_the_old_leader_until_it_has_heard_of_its_successor() -> None:
    backend = await opened()
    before = await surveyed(backend)
    assert before.state.offline
    (old,) = old_leaders(before)
    assert old == OldLeader(1, before.state.leader_epoch - 1)
    rows = chosen(await backend.survey(SurveyRequest((before.state,), 30.0)))
    (election,) = await elect(backend, rows, Record())
    assert election.leader in (2, 3)
    assert old_leaders(await surveyed(backend)) == (old,)
    backend.simulation.world.network.heal_all()
    await backend.advance(10)
    assert old_leaders(await surveyed(backend)) == ()
    await backend.close()
