"""A broker behind a tunnel that nobody opened takes connections and is silent: each command waits for it once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from backends.base.answers import SurveyRequest
from backends.base.membership import NodeProbe
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import Address, parse_addresses
from backends.live.client.settings import ClientSettings, ControllerAccess
from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from console.reading.cluster_reading import not_answered
from console.reading.read_cluster import read_cluster
from recovery.model import Unknown, Why
from tests.wire.response_faults import SCENARIO

SILENT = 4
"""A broker that runs and leads partitions: only its listener cannot be reached from here."""


class SilentListener:
    """Takes every connection and answers nothing."""

    def __init__(self) -> None:
        self.taken = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        try:
            await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def backend_with_silent_broker(listener: SilentListener) -> AsyncIterator[LiveBackend]:
    served = ServedCluster(read(str(SCENARIO)), ServedClusterOptions())
    async with served, listener.listening() as address:
        others = parse_addresses(served.bootstrap)[:-1]
        backend = LiveBackend(ClientSettings(others, connect_timeout=1.0), {SILENT: address})
        try:
            yield backend
        finally:
            await backend.close()


@pytest.mark.timeout(120)
async def test_a_picture_waits_for_a_silent_broker_once_and_has_all_of_the_others() -> None:
    listener = SilentListener()
    async with backend_with_silent_broker(listener) as backend:
        reading = await read_cluster(backend, 60.0, time.time())
        assert listener.taken == 1, "log dirs, logs, partitions and configurations waited for one attempt"
        contacts = {one.broker: one.problem for one in reading.contacts}
        problem = contacts[SILENT]
        assert isinstance(problem, Unknown) and problem.why is Why.NOT_ANSWERED
        assert [one for one in not_answered(reading) if f"broker {SILENT}" in one]
        assert contacts[1] is None and contacts[2] is None
        assert isinstance(reading.log_dirs[SILENT], Unknown) and not isinstance(reading.log_dirs[1], Unknown)


async def test_a_controller_is_asked_where_the_operator_says_and_not_where_the_quorum_does() -> None:
    listener = SilentListener()
    served = ServedCluster(read(str(SCENARIO)), ServedClusterOptions())
    async with served, listener.listening() as address:
        settings = ClientSettings(parse_addresses(served.bootstrap), connect_timeout=1.0)
        access = ControllerAccess(replace(settings, bootstrap=()), {101: address})
        backend = LiveBackend(settings, controllers=access)
        try:
            await backend.open()
            nodes = {node.id: node for node in await backend.membership.nodes()}
        finally:
            await backend.close()
    assert nodes[101].address == str(address) and isinstance(nodes[101].answer, Unknown)
    assert listener.taken >= 1
    assert isinstance(nodes[100].answer, NodeProbe) and isinstance(nodes[102].answer, NodeProbe)


@pytest.mark.timeout(120)
async def test_a_check_waits_for_a_silent_broker_once() -> None:
    listener = SilentListener()
    async with backend_with_silent_broker(listener) as backend:
        await backend.open()
        report = await backend.check()
        assert listener.taken == 1
        problems = {one.broker: one.problem for one in report.reach}
        assert problems[SILENT] is not None and problems[1] is None


async def test_a_survey_for_an_election_goes_on_asking_a_silent_broker_until_its_time_is_over() -> None:
    listener = SilentListener()
    async with backend_with_silent_broker(listener) as backend:
        await backend.open()
        clicks = (await backend.partitions(["clicks"])).states
        await backend.survey(SurveyRequest(clicks, 6.0))
        assert listener.taken > 1
