"""``python -m benchmarks.librdkafka [--rounds N]``: writes benchmarks/results/librdkafka.md.

The calls that librdkafka's AdminClient offers too, ours against librdkafka's, in one process and on one broker of
real Kafka: each round connects anew, and the sides take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, ElectionType, KafkaException, admin
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.cimpl import NewTopic

from backends.live.calls.configs import alter_topic_configs, describe_topic_configs
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.client.addresses import parse_addresses
from backends.live.client.client_config import settings_from
from backends.live.consumer_groups import LiveConsumerGroups
from backends.live.nodes.brokers import BrokerFleet
from backends.live.survey.log_queries import ReplicaLogEnd, log_ends
from benchmarks.bench_cluster import JVM_FLAGS, WAIT_SECONDS
from benchmarks.machine_info import described
from recovery.groups.group_values import ConsumerGroup, GroupKind
from recovery.model import TopicPartition
from testbed.kafka import ClusterSpec, KafkaCluster
from testbed.kafka.wait import wait_until

RESULTS = Path(__file__).parent / "results" / "librdkafka.md"
OFFSETS_OF_A_GROUP = 10
BROKER = 1
CHANGE = ("retention.ms", "86400000")
LIMIT = 300.0
witness: Any = admin
"""The package does not list all that it exports."""


class Cost(NamedTuple):
    """Seconds on the clock and of all threads' CPU, and how many rows were answered."""

    wall: float
    cpu: float
    rows: int


class ComparedCall(NamedTuple):
    """The same question for both sides; each returns the number of rows that were answered without an error."""

    name: str
    ours: Callable[[BrokerFleet], Awaitable[int]]
    librdkafka: Callable[[Any], int]


def calls(groups: Sequence[str], topics: Sequence[str]) -> tuple[ComparedCall, ...]:
    partitions = [TopicPartition(topic, 0) for topic in topics]
    coordinated = [ConsumerGroup(name, BROKER, GroupKind.CLASSIC, "", "Empty") for name in groups]
    change = witness.ConfigEntry(*CHANGE, incremental_operation=witness.AlterConfigOpType.SET)

    async def our_offsets(fleet: BrokerFleet) -> int:
        answers = await LiveConsumerGroups(fleet).committed(coordinated, None)
        return sum(len(commits) for commits in answers.values() if isinstance(commits, Mapping))

    def offsets(client: Any) -> int:
        # One group a call: librdkafka takes no more. All are sent before the first answer is waited for.
        wanted = [[ConsumerGroupTopicPartitions(name)] for name in groups]
        asked = [client.list_consumer_group_offsets(one, request_timeout=LIMIT) for one in wanted]
        return sum(len(answer.result().topic_partitions) for one in asked for answer in one.values())

    async def our_configs(fleet: BrokerFleet) -> int:
        found = (await fleet.any(lambda conn: describe_topic_configs(conn, topics))).value
        return sum(isinstance(values, Mapping) for values in found.values())

    def configs(client: Any) -> int:
        wanted = [witness.ConfigResource(witness.ResourceType.TOPIC, topic) for topic in topics]
        found = client.describe_configs(wanted, request_timeout=LIMIT)
        return sum(bool(values.result()) for values in found.values())

    async def our_changes(fleet: BrokerFleet) -> int:
        wanted = {topic: dict([CHANGE]) for topic in topics}
        ended = await fleet.any(lambda conn: alter_topic_configs(conn, wanted), again=False)
        return sum(why is None for why in ended.value.values())

    def changes(client: Any) -> int:
        kind = witness.ResourceType.TOPIC
        wanted = [witness.ConfigResource(kind, topic, incremental_configs=[change]) for topic in topics]
        ended = client.incremental_alter_configs(wanted, request_timeout=LIMIT)
        return sum(one.result() is None for one in ended.values())

    async def our_ends(fleet: BrokerFleet) -> int:
        found = await log_ends(await fleet.connection(BROKER), partitions, LIMIT)
        return sum(isinstance(end, ReplicaLogEnd) for end in found.values())

    def ends(client: Any) -> int:
        wanted = {Partition(*tp): witness.OffsetSpec.latest() for tp in partitions}
        found = client.list_offsets(wanted, request_timeout=LIMIT)
        return sum(one.result().offset >= 0 for one in found.values())

    async def our_elections(fleet: BrokerFleet) -> int:
        return len((await fleet.any(lambda conn: elect_leaders(conn, partitions, preferred=True))).value)

    def elections(client: Any) -> int:
        # Without a time limit: with one, the Python client (2.16.1) ends in a SystemError.
        return len(
            client.elect_leaders(ElectionType.PREFERRED, [Partition(*tp) for tp in partitions]).result()
        )

    return (
        ComparedCall(f"committed offsets of {len(groups):,} groups", our_offsets, offsets),
        ComparedCall(f"configurations of {len(topics):,} topics", our_configs, configs),
        ComparedCall(f"one key of {len(topics):,} topics changed", our_changes, changes),
        ComparedCall(f"log ends of {len(topics):,} partitions", our_ends, ends),
        ComparedCall(
            f"preferred elections of {len(topics):,} partitions, none needed", our_elections, elections
        ),
    )


