"""The live adapter on a simulated cluster: in memory, in virtual time, and the same again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.network import OPERATOR, broker
from backends.simulator.served.handler_table import HANDLERS
from recovery.model import Unknown
from tests.unit.simulator.operators import backend, survey

RECOVERS = """
import asyncio, pathlib, sys
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import read
from tests.unit.simulator.operators import chosen, elect, survey

async def recovers() -> None:
    cluster = SimulatorBackend(read("zone-power-loss"), 1, pathlib.Path(sys.argv[1]))
    await cluster.open()
    print(await asyncio.gather(cluster.partitions(), cluster.log_dirs(), cluster.quorum()))
    surveyed = await survey(cluster)
    print(list(surveyed.surveys), surveyed.contacts)
    print(await elect(cluster, chosen(surveyed)), cluster.virtual_now)
    await cluster.close()

asyncio.run(recovers())
"""


def test_commands_do_the_same_again_to_the_byte_whatever_the_order_of_sets_is(tmp_path: Path) -> None:
    """A replay would be of no use otherwise; Python orders sets of words differently in each process."""
    ended = []
    for order in ("1", "2"):
        state = tmp_path / order / "state.json"
        environment = {**os.environ, "PYTHONHASHSEED": order}
        done = subprocess.run(
            [sys.executable, "-c", RECOVERS, str(state)],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        )
        ended.append((done.stdout, state.read_bytes()))
    assert ended[0][0].count("elected") > 1
    assert ended[0] == ended[1]


async def test_a_node_that_never_answers_costs_virtual_time_and_is_told_as_it_is_on_a_network() -> None:
    cluster = backend("last-replica-standing")
    await cluster.open()
    cluster.simulation.world.network.cut([OPERATOR], [broker(0)])
    before = cluster.virtual_now
    replica = (await survey(cluster, duration=20.0)).surveys[0].replica(0)
    assert replica is not None
    assert isinstance(replica.log, Unknown)
    assert "connect timed out after 3.0 s" in replica.log.detail
    assert cluster.virtual_now - before >= 3 * SECOND
    cluster.simulation.world.network.heal_all()
    replica = (await survey(cluster)).surveys[0].replica(0)
    assert replica is not None
    assert not isinstance(replica.log, Unknown)
    await cluster.close()


async def test_a_call_that_is_given_up_leaves_the_cluster_for_the_next_one() -> None:
    cluster = backend("last-replica-standing")
    await cluster.open()
    cluster.simulation.world.network.cut([OPERATOR], [broker(number) for number in range(3)])
    asking = asyncio.ensure_future(cluster.partitions())
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    cluster.simulation.world.network.heal_all()
    assert len((await cluster.partitions()).states) == 1
    await cluster.close()


async def test_a_defect_of_a_request_handler_is_raised_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong(_call: object) -> bytes:
        raise ZeroDivisionError

    cluster = backend("last-replica-standing")
    await cluster.open()
    for api, handler in HANDLERS.items():
        if handler.__name__ == "describe_log_dirs":
            monkeypatch.setitem(HANDLERS, api, wrong)
    with pytest.raises(ZeroDivisionError):
        await cluster.log_dirs()
    await cluster.close()
