"""One measurement in a separate process: ``python -m benchmarks.simulator.runs NAME [ARGUMENT]`` prints JSON."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from backends.base.answers import Outcome, SurveyRequest
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.invariants.checker import Checker
from backends.simulator.loop import SECOND
from backends.simulator.scenario.files import read
from backends.simulator.topology import BrokerSpec, ProducerSpec, TopicSpec, Topology, spread
from backends.simulator.world import World
from recovery.plan.make import plan_row
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide

LARGE = "partitions-200000"
TOPIC_PARTITIONS = 100
VIRTUAL_SECONDS = 10
Figures = Mapping[str, float]


def topology(brokers: int, partitions: int, producing: int) -> Topology:
    """Replication factor 3, three racks; ``producing`` partitions get records ten times a second."""
    specs = tuple(BrokerSpec(number, "abc"[number % 3]) for number in range(1, brokers + 1))
    assignments = spread(specs, 3)
    count, size = max(partitions // TOPIC_PARTITIONS, 1), min(partitions, TOPIC_PARTITIONS)
    topics = tuple(TopicSpec(f"t{number}", size, assignments, 2, records=1000) for number in range(count))
    producers = tuple(
        ProducerSpec(topics[number // size].name, (number % size,), -1, 10, SECOND // 10)
        for number in range(producing)
    )
    return Topology("benchmark", specs, topics, producers=producers)


def speed(brokers: int) -> Figures:
    """A healthy cluster with ten partitions per broker; all get records, and every invariant is checked."""
    world = World(topology(brokers, 10 * brokers, 10 * brokers), 1)
    Checker(world)
    world.loop.run_for(SECOND)
    steps, began = world.loop.steps, time.process_time()
    world.loop.run_for(VIRTUAL_SECONDS * SECOND)
    took = time.process_time() - began
    return {"virtual": VIRTUAL_SECONDS / took, "events": (world.loop.steps - steps) / took}


def incident(partitions: int) -> Figures:
    """24 brokers: the cluster is loaded, then one broker dies and is fenced."""
    began = time.process_time()
    world = World(topology(24, partitions, 0), 1)
    Checker(world)
    loaded, memory = time.process_time(), _peak()
    world.kill_broker(1)
    if not world.loop.run_while(lambda: not world.image.brokers[1].fenced, 60 * SECOND):
        raise RuntimeError("the dead broker was not fenced")
    world.loop.run_for(5 * SECOND)
    return {"load": loaded - began, "peak": memory, "kill": time.process_time() - loaded}


def commands(_: int) -> Figures:
    """The incident with 200,000 partitions: opened by the first command and by a later one, then surveyed."""

    async def opened(state: Path) -> tuple[SimulatorBackend, float]:
        began = time.process_time()
        backend = SimulatorBackend(read(LARGE), 1, state)
        await backend.open()
        return backend, time.process_time() - began

    async def both() -> Figures:
        with tempfile.TemporaryDirectory() as directory:
            state = Path(directory) / "state.json"
            backend, first = await opened(state)
            await backend.close()
            backend, later = await opened(state)
            began = time.process_time()
            states = (await backend.partitions()).states
            offline = tuple(one for one in states if one.offline)
            await backend.survey(SurveyRequest(offline, 30.0))
            asked = time.process_time()
            await backend.survey(SurveyRequest(states, 30.0))
            everything = time.process_time() - asked
            await backend.close()
            return {
                "first": first,
                "later": later,
                "offline": asked - began,
                "all": everything,
                "peak": _peak(),
            }

    return asyncio.run(both())


class _NoRecorder:
    """A recorder that records nothing, for a simulated cluster."""

    def before(self, action: str, detail: Mapping[str, object]) -> str:  # noqa: ARG002  # its protocol's
        return action

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        """Nothing is recorded."""


def recovery(_: int) -> Figures:
    """The scenario last-replica-standing, from its start to leaders with a full ISR, without imports."""

    async def recovered() -> None:
        backend = SimulatorBackend(read("last-replica-standing"))
        await backend.open()
        states = (await backend.partitions()).states
        surveyed = await backend.survey(SurveyRequest(states, 30.0))
        rows = []
        for one in surveyed.surveys:
            decision = decide(one, Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
            if decision.verdict is DecisionKind.ELECT:
                rows.append(plan_row(one, decision, Ranking.LAST_RECORD))
        elections = await backend.designate(rows, Ranking.LAST_RECORD, _NoRecorder(), attempts=0, stop=False)
        if {one.outcome for one in elections} != {Outcome.ELECTED}:
            raise RuntimeError(f"not recovered: {elections}")
        for _ in range(60):
            now = (await backend.partitions()).states
            live = {broker.id for broker in (await backend.cluster()).brokers if not broker.fenced}
            if all(not one.offline and set(one.isr) == live & set(one.replicas) for one in now):
                return
            await backend.advance(1)
        raise RuntimeError("not fully replicated within a minute")

    began = time.process_time()
    asyncio.run(recovered())
    return {"seconds": time.process_time() - began}


def _peak() -> int:
    """Bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


RUNS: Mapping[str, Callable[[int], Figures]] = {
    "speed": speed,
    "incident": incident,
    "commands": commands,
    "recovery": recovery,
}

if __name__ == "__main__":
    print(json.dumps(RUNS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
