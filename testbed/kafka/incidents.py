"""Incidents on a real cluster, step by step, up to the state in which an engineer is called.

Each needs an existing topic, all of its brokers running, and ``min.insync.replicas`` of at most 2. Each reports
every step to ``narrate`` and returns which brokers are alive and which records were acknowledged. Brokers are
killed by SIGKILL, so their shutdowns are unclean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32

from testbed.kafka.client import Acks
from testbed.kafka.cluster import KafkaCluster
from testbed.kafka.cluster_metadata import DescribedPartition
from testbed.kafka.connection import NoAnswer
from testbed.kafka.errors import TestbedError
from testbed.kafka.log_files import replica_directory
from testbed.kafka.wait import wait_until

Narrate = Callable[[str], None]


def silent(_line: str) -> None:
    """Reports nothing."""


@dataclass(frozen=True, slots=True)
class OfflineIncident:
    """The state an incident ends in: ``topic-partition`` is offline.

    ``alive`` and ``dead`` are its replicas' brokers. ``acks_all`` are the values acknowledged with acks=all, in
    order: a good recovery keeps them where a live replica has them. ``acks_one`` were acknowledged by the leader
    alone (acks=1).
    """

    topic: str
    partition: int
    alive: tuple[int, ...]
    dead: tuple[int, ...]
    acks_all: tuple[str, ...]
    acks_one: tuple[str, ...] = ()


def stale_long_tail(
    cluster: KafkaCluster, topic: str, partition: int = 0, narrate: Narrate = silent
) -> OfflineIncident:
    """The longest log has a divergent tail: a choice by length would destroy acknowledged records.

    Of the replicas [a, b, c], all with the same 1,000 records, a takes 500 alone and dies (log end 1500, last
    epoch 0); b is elected uncleanly and takes 300 with acks=all that c has too (log end 1300, last epoch 2); b
    and c die, a and b come back. Both report the same current leader epoch.
    """
    stage = _IncidentSteps(cluster, topic, partition, narrate)
    first, second, third = stage.replicas(3)
    acks_all = stage.produce(1000, "all", "common", f"brokers {first}, {second} and {third} hold it all")
    stage.kill(second, third)
    stage.wait_isr(first)
    tail = stage.produce(500, "1", "tail", f"only broker {first} holds them")
    stage.kill(first)
    stage.elect_alone(second)
    stage.start(third)
    stage.wait_isr(second, third)
    acks_all += stage.produce(300, "all", "kept", f"brokers {second} and {third} hold them")
    stage.kill(second)
    cluster.metadata.wait_leader(topic, partition, third)
    stage.wait_epoch_on_disk(third)
    stage.kill(third)
    stage.start(first, second)
    stage.wait_offline(f"{first} has the longer log, {second} the newer records, {third} stays dead")
    return OfflineIncident(topic, partition, (first, second), (third,), acks_all, tail)


def isr_dead(
    cluster: KafkaCluster,
    topic: str,
    partitions: Sequence[int] = (0,),
    *,
    survivor: int = 3,
    records: int = 100,
    narrate: Narrate = silent,
) -> tuple[OfflineIncident, ...]:
    """Every ISR member is dead; ``survivor``, which fell out of the ISR before, is alive with an older log.

    ``records`` are written to each partition before, and again after it fell out. All partitions must have the
    survivor among their replicas, and the dead ones are all other replicas of any of them.
    """
    found = cluster.metadata.partitions(topic)
    members = {partition: found[partition].replicas for partition in partitions}
    if not members or not all(survivor in replicas and len(replicas) > 1 for replicas in members.values()):
        raise TestbedError(
            f"broker {survivor} must be one of at least two replicas of each partition of {topic}"
        )
    dead = tuple(sorted({broker for replicas in members.values() for broker in replicas} - {survivor}))
    stage = _IncidentSteps(cluster, topic, min(members), narrate)
    before = stage.produce_each(members, records, "common", "all replicas hold them")
    stage.kill(survivor)
    stage.wait_each(
        members, lambda state: survivor not in state.isr and state.leader != -1, "without the survivor"
    )
    after = stage.produce_each(members, records, "kept", f"broker {survivor} misses them")
    stage.kill(*dead)
    stage.start(survivor)
    stage.wait_each(members, lambda state: state.leader == -1, "offline")
    narrate(
        f"{len(members)} partitions of {topic} are offline: only broker {survivor}'s older logs are alive"
    )
    return tuple(
        OfflineIncident(
            topic,
            partition,
            (survivor,),
            tuple(broker for broker in replicas if broker != survivor),
            before[partition] + after[partition],
        )
        for partition, replicas in members.items()
    )


def failed_disk(
    cluster: KafkaCluster, broker: int, log_dir: int = 1, narrate: Narrate = silent
) -> frozenset[str]:
    """``rm -rf`` of a log dir under a running broker; returns the ``topic-partition`` names that it had.

    The broker notices at its next write there, at the latest with its high watermark checkpoint within 5 s (the
    default) if the log dir holds a partition. Losing log dir 0, which has the metadata log, stops the broker.
    """
    node = cluster.node(broker)
    replicas = frozenset(
        path.name
        for path in node.log_dirs[log_dir].iterdir()
        if path.is_dir() and not path.name.startswith("__cluster") and not path.name.endswith("-delete")
    )
    node.remove_log_dir(log_dir)
    narrate(f"log dir {log_dir} of broker {broker} is gone, with {len(replicas)} replicas")
    return replicas


def elect_unclean(cluster: KafkaCluster, topic: str, partition: int) -> None:
    """An unclean election, as with Kafka's own tool; returns when the partition has a leader.

    Repeated while no broker answers or the controller is not ready. Raises TimedOut with the last answer.
    """
    name = f"{topic}-{partition}"

    def elected() -> bool:
        answer = cluster.metadata.ask(_unclean(topic, partition), ElectLeadersResponse)
        results = [p for t in answer.replica_election_results for p in t.partition_result]
        codes = [answer.error_code, *(result.error_code for result in results)]
        # An earlier attempt without an answer may have been done: then no election is needed any more.
        refused = [code.name for code in codes if code not in (ErrorCode.none, ErrorCode.election_not_needed)]
        if refused:
            raise NoAnswer(f"unclean election of {name}: {', '.join(refused)}")
        return cluster.metadata.partition(topic, partition).leader != -1

    wait_until(elected, f"an unclean election of {name}", 60.0, passing=(NoAnswer, KeyError))


def _unclean(topic: str, partition: int) -> ElectLeadersRequest:
    asked = TopicPartitions(topic=TopicName(topic), partitions=(i32(partition),))
    return ElectLeadersRequest(election_type=i8(1), topic_partitions=(asked,))


class _IncidentSteps:
    """One partition. Each method makes a step, waits until it has taken effect, and reports it."""

    def __init__(self, cluster: KafkaCluster, topic: str, partition: int, narrate: Narrate) -> None:
        self.cluster = cluster
        self.topic = topic
        self.partition = partition
        self.narrate = narrate
        self._name = f"{topic}-{partition}"

    def replicas(self, count: int | None) -> tuple[int, ...]:
        found = self.cluster.metadata.partition(self.topic, self.partition).replicas
        if count is not None and len(found) != count:
            raise TestbedError(f"{self._name} has the replicas {found}; this incident needs {count}")
        return found

    def produce(self, count: int, acks: Acks, prefix: str, where: str) -> tuple[str, ...]:
        sent = self.cluster.client.produce(self.topic, self.partition, count, acks=acks, prefix=prefix)
        if sent.errors:
            took = f"took {len(sent.acknowledged)} of {count} records"
            raise TestbedError(f"{self._name} {took}: {', '.join(sorted(sent.errors))}")
        self.narrate(f"{count:,} records acknowledged by {self._name} with acks={acks}: {where}")
        return sent.acknowledged

    def wait_epoch_on_disk(self, broker: int) -> None:
        """Waits until the leader has written its epoch down: killed before, its disk would not know that it led."""
        epoch = self.cluster.metadata.partition(self.topic, self.partition).leader_epoch
        directory = replica_directory(self.cluster.node(broker), self.topic, self.partition)
        checkpoint = directory / "leader-epoch-checkpoint"
        wait_until(
            lambda: any(line.split()[:1] == [str(epoch)] for line in checkpoint.read_text().splitlines()[2:]),
            f"epoch {epoch} of {self._name} on broker {broker}'s disk",
        )

    def produce_each(
        self, partitions: Iterable[int], count: int, prefix: str, where: str
    ) -> dict[int, tuple[str, ...]]:
        done = self.cluster.client.produce_each(self.topic, partitions, count, prefix=prefix)
        self.narrate(
            f"{count:,} records acknowledged by each of {len(done)} partitions of {self.topic}: {where}"
        )
        return {partition: sent.acknowledged for partition, sent in done.items()}

    def wait_each(
        self, partitions: Iterable[int], condition: Callable[[DescribedPartition], bool], what: str
    ) -> None:
        expected = frozenset(partitions)

        def fulfilled() -> bool:
            states = self.cluster.metadata.partitions(self.topic)
            return all(condition(state) for number, state in states.items() if number in expected)

        what = f"{len(expected)} partitions of {self.topic} to be {what}"
        wait_until(fulfilled, what, 120.0, passing=(NoAnswer,))

    def kill(self, *brokers: int) -> None:
        for broker in brokers:
            self.cluster.node(broker).kill()
        self.narrate(f"{_listed(brokers)} killed")
        if any(node.is_running for node in self.cluster.brokers.values()):
            self.cluster.metadata.wait_fenced(*brokers)

    def start(self, *brokers: int) -> None:
        for broker in brokers:
            self.cluster.node(broker).start()
        self.cluster.metadata.wait_live(brokers)
        self.narrate(f"{_listed(brokers)} back")

    def elect_alone(self, broker: int) -> None:
        self.start(broker)
        self.cluster.metadata.wait_offline(self.topic, self.partition)
        elect_unclean(self.cluster, self.topic, self.partition)
        self.cluster.metadata.wait_leader(self.topic, self.partition, broker)
        self.narrate(f"broker {broker} elected uncleanly to lead {self._name}")

    def wait_isr(self, *brokers: int) -> None:
        self.cluster.metadata.wait_isr(self.topic, self.partition, brokers)

    def wait_offline(self, how: str) -> None:
        self.cluster.metadata.wait_offline(self.topic, self.partition)
        self.narrate(f"{self._name} is offline: {how}")


def _listed(brokers: Sequence[int]) -> str:
    names = " and ".join(map(str, brokers))
    return f"brokers {names} are" if len(brokers) > 1 else f"broker {names} is"
