"""``ktriage groups show --all`` against ``kafka-consumer-groups --describe --all-groups``.

``python -m benchmarks.consumer_groups --groups 500 --partitions 3000``: every group has a committed offset on every
partition. Ours also compares each with its leader's log and says where its last record is.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks.bench_cluster import JVM_FLAGS, TOPIC, WAIT_SECONDS
from benchmarks.command_lines import javas, ours
from benchmarks.measure import BenchmarkError, Command, Measured, Side, side_by_side
from benchmarks.report import RatioTarget, compared
from testbed.kafka import ClusterSpec, KafkaCluster, TestbedError
from testbed.kafka.wait import wait_until

TARGET, AIM = 3.0, 1.0
COMMITTERS = 4
"""Groups that commit at the same time while the cluster is filled."""
HEAP = "3g"
"""For Kafka's tool, which holds every row."""
LIMIT_SECONDS = 300

Say = Callable[[str], None]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.consumer_groups", description=__doc__)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds after the warm-up")
    parser.add_argument(
        "--limit", type=int, default=LIMIT_SECONDS, metavar="SECONDS", help="how long one command may take"
    )
    parser.add_argument("--heap", default=HEAP, help="of the broker and of Kafka's tool, at most")
    parser.add_argument(
        "--no-warm-up", action="store_true", help="measure from the first round on, where each takes minutes"
    )
    options = parser.parse_args()
    rounds = Rounds(options.rounds, not options.no_warm_up, options.limit, options.heap)
    try:
        sides = measure(options.groups, options.partitions, rounds, _say)
    except (BenchmarkError, TestbedError) as error:
        _say(f"benchmarks: {error}")
        return 1
    print(
        f"{options.groups:,} groups, {options.partitions:,} partitions",
        *compared(sides, RatioTarget(TARGET, AIM)),
        sep="\n",
    )
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Rounds(NamedTuple):
    """How many are measured, whether another one comes first, the seconds for each command, and Java's heap."""

    measured: int
    warm_up: bool = True
    limit: float = LIMIT_SECONDS
    heap: str = HEAP


def measure(groups: int, partitions: int, rounds: Rounds, say: Say) -> Sequence[Side]:
    """Ours first. One broker and one controller: what is measured is asked of one coordinator by both."""
    config = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
    spec = ClusterSpec(controllers=1, brokers=1, jvm=(*JVM_FLAGS, f"-Xmx{rounds.heap}"), broker_config=config)
    with TemporaryDirectory(prefix="ktriage-bench-") as name, KafkaCluster(spec, say=say) as cluster:
        say(f"making {partitions:,} partitions, and {groups:,} groups that have read all of them")
        cluster.client.create_topic(TOPIC, [[1]] * partitions, timeout=WAIT_SECONDS)
        asyncio.run(_write(cluster, partitions))
        with ThreadPoolExecutor(COMMITTERS) as pool:
            list(pool.map(lambda number: _commit(cluster, f"group-{number}", partitions), range(groups)))
        commands = _commands(cluster, groups * partitions, rounds)
        return side_by_side(commands, rounds.measured, Path(name), say, warm_up=rounds.warm_up)


async def _write(cluster: KafkaCluster, partitions: int) -> None:
    """One record in each partition."""
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap(), linger_ms=50) as producer:
        sent = [await producer.send(TOPIC, b"record", partition=number) for number in range(partitions)]
        await asyncio.gather(*sent)


def _commit(cluster: KafkaCluster, group: str, partitions: int) -> None:
    consumer = Consumer(cluster.superuser_config() | {"group.id": group, "enable.auto.commit": False})
    offsets = [TopicPartition(TOPIC, number, 1, leader_epoch=0) for number in range(partitions)]
    try:
        wait_until(lambda: _coordinated(consumer), f"the coordinator of {group}", WAIT_SECONDS)
        ended = consumer.commit(offsets=offsets, asynchronous=False)
        if failed := next((one.error for one in ended if one.error is not None), None):
            raise BenchmarkError(f"{group} could not commit: {failed}")
    finally:
        consumer.close()


def _coordinated(consumer: Consumer) -> bool:
    """Whether its coordinator answers: a new one has yet to load the topic of the offsets."""
    try:
        consumer.committed([TopicPartition(TOPIC, 0)], timeout=5.0)
    except KafkaException:
        return False
    return True


def _commands(cluster: KafkaCluster, rows: int, rounds: Rounds) -> tuple[Command, Command]:
    server = ("--bootstrap-server", cluster.bootstrap())

    def ours_whole(done: Measured) -> None:
        _require("ktriage groups", done.stdout.count('"place":"common"'), rows)

    def javas_whole(done: Measured) -> None:
        _require("ConsumerGroupCommand", done.stdout.count(f" {TOPIC} "), rows)

    tool = javas(
        "kafka-consumer-groups", cluster.spec.version, *server, "--describe", "--all-groups", heap=rounds.heap
    )
    return (
        Command(
            "ktriage groups show --all",
            ours("ktriage", "groups", "show", *server, "--all", "--output", "json"),
            ours_whole,
            rounds.limit,
        ),
        Command("ConsumerGroupCommand --describe --all-groups", tool, javas_whole, rounds.limit),
    )


def _require(name: str, count: int, rows: int) -> None:
    if count != rows:
        raise BenchmarkError(f"{name} described {count:,} of {rows:,} committed offsets")


if __name__ == "__main__":
    sys.exit(main())
