"""Frames that nobody would send, at both ends: the served side closes one connection and goes on, and the live
adapter has a value or one of its own errors for whatever comes back. The number of inputs is reported.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import pack, unpack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer

from backends.base.answers import Depth, SurveyRequest
from backends.base.errors import BackendError
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.codec.apis import Api
from backends.simulator.network import NetworkRole
from backends.simulator.network import broker as node
from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import offered
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.model import PartitionState
from tests.repetitions import repetitions
from tests.wire.cluster_thread import ClusterThread

SCENARIO = read(str(Path(__file__).parent / "scenarios" / "one-dead-of-four.yaml"))
SERVED = sorted(offered(NetworkRole.BROKER).items())
INPUTS: Counter[str] = Counter()
EXAMPLES = repetitions(50, 400)
ANSWERED = repetitions(10, 30)
CONNECTIONS = repetitions(600, 1_200)
"""Each has an end on either side in this process: 600 are more than its usual limit of 1,024 descriptors."""


@pytest.fixture(scope="module", autouse=True)
def reported(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(INPUTS.items()))
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nfuzzed frames: {told}")


@pytest.fixture(scope="module")
def served() -> Iterator[ClusterThread]:
    with ClusterThread(SCENARIO, ServedClusterOptions()) as found:
        yield found


calls = st.sampled_from(SERVED).flatmap(
    lambda call: st.tuples(st.just(int(call[0])), st.integers(call[1][0] - 1, call[1][1] + 1))
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A frame with a header that may be right, and anything behind it."""
    key, version = draw(st.one_of(calls, st.tuples(st.integers(-1, 120), st.integers(-1, 20))))
    head = pack(">hhi", key, version, draw(st.integers(-(2**31), 2**31 - 1)))
    client = draw(st.sampled_from([b"\xff\xff", b"\x00\x02me", b"\x00\x02me\0", b"\x7f\xff", b""]))
    return head + client + draw(st.binary(max_size=200))


async def _send(port: int, data: bytes) -> None:
    """One connection: the bytes, then whatever comes back for a moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        writer.write_eof()
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(0.05):
                while await reader.read(65_536):
                    pass
    finally:
        writer.transport.abort()


def alive(served: ClusterThread) -> None:
    """It still answers, and nobody's connection is kept for ever."""

    async def ask() -> None:
        backend = LiveBackend(ClientSettings(parse_addresses(served.bootstrap)))
        try:
            async with asyncio.timeout(30):
                assert len((await backend.open()).brokers) == 4
        finally:
            await backend.close()

    asyncio.run(ask())


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(requests(), min_size=1, max_size=4), st.binary(max_size=20), st.booleans())
def test_the_served_side_survives_any_request(
    served: ClusterThread, frames: list[bytes], rubbish: bytes, well_framed: bool
) -> None:
    INPUTS["requests"] += len(frames)
    port = served.cluster.ports[node(1)]
    data = b"".join(pack(">i", len(frame)) + frame for frame in frames) + rubbish
    asyncio.run(_send(port, data if well_framed else b"".join(frames) + rubbish))
    assert served.do(lambda cluster: cluster.listener(node(1)).answers)


def test_after_all_of_it_the_served_side_answers(served: ClusterThread) -> None:
    alive(served)
    assert served.do(lambda cluster: len(cluster.simulation.checker.broken)) == 0


@pytest.mark.long
def test_a_flood_of_connections_and_of_requests_is_borne(served: ClusterThread) -> None:
    port = served.cluster.ports[node(1)]
    hello = pack(">hhi", 18, 0, 1) + b"\xff\xff"

    async def flood() -> int:
        streams = []
        for _ in range(CONNECTIONS):
            with suppress(OSError):
                streams.append(await asyncio.open_connection("127.0.0.1", port))
        answered = 0
        for reader, writer in streams:
            with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
                writer.write((pack(">i", len(hello)) + hello) * 20)
                async with asyncio.timeout(10):
                    (size,) = unpack(">i", await reader.readexactly(4))
                    await reader.readexactly(size)
                answered += 1
        for _, writer in streams:
            writer.transport.abort()
        return answered

    assert asyncio.run(flood()) > 500
    alive(served)


# The other way round: answers to the live adapter.


class Garbler:
    """Changes answers as hypothesis says."""

    def __init__(self, keys: frozenset[int], cuts: list[tuple[int, int, bytes]]) -> None:
        self._keys = keys
        self._cuts = cuts

    async def __call__(self, api_key: int, frame: bytes) -> bytes:
        if api_key not in self._keys:
            return frame
        INPUTS["answers"] += 1
        body = bytearray(frame[8:])
        for at, removed, put in self._cuts:
            place = at % (len(body) + 1)
            body[place : place + removed] = put
        return pack(">i", 4 + len(body)) + frame[4:8] + bytes(body)


KEYS = (
    *(Api.ListOffsets, Api.Fetch, Api.GetReplicaLogInfo, Api.DescribeTopicPartitions, Api.DescribeCluster),
    *(Api.DescribeConfigs, Api.DescribeLogDirs, Api.DescribeQuorum, Api.ListPartitionReassignments),
)
cuts = st.lists(
    st.tuples(st.integers(0, 4000), st.integers(0, 9), st.binary(max_size=9)), min_size=1, max_size=3
)


@settings(max_examples=ANSWERED, deadline=None)
@given(
    st.frozensets(st.sampled_from([int(key) for key in KEYS]), min_size=1, max_size=3), cuts, st.booleans()
)
def test_the_live_adapter_has_a_value_or_an_error_of_its_own_for_any_answer(
    keys: frozenset[int], changes: list[tuple[int, int, bytes]], everywhere: bool
) -> None:
    async def look() -> None:
        async with ServedCluster(SCENARIO, ServedClusterOptions()) as served:
            backend = LiveBackend(
                ClientSettings(parse_addresses(served.bootstrap), connect_timeout=5.0, request_timeout=5.0)
            )
            try:
                async with asyncio.timeout(60):
                    await backend.open()
                    states = (await backend.partitions(["orders"])).states
                    for broker in (1, 2, 4) if everywhere else (2,):
                        served.listener(node(broker)).frame_faults.change = Garbler(keys, changes)
                    await _everything(backend, states)
            finally:
                await backend.close()

    asyncio.run(look())


async def _everything(backend: LiveBackend, states: tuple[PartitionState, ...]) -> None:
    with suppress(BackendError):
        await backend.cluster()
    with suppress(BackendError):
        await backend.partitions()
    with suppress(BackendError):
        result = await backend.survey(SurveyRequest(states, 1.0, Depth.FULL))
        assert len(result.surveys) == len(states)
    await backend.quorum()
    await backend.reassignments()
    await backend.log_dirs()
    await backend.topic_configs(["orders"])


def test_kio_itself_writes_what_is_read_here() -> None:
    """A well-formed request of every call and version that is served is understood, to its last byte."""
    from backends.live.codec.message_fields import build, request_type
    from backends.simulator.served.entities import decode

    understood = 0
    for key, (lowest, highest) in SERVED:
        for version in range(max(lowest, 3) if key == Api.Produce else lowest, highest + 1):
            kind = request_type(key, version)
            try:
                entity = build(kind, {})
            except TypeError:
                continue  # a field without a default
            from io import BytesIO

            buffer = BytesIO()
            entity_writer(kind)(buffer, entity)
            assert decode(kind, memoryview(buffer.getvalue())) == entity
            understood += 1
    assert understood > 5
