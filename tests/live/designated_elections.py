"""Steps of the tests of designated elections, and checks of their results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager

from backends.base.answers import Election
from backends.live.adapter import LiveBackend
from backends.live.client.settings import ClientSettings
from recovery.model import TopicPartition
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.live_backend import MemoryRecorder, NeverStopped
from tests.live.request_proxy import RequestProxy

CLUSTER = ClusterSpec(controllers=3)
"""Modules with this very object follow one another on one cluster."""


class ActionAt(MemoryRecorder):
    """Calls a function once, when ``action`` is recorded: right before its request is sent."""

    def __init__(self, action: str, do: Callable[[], None]) -> None:
        super().__init__()
        self._functions = {action: do}

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        entry = super().before(action, detail)
        do = self._functions.pop(action, None)
        if do is not None:
            do()
        return entry


async def elect(
    backend: LiveBackend, recorder: MemoryRecorder, *rows: PlanRow, attempts: int = 0
) -> list[Election]:
    return list(
        await backend.designate(rows, Ranking.LAST_RECORD, recorder, attempts=attempts, stop=NeverStopped())
    )


def wait_leader_and_order(
    cluster: KafkaCluster, tp: TopicPartition, leader: int, replicas: tuple[int, ...]
) -> None:
    """Waits until the cluster shows that leader and that assignment order."""
    cluster.metadata.wait_partition(
        tp.topic,
        tp.partition,
        lambda state: (state.leader, state.replicas) == (leader, replicas),
        f"to be led by {leader} and assigned to {replicas}",
    )


@asynccontextmanager
async def through_proxies(
    cluster: KafkaCluster,
) -> AsyncIterator[tuple[LiveBackend, dict[int, RequestProxy]]]:
    """A backend that reaches the brokers only through proxies."""
    with ExitStack() as stack:
        proxies = {id: stack.enter_context(RequestProxy(node.port)) for id, node in cluster.brokers.items()}
        addresses = {id: proxy.address for id, proxy in proxies.items()}
        backend = LiveBackend(ClientSettings((addresses[1], addresses[2])), addresses)
        try:
            await backend.open()
            yield backend, proxies
        finally:
            await backend.close()
