"""``python -m benchmarks.rescue [--partitions N] [--megabytes N]``: writes ``benchmarks/results/rescue.md``.

The same tails are read from the same broker, one after the other: by ``ktriage rescue read`` while the partitions
are offline, then by librdkafka's consumer, which keeps nothing, once that broker leads them. One of the two topics
is compressed. The rescue's time is that of the whole command: its start, the comparison with the plan before and
after, the checksums, and the files written to the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from benchmarks import measure
from benchmarks.machine_info import described
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.command_runner import CommandRunner
from tests.live.incident_steps import (
    elect_unclean,
    kill,
    produce,
    start,
    wait_all,
    wait_offline,
)
from tests.unit.cli.command_process import command_line

RESULTS = Path(__file__).parent.parent / "results" / "rescue.md"
PARTITIONS, MEGABYTES = 200, 4096
VALUE = 1000
"""Bytes of a record's value; half of them are random."""
CODECS = ("none", "lz4")
AIM = 0.6


class RescueSpeed(NamedTuple):
    """``size`` in bytes of the segment files, read by both; ``memory`` is the rescue's peak, in bytes."""

    codec: str
    size: int
    rescue_seconds: float
    consumer_seconds: float
    memory: int

    @property
    def ratio(self) -> float:
        return self.consumer_seconds / self.rescue_seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.rescue", description=__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of each of the two topics")
    parser.add_argument(
        "--megabytes", type=int, default=MEGABYTES, help="of values in each of the two topics"
    )
    options = parser.parse_args()
    spec = ClusterSpec(controllers=1)
    machine = list(described(spec.version))
    with tempfile.TemporaryDirectory() as home, KafkaCluster(spec) as cluster:
        _take_offline(cluster, options.partitions, options.megabytes << 20)
        console = CommandRunner(Path(home), cluster.bootstrap(), cluster.metadata.wait_caught_up)
        rescued = {codec: _rescue(console, codec) for codec in CODECS}
        kill(cluster, 2)
        elect_unclean(cluster, CODECS, 1)
        found = []
        for codec in CODECS:
            size, seconds, memory = rescued[codec]
            found.append(RescueSpeed(codec, size, seconds, _consume(cluster, codec), memory))
    text = "\n".join(_report(machine, options, found)) + "\n"
    RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(one.ratio >= AIM for one in found) else 1


def _take_offline(cluster: KafkaCluster, partitions: int, size: int) -> None:
    """Broker 1 has the tails; 2, which has one newer record, would be elected; 3, which led last, is dead."""
    for codec in CODECS:
        config = {"min.insync.replicas": "1", "compression.type": "producer"}
        cluster.client.create_topic(codec, [[1, 2, 3]] * partitions, config)
        produce(cluster, codec, 1, "common")
    kill(cluster, 2, 3)
    wait_all(cluster, CODECS, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    for codec in CODECS:
        _write_tails(cluster, codec, partitions, size)
    kill(cluster, 1)
    start(cluster, 2)
    elect_unclean(cluster, CODECS, 2)
    start(cluster, 3)
    wait_all(cluster, CODECS, lambda state: set(state.isr) == {2, 3}, "in sync on 2 and 3")
    for codec in CODECS:
        produce(cluster, codec, 1, "kept")
    kill(cluster, 2)
    wait_all(cluster, CODECS, lambda state: state.leader == 3, "led by 3")
    kill(cluster, 3)
    start(cluster, 1, 2)
    wait_offline(cluster, CODECS)


def _write_tails(cluster: KafkaCluster, codec: str, partitions: int, size: int) -> None:
    settings = {"acks": "1", "compression.type": codec, "linger.ms": 50, "batch.size": 500_000}
    producer = Producer(cluster.superuser_config() | settings)
    for number in range(size // VALUE):
        value = os.urandom(VALUE // 2) + bytes(VALUE // 2)
        while True:
            try:
                producer.produce(codec, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(300)
    if left:
        raise TimeoutError(f"{left} records were not written")


def _rescue(console: CommandRunner, codec: str) -> tuple[int, float, int]:
    """Bytes, seconds of the whole process, and its peak memory in bytes."""
    ended = console("plan", "--topic", codec, "--strategy", "aggressive", f"{codec}.json")
    if ended.status != 0:
        raise AssertionError(ended)
    words = ("rescue", "read", f"{codec}.json", "--to", codec, "--output", "json", *console.connection)
    done = measure.run(command_line("ktriage", *words), console.home)
    return int(json.loads(done.stdout)["bytes"]), done.seconds, done.peak


def _consume(cluster: KafkaCluster, codec: str) -> float:
    """Seconds from the consumer's start until the end of every partition, from the first offset of the tails on."""
    settings = {"group.id": "bench", "enable.auto.commit": False, "enable.partition.eof": True}
    left = set(cluster.metadata.partitions(codec))
    began = time.monotonic()
    consumer = Consumer(cluster.superuser_config() | settings)
    try:
        consumer.assign([TopicPartition(codec, partition, 1) for partition in left])
        while left:
            for message in consumer.consume(10_000, timeout=1):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition() or 0)
        return time.monotonic() - began
    finally:
        consumer.close()


def _report(
    machine: Iterable[str], options: argparse.Namespace, found: Iterable[RescueSpeed]
) -> Iterator[str]:
    yield "# Reading what an election cuts off"
    yield ""
    command = f"python -m benchmarks.rescue --partitions {options.partitions} --megabytes {options.megabytes}"
    yield (
        f"`{command}`, {datetime.now(UTC):%Y-%m-%d}. {options.megabytes:,} MiB of values in"
        f" {options.partitions} partitions, once for each compression; one broker."
    )
    yield from machine
    yield ""
    yield "| compression | bytes | rescue read | librdkafka's consumer | of its speed, aim 0.6 | peak memory |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for one in found:
        yield (
            f"| {one.codec} | {one.size / 2**20:,.0f} MiB | {one.rescue_seconds:.1f} s |"
            f" {one.consumer_seconds:.1f} s | {one.ratio:.2f} | {one.memory / 2**20:.0f} MiB |"
        )


if __name__ == "__main__":
    raise SystemExit(main())
