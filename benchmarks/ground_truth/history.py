"""One random history of several topics: the same faults of brokers for all, different records in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i32Timedelta

from benchmarks.ground_truth.disk_records import DiskReplica, read_disk
from benchmarks.ground_truth.promises import TopicHistory
from benchmarks.ground_truth.writers import Writers
from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.cluster_metadata import DescribedPartition
from testbed.kafka.connection import NoAnswer
from testbed.kafka.errors import TestbedError
from tests.live.incident_steps import assign, delete_records, kill, start

UNCLEAN = i8(1)
COMPACT = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}


class IncidentHistory:
    """Topics of one partition each, and what happens to them and to the brokers. ``steps`` lists it in words."""

    def __init__(self, cluster: KafkaCluster, seed: int, topics: int) -> None:
        self.cluster = cluster
        self.random = Random(seed)  # noqa: S311 - the seed determines the history
        self.steps: list[str] = []
        wanted = [self._topic(f"s{seed}-{number}") for number in range(topics)]
        self.topics = [topic for topic, _ in wanted]
        self._create([new for _, new in wanted])
        self._writers = Writers(cluster, self.random, f"s{seed}")
        self._paused: set[int] = set()

    @property
    def running(self) -> list[int]:
        return [id for id, node in self.cluster.brokers.items() if node.is_running and id not in self._paused]

    def states(self) -> dict[str, DescribedPartition]:
        """Of each topic that is known."""
        found = self.cluster.metadata.partitions_of(topic.name for topic in self.topics)
        return {name: partitions[0] for name, partitions in found.items() if 0 in partitions}

    def run(self) -> None:
        """To the end: some brokers run, and most partitions have no leader."""
        self._writers.write(self.topics)
        self._writers.transactions(self.random.sample(self.topics, 3))
        for _ in range(self.random.randrange(2, 6)):
            self._event()
            led = self._led()
            if led and self.random.random() < 0.8:
                self._writers.write(led)
            if led and self.random.random() < 0.3:
                self._writers.transactions(self.random.sample(led, min(3, len(led))))
        self._blackout()

    def _create(self, topics: list[NewTopic]) -> None:
        for done in self.cluster.admin.create_topics(topics).values():
            done.result(30.0)

        def led() -> bool:
            return len(self._led()) == len(self.topics)

        wait_until(led, "the topics to have leaders", 60.0, passing=(NoAnswer,))

    def _topic(self, name: str) -> tuple[TopicHistory, NewTopic]:
        """With random replicas and a random configuration."""
        replicas = self.random.sample(list(self.cluster.spec.broker_ids), self.random.choice((2, 3, 3, 3, 4)))
        compacted = self.random.random() < 0.2
        config = {
            "min.insync.replicas": self.random.choice("1222"),
            "unclean.leader.election.enable": "true" if self.random.random() < 0.1 else "false",
            **(COMPACT if compacted else {}),
        }
        unclean = config["unclean.leader.election.enable"] == "true"
        return (
            TopicHistory(name, compacted=compacted, unclean=unclean),
            NewTopic(name, num_partitions=1, replica_assignment=[replicas], config=config),
        )

    def _event(self) -> None:
        possible: list[tuple[int, Callable[[], str]]] = [
            (6, self._kill),
            (1, self._stop),
            (2, self._pause),
            (5, self._start),
            (3, self._elect),
            (3, self._delete),
            (1, self._expire),
            (1, self._empty),
            (1, self._lower),
            (2, self._move),
        ]
        weights = [weight for weight, _ in possible]
        [(_, event)] = self.random.choices(possible, weights)
        with suppress(
            TestbedError, KafkaException, AssertionError
        ):  # it was not possible now, or not for all topics
            self.steps.append(event() or event.__name__)

    def _led(self) -> list[TopicHistory]:
        states = self.states()
        return [topic for topic in self.topics if topic.name in states and states[topic.name].leader >= 0]

    def _kill(self) -> str:
        running = self.running
        if len(running) < 2:
            return self._start()
        brokers = self.random.sample(running, self.random.randrange(1, len(running)))
        kill(self.cluster, *brokers)
        return f"kill {brokers}"

    def _stop(self) -> str:
        broker = self.random.choice(self.running)
        if len(self.running) > 1:
            self.cluster.node(broker).stop()
            self.cluster.metadata.wait_fenced(broker)
        return f"stop {broker}"

    def _pause(self) -> str:
        """The broker hangs until others lead, and then continues."""
        if len(self.running) < 2:
            return self._start()
        broker = self.random.choice(self.running)
        self.cluster.node(broker).pause()
        self._paused.add(broker)
        try:
            self.cluster.metadata.wait_fenced(broker)
            self._writers.write(self._led())
        finally:
            self.cluster.node(broker).resume()
            self._paused.discard(broker)
        self.cluster.metadata.wait_live([broker])
        return f"pause {broker}"

    def _start(self) -> str:
        dead = [id for id, node in self.cluster.brokers.items() if not node.is_running]
        if not dead:
            return self._kill()
        brokers = self.random.sample(dead, self.random.randrange(1, len(dead) + 1))
        start(self.cluster, *brokers)
        return f"start {brokers}"

    def _elect(self) -> str:
        """An unclean election as operators do it today: the first live replica in the assignment leads."""
        offline = [topic for topic in self.topics if topic not in self._led()]
        chosen = [topic for topic in offline if self.random.random() < 0.7]
        for topic in chosen:
            topic.unclean = True
        elect_whoever_is_alive(self.cluster, [topic.name for topic in chosen])
        return f"elect {len(chosen)}"

    def _delete(self) -> str:
        done = 0
        states = self.states()
        for topic in self._led():
            leader = states[topic.name].leader
            disk = read_disk(self.cluster.node(leader), topic.name)
            if topic.compacted or disk is None or not disk.places or self.random.random() < 0.6:
                continue
            before = self.random.randint(disk.start, max(offset for _, offset in disk.places) + 1)
            # From now on, also if no answer comes.
            topic.deleted |= {r.value for (_, offset), r in disk.records.items() if offset < before}
            with suppress(AssertionError, TestbedError):
                delete_records(self.cluster, topic.name, before)
                done += 1
        return f"delete records of {done}"

    def _expire(self) -> str:
        """Retention takes the closed segments of some topics."""
        chosen = [topic for topic in self._led() if not topic.compacted and self.random.random() < 0.3]
        for topic in chosen:
            for disk in self._disks(topic).values():
                topic.deleted |= {record.value for record in disk.records.values()}
        self._configure(chosen, "retention.ms", "1")
        self._configure(chosen, "retention.ms", "-1")
        return f"expire {len(chosen)}"

    def _empty(self) -> str:
        """A dead broker gets an empty disk."""
        dead = [id for id, node in self.cluster.brokers.items() if not node.is_running]
        if not dead:
            return self._kill()
        broker = self.random.choice(dead)
        self.cluster.replace_log_dir(broker, 0)
        for topic in self.topics:
            topic.emptied.add(broker)
        return f"empty {broker}"

    def _lower(self) -> str:
        chosen = [topic for topic in self.topics if self.random.random() < 0.4]
        for topic in chosen:
            topic.lowered = True
        self._configure(chosen, "min.insync.replicas", "1")
        self._writers.write(self._led())
        self._configure(chosen, "min.insync.replicas", "2")
        return f"lower min ISR of {len(chosen)}"

    def _move(self) -> str:
        moves: dict[str, set[int]] = {}
        states = self.states()
        for topic in self._led():
            if self.random.random() < 0.7:
                continue
            state = states[topic.name]
            wanted = self.random.sample(list(self.cluster.spec.broker_ids), len(state.replicas))
            if not set(wanted) <= set(self.running) or len(state.isr) < len(state.replicas):
                continue
            topic.moved = True
            assign(self.cluster, self.running[0], topic.name, 0, wanted)
            moves[topic.name] = set(wanted)

        def moved() -> bool:
            found = self.states()
            return all(set(found[name].replicas) == set(found[name].isr) == to for name, to in moves.items())

        wait_until(moved, "the replicas to move", passing=(NoAnswer,))
        return f"move {len(moves)}"

    def _configure(self, topics: Iterable[TopicHistory], key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        changed = [
            ConfigResource(ResourceType.TOPIC, topic.name, incremental_configs=[entry]) for topic in topics
        ]
        if not changed:
            return
        for done in self.cluster.admin.incremental_alter_configs(changed).values():
            done.result(15.0)
        self.cluster.metadata.wait_caught_up()

    def _blackout(self) -> None:
        """Brokers die one after the other while records are written; then some of them come back."""
        order = self.random.sample(self.running, len(self.running))
        while order:
            dying = [order.pop() for _ in range(min(len(order), self.random.choice((1, 1, 2))))]
            kill(self.cluster, *dying)
            if order and self.random.random() < 0.7:
                self._writers.write(self._led())
        back = self.random.sample(list(self.cluster.spec.broker_ids), self.random.choice((1, 2, 2, 3)))
        start(self.cluster, *back)
        # Until the dead ones are fenced, they lead: a broker may start sooner than their sessions end.
        self.cluster.metadata.wait_fenced(*set(self.cluster.brokers).difference(self.running))
        self.cluster.metadata.wait_caught_up()
        self.steps.append(f"blackout, {back} return")

    def _disks(self, topic: TopicHistory) -> dict[int, DiskReplica]:
        found = ((id, read_disk(node, topic.name)) for id, node in self.cluster.brokers.items())
        return {id: disk for id, disk in found if disk is not None}


def elect_whoever_is_alive(
    cluster: KafkaCluster, topics: Iterable[str], partitions: Iterable[int] = (0,)
) -> None:
    """An unclean election of all of them; those with a leader, or without a live replica, do not change."""
    numbers = tuple(i32(number) for number in partitions)
    request = ElectLeadersRequest(
        election_type=UNCLEAN,
        topic_partitions=tuple(
            TopicPartitions(topic=TopicName(topic), partitions=numbers) for topic in topics
        ),
        timeout=i32Timedelta.parse(timedelta(seconds=15)),
    )
    if request.topic_partitions:
        cluster.metadata.ask(request, ElectLeadersResponse)
