"""What a caller who lacks one right sees of replica logs, and what becomes of its elections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from backends.base.answers import Outcome, SurveyRequest, SurveyResult
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.client_config import load_settings
from recovery.model import PartitionState
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from testbed.kafka import KafkaCluster
from tests.live import restricted_users
from tests.live.live_backend import MemoryRecorder, NeverStopped, designation
from tests.live.restricted_users import (
    ALL_RIGHTS,
    CLOSED,
    NO_ALTER,
    NO_CLUSTER,
    NO_DESCRIBE,
    NO_READ,
    TOPICS,
    lose_both_leaders,
)

pytestmark = pytest.mark.long

CLUSTER = restricted_users.CLUSTER
LISTENER = "CLEAR"
PATIENT = 3600.0


@pytest.fixture(scope="module")
def states(cluster: KafkaCluster) -> None:
    lose_both_leaders(cluster)


@asynccontextmanager
async def as_user(cluster: KafkaCluster, user: str) -> AsyncIterator[LiveBackend]:
    file: Path = cluster.client_configs.client_properties(user, listener=LISTENER)
    backend = LiveBackend(load_settings(file, parse_addresses(cluster.bootstrap(LISTENER))))
    try:
        await backend.open()
        yield backend
    finally:
        await backend.close()


async def all_states(cluster: KafkaCluster) -> tuple[PartitionState, ...]:
    async with as_user(cluster, ALL_RIGHTS) as backend:
        return (await backend.partitions(TOPICS)).states


async def survey_as(cluster: KafkaCluster, user: str) -> SurveyResult:
    """Both topics as that user is told of them, ``closed`` first."""
    offline = await all_states(cluster)
    async with as_user(cluster, user) as backend:
        return await backend.survey(SurveyRequest(offline, PATIENT))


async def designation_of(cluster: KafkaCluster, topic: str) -> PlanRow:
    found = await survey_as(cluster, ALL_RIGHTS)
    return designation(next(row for row in found.surveys if row.state.topic == topic))


@pytest.mark.parametrize(
    ("user", "lacks", "sent"),
    [
        (NO_ALTER, "needs ALTER on Cluster:kafka-cluster", ["elect"]),
        (NO_CLUSTER, "needs DESCRIBE on Cluster:kafka-cluster", []),
        (NO_DESCRIBE, "needs DESCRIBE on Topic:closed", []),
        (NO_READ, "needs READ on topic closed", []),
    ],
)
async def test_an_election_that_lacks_a_right_names_it_and_is_not_tried_again(
    cluster: KafkaCluster, states: None, user: str, lacks: str, sent: list[str]
) -> None:
    row = await designation_of(cluster, CLOSED)
    recorder, rounds = MemoryRecorder(), list[int]()
    async with as_user(cluster, user) as backend:
        [election] = await backend.designate(
            [row],
            Ranking.LAST_RECORD,
            recorder,
            attempts=3,
            stop=NeverStopped(),
            progress=lambda _what, done, _of: rounds.append(done),
        )
    assert (election.outcome, election.reverted, rounds) == (Outcome.FAILED, True, [1])
    assert lacks in election.detail
    assert recorder.actions == sent
    assert cluster.metadata.wait_caught_up().partition(CLOSED, 0).leader == -1
