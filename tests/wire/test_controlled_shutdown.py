"""A rolling restart during a recovery: a broker in controlled shutdown looks like any other from outside."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from backends.base.answers import Outcome
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.network import broker as node
from backends.simulator.network import controller
from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import hidden
from backends.simulator.served.served_cluster import ServedClusterOptions
from backends.simulator.world import World
from recovery.model import Standing
from recovery.ranking import Ranking
from tests.unit.cli.command_process import invoke
from tests.wire.cluster_thread import ClusterThread
from tests.wire.response_faults import (
    HANG_SECONDS,
    HIDDEN,
    MemoryRecorder,
    NeverStopped,
    designations,
    served_backend,
)

SCENARIO = Path(__file__).parent / "scenarios" / "roll-during-recovery.yaml"


def begin_shutdown(world: World, broker: int) -> None:
    """SIGTERM: it is in controlled shutdown when this returns, and stays so, for it is not heard again."""
    world.shut_down_broker(broker)
    world.loop.run_while(lambda: not world.image.brokers[broker].in_controlled_shutdown, 5 * SECOND)
    assert world.image.brokers[broker].in_controlled_shutdown
    for number in world.controllers:
        world.network.delay(node(broker), controller(number), 600 * SECOND, "heartbeat")
    world.loop.run_for(200 * MILLISECOND)


async def test_a_broker_in_controlled_shutdown_is_not_among_the_offline_replicas() -> None:
    async with served_backend(HIDDEN, scenario=SCENARIO) as on:
        begin_shutdown(on.served.world, 2)
        states = await on.offline()
        surveys = (await on.survey(states)).surveys
        cluster = await on.backend.cluster()
    assert {state.offline_replicas for state in states} == {(3,)}
    assert {listed.id: listed.fenced for listed in cluster.brokers}[2] is False
    for survey in surveys:
        second = survey.replica(2)
        assert second is not None
        assert second.standing is Standing.ELECTABLE, "nothing that can be asked says otherwise"
        assert survey.log(2) is not None, "it still answers"


async def test_kafka_elects_the_next_in_the_order_where_the_chosen_one_is_being_shut_down() -> None:
    async with served_backend(HIDDEN, scenario=SCENARIO) as on:
        states = await on.offline()
        rows = designations(states, await on.survey(states), leader=2)
        begin_shutdown(on.served.world, 2)
        async with asyncio.timeout(HANG_SECONDS):
            ended = await on.backend.designate(
                rows, Ranking.LAST_RECORD, MemoryRecorder(), attempts=0, stop=NeverStopped()
            )
        for state in states:
            assert on.served.world.image.partitions[state.tp].replicas == state.replicas
    assert {(row.outcome, row.leader, row.reverted) for row in ended} == {(Outcome.OTHER_LEADER, 1, True)}
    assert all("1 leads, and not 2 as planned" in row.detail for row in ended)


async def test_a_cluster_that_elects_designated_leaders_elects_nobody_in_its_place() -> None:
    async with served_backend(scenario=SCENARIO) as on:
        states = await on.offline()
        rows = designations(states, await on.survey(states), leader=2)
        begin_shutdown(on.served.world, 2)
        async with asyncio.timeout(HANG_SECONDS):
            ended = await on.backend.designate(
                rows, Ranking.LAST_RECORD, MemoryRecorder(), attempts=0, stop=NeverStopped()
            )
        assert all(on.served.world.image.partitions[state.tp].leader == -1 for state in states)
    assert {row.outcome for row in ended} == {Outcome.FAILED}
    assert all("ELIGIBLE_LEADERS_NOT_AVAILABLE" in row.detail for row in ended)


def test_the_command_names_the_other_leader_and_ends_with_1(tmp_path: Path) -> None:
    with ClusterThread(read(str(SCENARIO)), ServedClusterOptions(without=hidden(HIDDEN))) as served:
        server = ("--bootstrap-server", served.bootstrap)
        planned = invoke(tmp_path, "ktriage", "plan", *server, "--strategy", "aggressive", "plan.json")
        assert planned.status == 0, planned
        served.change(lambda world: begin_shutdown(world, 2))
        agreed = ("--yes", "--reason", "a roll goes on", "--output", "json")
        applied = invoke(tmp_path, "ktriage", "apply", *server, "plan.json", *agreed)
    assert applied.status == 1, applied
    rows = json.loads(applied.out)["elections"]
    assert [(row["outcome"], row["leader"], row["designatedLeader"]) for row in rows] == [
        ("another leader", 1, 2)
    ] * 2
    assert "1 leads, and not 2 as planned" in applied.err
