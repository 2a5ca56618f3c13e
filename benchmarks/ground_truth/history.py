"""One random history of several topics: the same faults of brokers for all, other records and settings in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.alter_replica_log_dirs.v2.response import AlterReplicaLogDirsResponse
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i32Timedelta

from benchmarks.ground_truth.configuration import MIN_ISR, Configuration
from benchmarks.ground_truth.disk_records import DiskReplica, read_disk
from benchmarks.ground_truth.promises import TopicHistory
from benchmarks.ground_truth.writers import Writers
from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.cluster_metadata import DescribedPartition
from testbed.kafka.connection import Connection, NoAnswer
from testbed.kafka.errors import TestbedError, TimedOut
from testbed.kafka.links import CLIENTS
from tests.live.incident_steps import assign, delete_records

UNCLEAN = i8(1)
COMPACT = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
NOT_NOW = (TestbedError, KafkaException, AssertionError, NoAnswer, TimeoutError)
"""What is raised where a step is not possible now, or not for all topics."""
CROWD, LARGE_CROWD = 150, 900
"""Partitions of the topic with many, which are changed in one metadata delta; the more, the longer it takes."""
SAMPLE, LARGE_SAMPLE = 24, 300
MORE_RETURN = 0.75
"""How likely more brokers return before the rest does, and everything is judged again."""
SESSIONS = 0.7
"""The part of its session for which a broker hears nothing, and stays in the ISR."""


class Only(StrEnum):
    """One kind of history alone.

    - RECREATE: topics are deleted and made again with another min.insync.replicas or none.
    - BROKER_CONFIG: topics have no min.insync.replicas of their own, and single brokers get one.
    - FAILOVER: min.insync.replicas is raised, and the new leader hears of it together with its election.
    - CUT_OFF: the last leader does not die: it is cut off from the controller and the other brokers.
    - TOPIC_CONFIG: min.insync.replicas is raised and lowered, and everything is judged without the metadata log.
    """

    RECREATE = "recreate"
    BROKER_CONFIG = "broker-config"
    FAILOVER = "failover"
    CUT_OFF = "cut-off"
    TOPIC_CONFIG = "topic-config"


class IncidentHistory:
    """Topics, and what happens to them and to the brokers. ``steps`` lists it in words.

    The brokers die several times (:meth:`next_blackout`); what was before is the past of what comes after.
    """

    def __init__(self, cluster: KafkaCluster, seed: int, topics: int, only: Only | None = None) -> None:
        self.cluster = cluster
        self.random = Random(seed)  # noqa: S311 - the seed determines the history
        self.steps: list[str] = []
        self.only = only
        self.configuration = Configuration(cluster)
        self.cut_off: dict[int, dict[str, tuple[int, ...]]] = {}
        """Brokers that hear nothing of the controller, and the partitions that they led when they last did."""
        self.topics: list[TopicHistory] = []
        self.lives: list[TopicHistory] = []
        self.writers = Writers(cluster, self.random, f"s{seed}")
        crowd = self.random.random() < 0.3 or only is Only.FAILOVER
        self._create(
            [self._topic(f"s{seed}-{number}", crowd=crowd and number == 0) for number in range(topics)]
        )

    @property
    def running(self) -> list[int]:
        """The brokers that run, and are not paused or cut off."""
        return [
            id
            for id, node in self.cluster.brokers.items()
            if node.is_running and not node.is_paused and id not in self.cut_off
        ]

    @property
    def down(self) -> list[int]:
        """The brokers that do not run, or are paused."""
        return [id for id, node in self.cluster.brokers.items() if not node.is_running or node.is_paused]

    def states(self) -> dict[tuple[str, int], DescribedPartition]:
        """Of each judged partition that is known; also notes which have a leader."""
        found = self.cluster.metadata.partitions_of(topic.name for topic in self.topics)
        for topic in self.topics:
            known = found.get(topic.name, {})
            topic.led = tuple(p for p in topic.partitions if p in known and known[p].leader >= 0)
        return {
            (topic.name, p): found[topic.name][p]
            for topic in self.topics
            for p in topic.partitions
            if p in found.get(topic.name, {})
        }

    def next_blackout(self) -> Iterator[None]:
        """To its end: some brokers have come back, and most partitions have no leader. Before that it stops after
        steps at which some brokers answer, and some partitions have no leader.
        """
        self.writers.write(self._led())
        self.writers.transactions(self.random.sample(self.topics, 3))
        for _ in range(0 if self.only is Only.FAILOVER else self.random.randrange(1, 5)):
            self._event()
            led = self._led()
            if led and self.random.random() < 0.7:
                self.writers.write(led)
            if led and self.random.random() < 0.2:
                self.writers.transactions(self.random.sample(led, min(3, len(led))))
        failover = 1.0 if self.only is Only.FAILOVER else 0.12 if self.only is None else 0.0
        if self.random.random() >= failover or not self._failover():
            yield from self._blackout()

    def write_to_cut_off(self) -> None:
        """Clients that reach a broker which is cut off go on writing to it, as to the leader that it says it is."""
        for broker, led in self.cut_off.items():
            topics = [topic for topic in self.topics if led.get(topic.name)]
            for topic in topics:
                topic.led = led[topic.name]
            self.writers.write(topics, broker)
        if self.cut_off:
            self.steps.append(f"clients write to {sorted(self.cut_off)}, cut off")

    def all_return(self) -> None:
        """Every link is mended and every broker runs."""
        self._mend()
        for broker in [id for id, node in self.cluster.brokers.items() if not node.is_running]:
            self.configuration.starts(broker, self.topics)
        self.cluster.bring_all_up()

    def disks(self, topic: TopicHistory, partition: int) -> dict[int, DiskReplica]:
        found = ((id, read_disk(node, topic.name, partition)) for id, node in self.cluster.brokers.items())
        return {id: disk for id, disk in found if disk is not None and topic.is_of_this_life(disk)}

    def places(self) -> Iterator[tuple[TopicHistory, int]]:
        """Every judged partition."""
        return ((topic, partition) for topic in self.topics for partition in topic.partitions)

    def mark_unclean(self, topic: TopicHistory) -> None:
        topic.unclean, topic.unclean_at = True, self.writers.sent

    def _create(self, topics: Sequence[tuple[TopicHistory, NewTopic]]) -> None:
        for done in self.cluster.admin.create_topics([new for _, new in topics]).values():
            done.result(30.0)
        for topic, _ in topics:
            self.topics.append(topic)
            self.lives.append(topic)
        self.configuration.observe(self.topics)

        def led() -> bool:
            states = self.states()
            return all(
                (topic.name, p) in states and states[topic.name, p].leader >= 0
                for topic, _ in topics
                for p in topic.partitions
            )

        wait_until(led, "the topics to have leaders", 60.0, passing=(NoAnswer,))

    def _topic(self, name: str, *, crowd: bool = False) -> tuple[TopicHistory, NewTopic]:
        """With random replicas and a random configuration."""
        pick = self.random
        many, sample = (LARGE_CROWD, LARGE_SAMPLE) if self.only is Only.FAILOVER else (CROWD, SAMPLE)
        count = many if crowd else pick.choice((1, 1, 1, 3))
        brokers = self.running or list(self.cluster.spec.broker_ids)
        size = min(len(brokers), 2 if self.only is Only.FAILOVER else pick.choice((2, 2, 3, 3, 3, 3, 4, 5)))
        first = pick.sample(brokers, size)
        assignment = [
            first if crowd or pick.random() < 0.5 else pick.sample(brokers, size) for _ in range(count)
        ]
        compacted = self.only is None and pick.random() < 0.15
        min_isr = self._min_isr()
        unclean = self.only is None and pick.random() < 0.07
        config = {
            **({} if min_isr is None else {MIN_ISR: str(min_isr)}),
            "unclean.leader.election.enable": "true" if unclean else "false",
            **(COMPACT if compacted else {}),
        }
        topic = TopicHistory(
            name,
            partitions=tuple(sorted(pick.sample(range(count), min(count, sample)))),
            count=count,
            replicas=frozenset(broker for replicas in assignment for broker in replicas),
            compacted=compacted,
            unclean=unclean,
            min_isr=min_isr,
        )
        return topic, NewTopic(name, num_partitions=count, replica_assignment=assignment, config=config)

    def _min_isr(self) -> int | None:
        if self.only is Only.BROKER_CONFIG:
            return None
        if self.only in {Only.FAILOVER, Only.TOPIC_CONFIG}:
            return 1
        return self.random.choice((None, None, None, 1, 1, 2, 2, 2, 2, 3, 4))

    def _event(self) -> None:
        everything: list[tuple[int, Callable[[], str]]] = [
            (5, self._kill),
            (2, self._stop),
            (4, self._pause),
            (5, self._start),
            (3, self._elect),
            (2, self._delete),
            (1, self._expire),
            (1, self._empty),
            (3, self._configure_topics),
            (2, self._configure_broker),
            (1, self._configure_cluster),
            (2, self._configure_file),
            (2, self._move),
            (1, self._move_log_dirs),
            (3, self._recreate),
            (4, self._cut),
        ]
        alone = {
            Only.RECREATE: [(1, self._recreate)],
            Only.BROKER_CONFIG: [(2, self._configure_broker), (1, self._configure_file)],
            Only.CUT_OFF: [(1, self._start), (1, self._pause)],
            Only.TOPIC_CONFIG: [(1, self._configure_topics)],
        }
        possible = everything if self.only is None else alone[self.only]
        [(_, event)] = self.random.choices(possible, [weight for weight, _ in possible])
        try:
            self.steps.append(event())
        except NOT_NOW as error:
            self.steps.append(f"not {event.__name__.strip('_')} ({type(error).__name__})")

    def _led(self) -> list[TopicHistory]:
        self.states()
        return [topic for topic in self.topics if topic.led]

    def _kill(self) -> str:
        running = self.running
        if len(running) < 2:
            return self._start()
        brokers = self.random.sample(running, self.random.randrange(1, len(running)))
        self._take_down(brokers, "kill")
        return f"kill {brokers}"

    def _stop(self) -> str:
        if len(self.running) < 2:
            return self._start()
        broker = self.random.choice(self.running)
        self._take_down([broker], "stop")
        return f"stop {broker}"

    def _take_down(self, brokers: Iterable[int], way: str) -> None:
        """``way``: kill, stop (a controlled shutdown) or pause."""
        taken = list(brokers)
        nodes = [self.cluster.node(broker) for broker in taken]
        with ThreadPoolExecutor(len(nodes)) as pool:
            for done in [pool.submit(getattr(node, way)) for node in nodes]:
                done.result()
        if self.running:
            self.cluster.metadata.wait_fenced(*taken)

    def _pause(self) -> str:
        """The broker hangs until others lead, and then continues."""
        if len(self.running) < 2:
            return self._start()
        broker = self.random.choice(self.running)
        self._take_down([broker], "pause")
        try:
            self.writers.write(self._led())
        finally:
            self.cluster.node(broker).resume()
        self.cluster.metadata.wait_live([broker])
        return f"pause {broker}"

    def _start(self) -> str:
        if not self.down:
            return self._kill()
        brokers = self.random.sample(self.down, self.random.randrange(1, len(self.down) + 1))
        self._bring_up(brokers)
        return f"start {brokers}"

    def _bring_up(self, brokers: Sequence[int]) -> None:
        for broker in brokers:
            node = self.cluster.node(broker)
            if not node.is_running:
                self.configuration.starts(broker, self.topics)
            node.resume()
            node.start()
        self.cluster.metadata.wait_live(brokers)

    def _elect(self) -> str:
        """An unclean election as operators do it today: the first live replica in the assignment leads."""
        offline = [(name, p) for (name, p), state in self.states().items() if state.leader < 0]
        chosen = [place for place in offline if self.random.random() < 0.7]
        for topic in self.topics:
            if any(name == topic.name for name, _ in chosen):
                self.mark_unclean(topic)
        by_topic: dict[str, list[int]] = {}
        for name, partition in chosen:
            by_topic.setdefault(name, []).append(partition)
        elect_whoever_is_alive(self.cluster, by_topic)
        return f"elect {len(chosen)}"

    def _delete(self) -> str:
        done = 0
        states = self.states()
        for topic, partition in self.places():
            state = states.get((topic.name, partition))
            if (
                state is None
                or state.leader not in self.running
                or topic.compacted
                or self.random.random() < 0.8
            ):
                continue
            disk = read_disk(self.cluster.node(state.leader), topic.name, partition)
            if disk is None or not disk.places:
                continue
            before = self.random.randint(disk.start, max(offset for _, offset in disk.places) + 1)
            # From now on, also if no answer comes.
            topic.deleted |= {r.value for (_, offset), r in disk.records.items() if offset < before}
            with suppress(*NOT_NOW):
                delete_records(self.cluster, topic.name, before, partition)
                done += 1
        return f"delete records of {done}"

    def _expire(self) -> str:
        """Retention takes the closed segments of some topics."""
        chosen = [topic for topic in self._led() if not topic.compacted and self.random.random() < 0.2]
        for topic in chosen:
            topic.deleted |= set(topic.sent)
        for value in (1, -1):
            self.configuration.alter_topics(chosen, "retention.ms", [value] * len(chosen))
        return f"expire {len(chosen)}"

    def _empty(self) -> str:
        """A dead broker gets an empty disk in place of one of its two."""
        dead = [id for id, node in self.cluster.brokers.items() if not node.is_running]
        if not dead:
            return self._kill()
        broker, index = self.random.choice(dead), self.random.randrange(self.cluster.spec.log_dirs)
        self.cluster.replace_log_dir(broker, index)
        for topic in self.topics:
            topic.emptied.add(broker)
        return f"empty log dir {index} of {broker}"

    def _configure_topics(self) -> str:
        """Some topics get another min.insync.replicas or lose theirs, and sometimes get the old one back."""
        chosen = [topic for topic in self.topics if self.random.random() < 0.4]
        before = [topic.min_isr for topic in chosen]
        self.configuration.set_topics(chosen, [self._min_isr() for _ in chosen])
        if self.random.random() < 0.5:
            self.writers.write(self._led())
            self.configuration.set_topics(chosen, before)
            return f"min ISR of {len(chosen)} changed and set back"
        return f"min ISR of {len(chosen)} changed"

    def _configure_broker(self) -> str:
        broker = self.random.choice(self.running)
        value = self.random.choice((None, 1, 2, 2, 3))
        self.configuration.set_broker(broker, value, self.topics)
        return f"min ISR of broker {broker}: {value}"

    def _configure_cluster(self) -> str:
        value = self.random.choice((None, 1, 1, 2, 3))
        self.configuration.set_cluster(value, self.topics)
        return f"min ISR of all brokers: {value}"

    def _configure_file(self) -> str:
        """Takes effect when the broker starts the next time."""
        broker = self.random.choice([*self.cluster.brokers])
        value = self.random.choice((1, 1, 2, 3))
        self.configuration.set_file(broker, value)
        return f"min ISR in the file of {broker}: {value}"

    def _move(self) -> str:
        moves: dict[tuple[str, int], set[int]] = {}
        states = self.states()
        for topic, partition in self.places():
            state = states.get((topic.name, partition))
            if state is None or self.random.random() < 0.8 or len(state.isr) < len(state.replicas):
                continue
            wanted = self.random.sample(list(self.cluster.spec.broker_ids), len(state.replicas))
            if not set(wanted) <= set(self.running):
                continue
            topic.moved = True
            topic.replicas |= set(wanted)
            assign(self.cluster, self.running[0], topic.name, partition, wanted)
            moves[topic.name, partition] = set(wanted)
        self.configuration.observe(self.topics)

        def moved() -> bool:
            found = self.states()
            return all(set(found[at].replicas) == set(found[at].isr) == to for at, to in moves.items())

        wait_until(moved, "the replicas to move", passing=(NoAnswer, KeyError))
        return f"move {len(moves)}"

    def _move_log_dirs(self) -> str:
        """Some replicas of one broker move to its other log dir."""
        broker = self.random.choice(self.running)
        node = self.cluster.node(broker)
        target = self.random.choice(node.log_dirs)
        chosen = [topic for topic in self.topics if broker in topic.replicas and self.random.random() < 0.5]
        moved = tuple(
            AlterReplicaLogDirTopic(
                name=TopicName(topic.name), partitions=tuple(i32(p) for p in topic.partitions)
            )
            for topic in chosen
        )
        request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=str(target), topics=moved),))
        with Connection(node.port, None, 15.0) as connection:
            connection.ask(request, AlterReplicaLogDirsResponse)
        return f"move {len(chosen)} topics to {target.name} of {broker}"

    def _recreate(self) -> str:
        """Some topics are deleted and made again by the same name, with another min.insync.replicas or none."""
        chosen = [topic for topic in self.topics if topic.count < CROWD and self.random.random() < 0.4]
        for done in self.cluster.admin.delete_topics([topic.name for topic in chosen]).values():
            done.result(30.0)
        self.topics = [topic for topic in self.topics if topic not in chosen]

        def gone() -> bool:
            return not any(self.cluster.metadata.partitions_of(topic.name for topic in chosen).values())

        wait_until(gone, "the topics to be deleted", passing=(NoAnswer,))
        again = []
        for topic in chosen:
            new, request = self._topic(topic.name)
            new.ghosts = topic.ghosts | ({topic.min_isr} if topic.min_isr is not None else set())
            new.once_compacted = topic.compacted or topic.once_compacted
            again.append((new, request))
        self._create(again)
        return f"recreate {len(chosen)}"

    def _cut(self) -> str:
        """A link is cut, in one direction or both, while records are written; then it works again."""
        links, [controller, *_] = self.cluster.links, self.cluster.spec.controller_ids
        broker = self.random.choice(self.running)
        other = self.random.choice(
            (controller, controller, CLIENTS, *(b for b in self.running if b != broker))
        )
        ways = self.random.choice(
            (((broker, other),), ((other, broker),), ((broker, other), (other, broker)))
        )
        before = self._led_by(broker)
        for way in ways:
            links.cut_way(*way)
        try:
            if other == controller:
                # Without the others it would be asked itself, and it hears nothing.
                self.cluster.metadata.cut_off.add(broker)
                self.cut_off[broker] = before
                if self.running:
                    with suppress(TimedOut):
                        self.cluster.metadata.wait_fenced(broker, timeout=6.0)
                self.write_to_cut_off()
            if self.running:
                self.writers.write(self._led())
        finally:
            self._mend()
        self.cluster.metadata.wait_live([broker])
        return f"cut {', '.join(f'{a}>{b}' for a, b in ways)}"

    def _mend(self) -> None:
        self.cluster.links.mend()
        self.cut_off.clear()
        self.cluster.metadata.cut_off.clear()

    def _led_by(self, broker: int) -> dict[str, tuple[int, ...]]:
        led: dict[str, tuple[int, ...]] = {}
        for (name, partition), state in self.states().items():
            if state.leader == broker:
                led[name] = (*led.get(name, ()), partition)
        return led

    def _blackout(self) -> Iterator[None]:
        """Brokers go down one after the other while records are written; then some of them come back."""
        order = self.random.sample(self.running, len(self.running))
        downs = []
        while order:
            dying = [order.pop() for _ in range(min(len(order), self.random.choice((1, 1, 2))))]
            cut = 1.0 if self.only is Only.CUT_OFF else 0.2 if self.only is None else 0.0
            if not order and self.random.random() < cut:
                self._isolate(dying.pop())
            if dying:
                way = self.random.choice(("kill", "kill", "kill", "stop", "pause"))
                self._take_down(dying, way)
                downs.append(f"{way} {dying}")
            if order and any(state.leader < 0 for state in self.states().values()):
                yield
            if order and self.random.random() < 0.7:
                self.writers.write(self._led())
            raising = 1.0 if self.only is Only.TOPIC_CONFIG else 0.15 if self.only is None else 0.0
            if len(order) == 1 and self.random.random() < raising:
                # What the last one took by a lower value is not to be seen in the configuration of later.
                raised = self._led()
                self.configuration.set_topics(raised, [self.random.choice((2, 3)) for _ in raised])
                downs.append(f"min ISR of {len(raised)} raised")
        # Sometimes a leader that is cut off has nothing yet that others lack, and takes it after the election.
        ahead = self.random.random() < 0.5
        if ahead:
            self.write_to_cut_off()
        self.some_return(self._drawn(1, 2))
        if ahead and self.random.random() < 0.5:
            self.write_to_cut_off()
        self.steps.append(f"blackout ({', '.join(downs)})")

    def _isolate(self, broker: int) -> None:
        """The broker runs on, reached by clients, and neither the controller nor another broker."""
        led = self._led_by(broker)
        for other in (*self.cluster.controllers, *self.cluster.brokers):
            if other != broker:
                self.cluster.links.cut(broker, other)
        self.cluster.metadata.cut_off.add(broker)
        self.cut_off[broker] = led
        self.steps.append(f"cut off {broker}")

    def draw_returning(self) -> list[int]:
        """The brokers that return next, while others stay away; empty: it is enough."""
        return self._drawn(1, 2) if self.random.random() < MORE_RETURN and len(self.down) > 1 else []

    def _drawn(self, *numbers: int) -> list[int]:
        down = self.down
        return self.random.sample(down, min(len(down), self.random.choice(numbers)))

    def some_return(self, brokers: Sequence[int]) -> None:
        self._bring_up(brokers)
        # Until the dead ones are fenced, they lead: a broker may start sooner than their sessions end.
        self.cluster.metadata.wait_fenced(*set(self.cluster.brokers).difference(self.running))
        self.cluster.metadata.wait_caught_up()
        self.steps.append(f"{sorted(brokers)} return")

    def _failover(self) -> bool:
        """A broker leads, another is in sync with it and hears nothing for a moment: in it, min.insync.replicas is
        raised and the leader shuts down. So the other hears of both in one metadata delta, and leads alone. It
        dies, and the old leader comes back. False: there is no such pair.
        """
        if len(self.running) < 3:
            return False
        states = self.states()
        pairs = [
            (state.leader, follower)
            for state in states.values()
            for follower in state.isr
            if follower != state.leader >= 0
        ]
        if not pairs:
            return False
        old, new = self.random.choice(pairs)
        chosen = [
            topic
            for topic in self.topics
            if any(
                states[topic.name, p].leader == old and new in states[topic.name, p].isr
                for p in topic.led
                if (topic.name, p) in states
            )
        ]
        third = [b for b in self.running if b not in (old, new)]
        witness = third.pop()  # who can be asked
        if third:
            self._take_down(third, "pause")
        self.configuration.set_topics(chosen, [1] * len(chosen))
        self._led()
        most = max(chosen, key=lambda topic: topic.count)
        with self.writers.streaming(chosen) as stream, ThreadPoolExecutor(1) as pool:
            self.cluster.node(new).pause()
            self.configuration.set_topics(chosen, [2] * len(chosen), wait=False)
            stopped = pool.submit(self.cluster.node(old).stop)
            # The clients know it as the leader before it knows itself; without that it would be too late for them.
            patience = SESSIONS * float(self.cluster.spec.broker_config["broker.session.timeout.ms"]) / 1000
            with suppress(TimedOut):
                wait_until(
                    lambda: stream.knows(most.name, new), "the clients to know", patience, interval=0.05
                )
            self.cluster.node(new).resume()
            stopped.result()
            with suppress(TimedOut):
                self.cluster.metadata.wait_caught_up(5.0)
        self._take_down([new, witness], "kill")
        self._bring_up([old])
        self.cluster.metadata.wait_fenced(*set(self.cluster.brokers).difference(self.running))
        self.cluster.metadata.wait_caught_up()
        self.steps.append(f"failover from {old} to {new} in one delta with a raised min ISR, {old} returns")
        return True


def elect_whoever_is_alive(cluster: KafkaCluster, topics: Mapping[str, Iterable[int]]) -> None:
    """An unclean election of all of them; those with a leader, or without a live replica, do not change."""
    request = ElectLeadersRequest(
        election_type=UNCLEAN,
        topic_partitions=tuple(
            TopicPartitions(topic=TopicName(topic), partitions=tuple(i32(number) for number in partitions))
            for topic, partitions in topics.items()
        ),
        timeout=i32Timedelta.parse(timedelta(seconds=15)),
    )
    if request.topic_partitions:
        cluster.metadata.ask(request, ElectLeadersResponse)
