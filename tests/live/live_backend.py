"""The live adapter on a testbed cluster, as the tests of its own calls use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from backends.base.answers import Depth, SurveyRequest
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from recovery.model import Survey, TopicPartition
from recovery.plan.make import plan_row
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.strategy import Strategy, decide
from testbed.kafka import KafkaCluster


class NeverStopped:
    """A stop request that never comes."""

    def __bool__(self) -> bool:
        return False


class MemoryRecorder:
    """Records in memory what a journal writes to disk."""

    def __init__(self) -> None:
        self.actions: list[str] = []
        self.details: list[Mapping[str, object]] = []
        self.ends: dict[str, Mapping[str, object]] = {}

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        self.actions.append(action)
        self.details.append(detail)
        return str(len(self.actions))

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        self.ends[entry] = result


@asynccontextmanager
async def open_backend(cluster: KafkaCluster) -> AsyncIterator[LiveBackend]:
    backend = LiveBackend(ClientSettings(parse_addresses(cluster.bootstrap())))
    try:
        await backend.open()
        yield backend
    finally:
        await backend.close()


async def survey(
    backend: LiveBackend, topics: Sequence[str], duration: float = 10.0, depth: Depth = Depth.DIVERGENCE
) -> dict[TopicPartition, Survey]:
    states = (await backend.partitions(topics)).states
    result = await backend.survey(SurveyRequest(states, duration, depth))
    return {row.tp: row for row in result.surveys}


def designation(row: Survey, ranking: Ranking = Ranking.LAST_RECORD) -> PlanRow:
    """The aggressive choice for one surveyed partition, with its preconditions."""
    return plan_row(row, decide(row, ranking, Strategy.AGGRESSIVE), ranking)
