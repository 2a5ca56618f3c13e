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
from recovery.model import Lineage, PartitionState, ReplicaLog, Unknown, Why
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking, rank
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


async def test_without_read_on_a_topic_the_last_record_is_not_known_and_length_does_not_stand_in(
    cluster: KafkaCluster, states: None
) -> None:
    found = await survey_as(cluster, NO_READ)
    closed, opened = found.surveys
    lacking = closed.log(1)
    assert lacking is not None and lacking.log_end_offset == 10
    assert lacking.lineage == Unknown(Why.NOT_ALLOWED, "needs READ on topic closed")
    refused = rank(closed, Ranking.LAST_RECORD)
    assert isinstance(refused, Unknown) and "READ on topic closed" in refused.detail
    by_length = rank(closed, Ranking.SPECIFICATION)
    assert not isinstance(by_length, Unknown) and [c.broker for c in by_length] == [1]
    complete = opened.log(1)
    assert isinstance(complete, ReplicaLog) and isinstance(complete.lineage, Lineage)


async def test_without_describe_on_a_topic_its_logs_are_refused_and_not_waited_for(
    cluster: KafkaCluster, states: None
) -> None:
    found = await survey_as(cluster, NO_DESCRIBE)
    closed, opened = found.surveys
    replica = closed.replica(1)
    assert replica is not None
    assert replica.log == Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on topic closed")
    assert isinstance(closed.min_isr, Unknown) and closed.min_isr.why is Why.NOT_ALLOWED
    assert opened.log(1) is not None and opened.min_isr == 1
    contact = found.contact(1)
    assert contact is not None and contact.problem is None


async def test_without_describe_on_the_cluster_reassignments_are_unknown_and_logs_are_told(
    cluster: KafkaCluster, states: None
) -> None:
    found = await survey_as(cluster, NO_CLUSTER)
    for row in found.surveys:
        assert isinstance(row.reassigning, Unknown)
        assert "DESCRIBE on Cluster:kafka-cluster" in row.reassigning.detail
        told = row.log(1)
        assert told is not None and (told.log_end_offset, told.size) == (10, -1)


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
