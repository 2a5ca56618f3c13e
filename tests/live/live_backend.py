"""The live adapter on a testbed cluster, as the tests of its own calls use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from backends.base.answers import Depth, Designation, SurveyRequest
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from recovery.model import Lineage, Survey, TopicPartition
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from testbed.kafka import KafkaCluster


class NeverStopped:
    """A job that nobody stops."""

    def __bool__(self) -> bool:
        return False


class MemoryRecorder:
    """Keeps in memory what a journal would put on disk."""

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


def designation(row: Survey, ranking: Ranking = Ranking.LAST_RECORD) -> Designation:
    """The aggressive choice for one surveyed partition, with its fences."""
    decision = decide(row, ranking, Strategy.AGGRESSIVE)
    assert decision.verdict is DecisionKind.ELECT, decision
    logs: dict[int, tuple[int | None, int]] = {}
    for replica in row.replicas:
        log = row.log(replica.broker)
        if log is not None:
            epoch = log.lineage.last_epoch if isinstance(log.lineage, Lineage) else None
            logs[replica.broker] = (epoch, log.log_end_offset)
    state = row.state
    return Designation(state.tp, state.topic_id, state.leader_epoch, state.replicas, decision.order, logs)
