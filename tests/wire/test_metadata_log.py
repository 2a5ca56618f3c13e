"""The served simulator's metadata log, read as from a real active controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.metadata_log import LiveMetadataLog
from backends.live.nodes.controllers import ControllerConnections
from backends.simulator.network import NetworkRole
from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import events
from testbed.histories.history_folder import HistoryFolder
from tests.wire.test_nodes import happen

SCENARIO = read(str(Path(__file__).parent / "scenarios" / "three-at-peace.yaml"))


@pytest.fixture
async def served() -> AsyncIterator[ServedCluster]:
    async with ServedCluster(SCENARIO, ServedClusterOptions(speed=0)) as found:
        yield found


def connections(served: ServedCluster) -> ControllerConnections:
    addresses = parse_addresses(served.context.servers(NetworkRole.CONTROLLER))
    return ControllerConnections(ClientSettings(addresses), addresses)


def told(history: MetadataHistory, began_ms: int = 0) -> list[object]:
    return [row._replace(time_ms=row.time_ms + began_ms) for row in history.rows()]


async def test_what_the_controller_sends_is_what_the_simulator_committed(served: ServedCluster) -> None:
    controllers = connections(served)
    try:
        log = LiveMetadataLog(controllers)
        assert await log.read() > 0
        happen(served, "kill broker-1")
        served.clock.step(20)
        assert await log.read() > 0
        happen(served, "kill-controller controller-100")
        served.clock.step(20)
        happen(served, "start broker-1")
        served.clock.step(20)
        assert await log.read() > 0
    finally:
        await controllers.close()
    folder = HistoryFolder(served.world.committed_records)
    assert told(log.history) == told(folder.catch_up(), served.context.began_ms)
    assert log.next_offset == log.high_watermark
    kinds = [event.kind for event in events(log.history)]
    fenced = kinds.index(EventKind.BROKER_FENCED)
    assert EventKind.LEADER_CHANGED in kinds[fenced:]
    assert EventKind.BROKER_UNFENCED in kinds[fenced:]
