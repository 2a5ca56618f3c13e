"""A defect of the simulator ends the served cluster, names the seed and fails whoever uses the cluster."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backends.live.codec.apis import Api
from backends.simulator.loop import SECOND
from backends.simulator.network import broker
from backends.simulator.scenario.files import read
from backends.simulator.served.clock import SimulatorFailed
from backends.simulator.served.handler_table import HANDLER_TABLE
from backends.simulator.served.served_call import ServedCall
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from tests.unit.cli.command_process import environment
from tests.wire.cluster_thread import WAIT, ClusterThread
from tests.wire.test_nodes import CLOSES, met

PATH = Path(__file__).parent / "scenarios" / "three-at-peace.yaml"
SCENARIO = read(str(PATH))


def fail() -> None:
    raise KeyError("no such replica")


async def test_a_failure_stops_the_cluster_and_is_raised_where_the_cluster_is_closed() -> None:
    with pytest.raises(SimulatorFailed, match=r"KeyError: 'no such replica'.*seed 7") as raised:
        async with ServedCluster(SCENARIO, ServedClusterOptions(seed=7)) as served:
            served.world.loop.call_at(served.simulation.now + SECOND // 10, fail)
            async with asyncio.timeout(WAIT):
                with pytest.raises(SimulatorFailed):
                    await served.run_until_failure()
            assert served.clock.speed == 0
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", served.ports[broker(1)])
    assert isinstance(raised.value.__cause__, KeyError)


async def test_a_failure_in_a_step_is_raised_at_the_step_and_where_the_cluster_is_closed() -> None:
    with pytest.raises(SimulatorFailed, match="seed 3"):
        async with ServedCluster(SCENARIO, ServedClusterOptions(seed=3, speed=0)) as served:
            served.world.loop.call_at(served.simulation.now + SECOND, fail)
            with pytest.raises(SimulatorFailed):
                served.clock.step(2)


def test_a_failure_reaches_the_test_that_uses_a_cluster_in_another_thread() -> None:
    with (
        pytest.raises(SimulatorFailed, match="seed 5"),
        ClusterThread(SCENARIO, ServedClusterOptions(seed=5)) as served,
    ):
        served.do(lambda cluster: cluster.world.loop.call_at(cluster.simulation.now + 1, fail))
        deadline = time.monotonic() + WAIT
        while served.cluster.failure is None and time.monotonic() < deadline:
            time.sleep(0.02)


FAILING = """\
import sys
from backends.simulator.loop import SECOND
from backends.simulator.simulation import Simulation

advance_to = Simulation.advance_to

def fail_after_a_second(self, time):
    if time > self.scenario.operator_at + SECOND:
        raise KeyError("no such replica")
    advance_to(self, time)

Simulation.advance_to = fail_after_a_second
sys.argv[0] = "ktriage"
from console.cli.main import main
main()
"""


def test_simulate_serve_ends_with_one_line_the_seed_and_the_command_that_replays_it(tmp_path: Path) -> None:
    words = ("simulate", "serve", str(PATH), "--seed", "3", "--port-base", "0")
    done = subprocess.run(
        [sys.executable, "-c", FAILING, *words],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "KeyError" in line)
    assert "the simulator failed" in line
    assert f"ktriage simulate serve {PATH} --seed 3" in line


async def test_a_defect_of_a_request_handler_closes_the_connection_and_fails_the_test() -> None:
    async def broken(_call: ServedCall) -> None:
        fail()

    table = HANDLER_TABLE._replace(handlers={**HANDLER_TABLE.handlers, Api.ApiVersions: broken})
    with pytest.raises(SimulatorFailed, match="no such replica"):
        async with ServedCluster(SCENARIO, ServedClusterOptions(speed=0), handlers=table) as served:
            assert await met(served, broker(1)) == CLOSES
            assert await met(served, broker(2)) == CLOSES
