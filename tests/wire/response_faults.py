"""Faults of responses on their way, and an operator who surveys and recovers meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack, unpack
from typing import NamedTuple

from backends.base.answers import Depth, SurveyRequest, SurveyResult
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import Address, parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.codec.apis import Api
from backends.simulator.network import broker as node
from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import hidden
from backends.simulator.served.frames import Change, ConnectionCut
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.model import PartitionState
from recovery.plan.values import PlanRow
from tests.plan_rows import row_of

SCENARIO = Path(__file__).parent / "scenarios" / "one-dead-of-four.yaml"
HIDDEN = "GetReplicaLogInfo,ElectLeaders:3"
HANG_SECONDS = 40.0
"""Seconds after which a call counts as hanging."""

FIRST_CALLS = (Api.ApiVersions, Api.DescribeCluster, Api.DescribeConfigs)


class MemoryRecorder:
    """A recorder in memory."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Mapping[str, object]]] = []

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        self.entries.append((action, detail))
        return action

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        self.entries.append((entry, result))


class NeverStopped:
    """A stop request that never comes."""

    def __bool__(self) -> bool:
        return False


class ServedBackend(NamedTuple):
    served: ServedCluster
    backend: LiveBackend

    def tamper(self, broker: int, change: Change | None) -> None:
        """From now on."""
        self.served.listener(node(broker)).frame_faults.change = change

    async def offline(self) -> tuple[PartitionState, ...]:
        found = await self.backend.partitions(["orders"])
        assert not found.unknown
        return found.states

    async def survey(self, states: Iterable[PartitionState], duration: float = 4.0) -> SurveyResult:
        async with asyncio.timeout(HANG_SECONDS):
            return await self.backend.survey(SurveyRequest(tuple(states), duration, Depth.DIVERGENCE))


@asynccontextmanager
async def served_backend(
    without: str = "",
    *,
    request_timeout: float = 2.0,
    overrides: Mapping[int, Address] | None = None,
    scenario: Path = SCENARIO,
) -> AsyncIterator[ServedBackend]:
    """The scenario on the wire, and an open live adapter that waits ``request_timeout`` for an answer."""
    async with (
        ServedCluster(read(str(scenario)), ServedClusterOptions(without=hidden(without))) as served,
        operator(served, request_timeout=request_timeout, overrides=overrides) as on,
    ):
        yield on


@asynccontextmanager
async def operator(
    served: ServedCluster, *, request_timeout: float = 2.0, overrides: Mapping[int, Address] | None = None
) -> AsyncIterator[ServedBackend]:
    """Another operator, who knows nothing yet."""
    settings = ClientSettings(
        parse_addresses(served.bootstrap), connect_timeout=5.0, request_timeout=request_timeout
    )
    backend = LiveBackend(settings, overrides)
    try:
        async with asyncio.timeout(HANG_SECONDS):
            await backend.open()
        yield ServedBackend(served, backend)
    finally:
        await backend.close()


# Faults.


def only(keys: Iterable[int], change: Change) -> Change:
    """``change`` for answers to these calls."""
    wanted = frozenset(keys)

    async def chosen(api_key: int, frame: bytes) -> bytes | None:
        return await change(api_key, frame) if api_key in wanted else frame

    return chosen


def besides(keys: Iterable[int], change: Change) -> Change:
    """``change`` for answers to all other calls."""
    spared = frozenset(keys)

    async def chosen(api_key: int, frame: bytes) -> bytes | None:
        return frame if api_key in spared else await change(api_key, frame)

    return chosen


def slow(seconds: float) -> Change:
    async def late(_: int, frame: bytes) -> bytes:
        await asyncio.sleep(seconds)
        return frame

    return late


async def hangs(_key: int, _frame: bytes) -> bytes | None:
    return None


async def resets(_key: int, _frame: bytes) -> bytes | None:
    raise ConnectionResetError


async def cut(_key: int, frame: bytes) -> bytes | None:
    raise ConnectionCut(frame[: len(frame) // 2])


async def half_and_silence(_key: int, frame: bytes) -> bytes | None:
    return frame[: len(frame) // 2]


async def oversized(_key: int, frame: bytes) -> bytes | None:
    return b"\x7f\xff\xff\xff" + frame[4:]


async def negative(_key: int, frame: bytes) -> bytes | None:
    return b"\xff\xff\xff\xff" + frame[4:]


async def garbage(_key: int, frame: bytes) -> bytes | None:
    return frame[:8] + bytes((byte * 7 + 13) % 256 for byte in frame[8:])


async def empty(_key: int, frame: bytes) -> bytes | None:
    return pack(">i", 4) + frame[4:8]


async def other_correlation(_key: int, frame: bytes) -> bytes | None:
    (correlation,) = unpack(">i", frame[4:8])
    return frame[:4] + pack(">i", correlation + 1) + frame[8:]


async def twice(_key: int, frame: bytes) -> bytes | None:
    return frame + frame


def spoilt(spoil: Callable[[bytes], bytes]) -> Change:
    """The answer's bytes behind the flexible header, changed; its length may change too."""

    async def change(_: int, frame: bytes) -> bytes:
        body = frame[4:9] + spoil(frame[9:])
        return pack(">i", len(body)) + body

    return change


def designations(states: Iterable[PartitionState], result: SurveyResult, leader: int) -> list[PlanRow]:
    """``leader`` for each partition, with what was surveyed of it as the preconditions."""
    rows = []
    for state, survey in zip(states, result.surveys, strict=True):
        order = (leader, *(broker for broker in state.replicas if broker != leader))
        rows.append(row_of(survey, order))
    return rows
