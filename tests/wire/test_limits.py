"""What a served node gives in one answer: pages of partitions, and a thousand replicas or elections."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from backends.base.answers import Depth, SurveyRequest
from backends.live.codec.apis import Api
from backends.live.codec.primitives import kafka_id
from backends.live.survey import log_ends
from backends.simulator.network import broker
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.model import ReplicaLog
from tests.wire.raw_request import send_request
from tests.wire.response_faults import SCENARIO, operator

WIDE = """\
title: one wide topic
about: Nothing happens.
cluster: {brokers: {count: 1}}
topics:
  - {name: wide, partitions: 1200, replicas: [[1]], records: 3}
operator: {at: 5}
expect: {offline: 0}
"""
PARTITIONS, SERVED_AT_MOST = 1_200, 1_000


def small_pages(limit: int) -> Scenario:
    """Eight partitions, of which a broker tells so many at once."""
    scenario = read(str(SCENARIO))
    config = replace(scenario.topology.config, partition_limit=limit)
    return replace(scenario, topology=replace(scenario.topology, config=config))


async def page(served: ServedCluster, limit: int, cursor: Any = None) -> Any:
    """One answer to DescribeTopicPartitions of all topics."""
    asked = {"topics": (), "response_partition_limit": limit, "cursor": cursor}
    return await send_request(served.ports[broker(1)], Api.DescribeTopicPartitions, 0, asked)


def told(answer: Any) -> list[tuple[str, int]]:
    return [(str(topic.name), one.partition_index) for topic in answer.topics for one in topic.partitions]


@pytest.mark.parametrize(
    ("asked", "most"), [(2_000, 3), (2, 2), (0, 1), (-1, 1)], ids=["the broker's", "the client's", "0", "-1"]
)
async def test_a_page_has_no_more_than_the_broker_allows_and_the_client_takes(asked: int, most: int) -> None:
    async with ServedCluster(small_pages(3), ServedClusterOptions(speed=0)) as served:
        found: list[tuple[str, int]] = []
        cursor = None
        while True:
            answer = await page(served, asked, cursor)
            rows = told(answer)
            assert 0 < len(rows) <= most
            found += rows
            if answer.next_cursor is None:
                break
            assert len(rows) == most
            cursor = {
                "topic_name": answer.next_cursor.topic_name,
                "partition_index": answer.next_cursor.partition_index,
            }
        assert found == [("clicks", 0), ("clicks", 1), *(("orders", number) for number in range(6))]


async def test_a_cursor_whose_topic_is_deleted_goes_on_with_the_next_one() -> None:
    async with ServedCluster(small_pages(3), ServedClusterOptions(speed=0)) as served:
        answer = await page(served, 3, {"topic_name": "deleted", "partition_index": 2})
        assert told(answer) == [("orders", 0), ("orders", 1), ("orders", 2)]
        assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("orders", 3)


async def test_the_live_adapter_follows_every_cursor() -> None:
    async with (
        ServedCluster(small_pages(3), ServedClusterOptions(speed=0)) as served,
        operator(served) as on,
    ):
        assert len((await on.backend.partitions()).states) == 8
        assert len((await on.backend.partitions(["orders"])).states) == 6


@pytest.fixture
def wide(tmp_path: Path) -> Scenario:
    path = tmp_path / "wide.yaml"
    path.write_text(WIDE)
    return read(str(path))


async def topic_id(served: ServedCluster) -> Any:
    (topic,) = (await page(served, 1)).topics
    return topic.topic_id


async def test_the_first_thousand_replicas_are_told_and_that_there_are_more(wide: Scenario) -> None:
    async with ServedCluster(wide, ServedClusterOptions(speed=0)) as served:
        for count in (SERVED_AT_MOST, PARTITIONS):
            wanted = {"topic_id": kafka_id(await topic_id(served)), "partitions": tuple(range(count))}
            answer = await send_request(
                served.ports[broker(1)], Api.GetReplicaLogInfo, 0, {"topic_partitions": [wanted]}
            )
            (topic,) = answer.topic_partition_log_info_list
            assert [row.partition for row in topic.partition_log_info] == list(range(SERVED_AT_MOST))
            assert {row.log_end_offset for row in topic.partition_log_info} == {3}
            assert answer.has_more_data == (count > SERVED_AT_MOST)


async def test_the_rest_is_asked_for_where_there_is_more(
    wide: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as a broker serves are asked for at once; one that serves fewer says that it has more."""
    for at_once in (log_ends.AT_MOST, PARTITIONS):
        monkeypatch.setattr(log_ends, "AT_MOST", at_once)
        async with ServedCluster(wide, ServedClusterOptions(speed=0)) as served, operator(served) as on:
            states = (await on.backend.partitions()).states
            result = await on.backend.survey(SurveyRequest(states, 20.0, Depth.LAST))
            logs = [replica.log for survey in result.surveys for replica in survey.replicas]
            assert len(logs) == PARTITIONS
            assert all(isinstance(log, ReplicaLog) and log.log_end_offset == 3 for log in logs)
            assert {contact.call for contact in result.contacts} == {log_ends.CALL}


async def test_a_thousand_designated_elections_are_decided_and_the_rest_refused(wide: Scenario) -> None:
    async with ServedCluster(wide, ServedClusterOptions(speed=0)) as served:
        rows = {
            "topic": "wide",
            "partitions": tuple(range(PARTITIONS)),
            "designated_leaders": (1,) * PARTITIONS,
        }
        asked = {"election_type": 2, "topic_partitions": [rows], "timeout": 1_000}
        answer = await send_request(served.ports[broker(1)], Api.ElectLeaders, 3, asked)
        (topic,) = answer.replica_election_results
        ended = Counter(row.error_code for row in topic.partition_result)
        assert ended == {
            ErrorCode.election_not_needed: SERVED_AT_MOST,
            ErrorCode.throttling_quota_exceeded: PARTITIONS - SERVED_AT_MOST,
        }