def by_ours(call: ComparedCall, bootstrap: str) -> Cost:
    async def run() -> int:
        fleet = BrokerFleet(settings_from({}, parse_addresses(bootstrap)))
        await fleet.open()
        try:
            return await call.ours(fleet)
        finally:
            await fleet.close()

    return measured(lambda: asyncio.run(run()))


def by_librdkafka(call: ComparedCall, bootstrap: str) -> Cost:
    return measured(lambda: call.librdkafka(witness.AdminClient({"bootstrap.servers": bootstrap})))


def measured(work: Callable[[], int]) -> Cost:
    wall, cpu = time.monotonic(), time.process_time()
    rows = work()
    return Cost(time.monotonic() - wall, time.process_time() - cpu, rows)


def fill(cluster: KafkaCluster, groups: Sequence[str], topics: Sequence[str]) -> None:
    """Topics of one partition each, and groups that have committed an offset on a few of them."""
    made = cluster.admin.create_topics([NewTopic(name, 1, 1) for name in topics], request_timeout=LIMIT)
    for ended in made.values():
        ended.result()
    rows = [Partition(topic, 0, 0) for topic in topics[:OFFSETS_OF_A_GROUP]]

    def committed(group: str) -> bool:
        wanted = [ConsumerGroupTopicPartitions(group, rows)]
        asked = cluster.admin.alter_consumer_group_offsets(wanted, request_timeout=20.0)
        return all(row.error is None for one in asked.values() for row in one.result().topic_partitions)

    for group in groups:  # the first waits until the topic of the offsets is there
        wait_until(partial(committed, group), f"{group} to commit", WAIT_SECONDS, passing=(KafkaException,))


def report(
    rounds: int, machine: Sequence[str], rows: Mapping[str, Sequence[Sequence[Cost]]]
) -> Iterator[str]:
    yield "# The calls that librdkafka offers too"
    yield ""
    yield f"`python -m benchmarks.librdkafka`, {datetime.now(UTC):%Y-%m-%d}, medians of {rounds} after a warm-up."
    yield "One process, one broker of real Kafka; each round connects anew. Seconds; the CPU time is that of all"
    yield "threads of the client, not of the broker. Ratio: ours to librdkafka's."
    yield ""
    yield from machine
    yield ""
    yield "| | ours, CPU | librdkafka, CPU | ratio | ours, wall | librdkafka, wall | ratio | answered, each |"
    yield f"|---|{'---:|' * 7}"
    for name, sides in rows.items():
        cells = []
        for unit in ("cpu", "wall"):
            ours, theirs = (median(getattr(cost, unit) for cost in side) for side in sides)
            cells += [f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.1f}"]
        counts = " and ".join(f"{side[0].rows:,}" for side in sides)
        yield f"| {name} | {' | '.join(cells)} | {counts} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.librdkafka")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--topics", type=int, default=3_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    config = {"offsets.topic.num.partitions": "1"}
    groups = [f"group-{number}" for number in range(options.groups)]
    topics = [f"topic-{number:04}" for number in range(options.topics)]
    with KafkaCluster(ClusterSpec(controllers=1, brokers=1, jvm=JVM_FLAGS, broker_config=config)) as cluster:
        machine = list(described(cluster.spec.version))
        fill(cluster, groups, topics)
        rows = {}
        for call in calls(groups, topics):
            asked = (call, cluster.bootstrap())
            turns = [(by_ours(*asked), by_librdkafka(*asked)) for _ in range(options.rounds + 1)]
            rows[call.name] = list(zip(*turns[1:], strict=True))
            print(call.name, *turns, sep="\n  ", flush=True)
    options.results.write_text("\n".join(report(options.rounds, machine, rows)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
