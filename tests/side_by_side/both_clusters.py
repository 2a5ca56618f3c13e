"""The two clusters that run a script, and how their states are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import NamedTuple, Protocol

from confluent_kafka import Producer
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.alter_replica_log_dirs.v2.response import AlterReplicaLogDirsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta

from backends.base.protocol import Backend
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.simulator.config import Config
from backends.simulator.loop import SECOND
from backends.simulator.messages import (
    DeleteTopic,
    Done,
    Error,
    Produce,
    ProduceReply,
    SetConfig,
    UpdateFeature,
)
from backends.simulator.network import OPERATOR, NetworkNode
from backends.simulator.network import broker as node
from backends.simulator.scenario.timeline import ScenarioTransactions
from recovery.controller.rules import ELR_FEATURE
from recovery.model import TopicPartition
from testbed.kafka import ClusterSpec, KafkaCluster, TestbedError, TimedOut, wait_until
from testbed.kafka.connection import Connection, NoAnswer
from testbed.kafka.log_files import cut_log, read_log
from tests.contract.cluster_driver import ClusterDriver
from tests.contract.real_cluster_driver import RealClusterDriver
from tests.contract.simulated_cluster_driver import QUICK, SimulatedClusterDriver
from tests.unit.rescue.batches import batch

BROKERS = (1, 2, 3, 4, 5)
"""Scripts use four; the last one always runs, to read the controllers' state from it."""
SPEC = ClusterSpec(
    brokers=len(BROKERS),
    log_dirs=2,
    controller_config={"auto.leader.rebalance.enable": "false"},
    # Log starts are read from the disk, where they are written by the clock.
    broker_config={
        "log.flush.start.offset.checkpoint.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "transaction.state.log.num.partitions": "1",
    },
)
QUIET = 12 * SECOND
"""A step is settled when nothing has changed in the simulator for this time: four broker sessions."""
SETTLE_SECONDS = 30.0
ANSWER_SECONDS = 10.0
TRANSACTION_TIMEOUT_MS = 600_000
"""Longer than a script: its producers end their transactions themselves."""
MIN_ISR = "min.insync.replicas"

Placement = Mapping[tuple[int, int], int]
"""(partition, broker) → index of the log dir."""


class Log(NamedTuple):
    """One replica's log on the disk of its live or dead broker."""

    start: int
    end: int
    last_epoch: int


class PartitionSnapshot(NamedTuple):
    """A partition: the controller's state, sets sorted, and every replica's log."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    logs: Mapping[int, Log | None]


States = dict[TopicPartition, PartitionSnapshot]


class Side(ClusterDriver, Protocol):
    """A cluster driver with what scripts need beyond the contract."""

    def snapshot(self, tp: TopicPartition) -> PartitionSnapshot: ...

    def wait_for(self, wanted: States) -> States:
        """Waits for ``wanted`` and returns it; returns the actual states at the timeout."""
        ...

    def produce_at(self, broker: int, topic: str, partition: int, count: int) -> None:
        """Records with acks=all, each acknowledged by that broker, which need not be the controllers' leader."""
        ...

    def cut_off(self, broker: int) -> None:
        """Neither the controllers nor other brokers hear the broker; returns when it is fenced."""
        ...

    def mend(self) -> None:
        """Ends the cuts; returns when no broker is fenced."""
        ...

    def set_config(self, topic: str, name: str, value: str) -> None: ...

    def set_broker_min_isr(self, broker: int, value: int | None) -> None:
        """min.insync.replicas of one broker; None removes it."""
        ...

    def delete_topic(self, topic: str) -> None:
        """Returns when no live broker has a log of it any more."""
        ...

    def is_refused(self, topic: str, partition: int) -> bool:
        """Whether a batch with acks=all is refused because the ISR is below the leader's min ISR."""
        ...

    def described_min_isr(self, broker: int, topic: str) -> int:
        """min.insync.replicas of the topic, as that broker itself describes it."""
        ...

    def set_elr(self, level: int) -> None:
        """eligible.leader.replicas.version, for the whole cluster."""
        ...

    def replace_disk(self, broker: int, index: int) -> None:
        """An empty disk in the place of a log dir of a dead broker."""
        ...

    def flush(self) -> None:
        """Everything written so far survives a power loss."""
        ...

    def transact(self, name: str, tp: TopicPartition, records: int) -> None:
        """The producer with that transactional id writes in its open transaction, or begins one."""
        ...

    def end_transaction(self, name: str, *, commit: bool) -> None:
        """Returns when the producer was told the end."""
        ...

    def power_off(self, brokers: Sequence[int], left: States) -> None:
        """As ``kill``, and unflushed records are lost; on a real cluster the logs become those in ``left``."""
        ...


class SimulatedSide(SimulatedClusterDriver):
    """The simulator; it settles while virtual time passes."""

    def __init__(self, seed: int = 1, config: Config = QUICK) -> None:
        super().__init__(BROKERS, seed=seed, config=config)
        self.placements: dict[str, Placement] = {}
        self.refused: list[str] = []
        self._cut_off: set[NetworkNode] = set()
        self.transactions = ScenarioTransactions(self.world, self.refused.append)

    def create_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        super().create_topic(topic, assignment, config)
        self.placements[topic] = self._placement(topic, len(assignment))

    def snapshot(self, tp: TopicPartition) -> PartitionSnapshot:
        state = self.partition(tp)
        logs: dict[int, Log | None] = {}
        for replica in state.replicas:
            disk = self.world.disks[replica]
            log = disk.logs.get(tp)
            there = log is not None and disk.works(tp)
            logs[replica] = Log(log.start, log.end, log.last_epoch) if log and there else None
        return PartitionSnapshot(
            state.leader,
            state.leader_epoch,
            state.replicas,
            tuple(sorted(state.isr)),
            tuple(sorted(state.elr)),
            tuple(sorted(state.last_known_elr)),
            logs,
        )

    def _placement(self, topic: str, partitions: int) -> Placement:
        """The log dirs in which a topic's logs were created."""
        return {
            (number, broker): disk.logs[tp].directory
            for number in range(partitions)
            for broker, disk in self.world.disks.items()
            if (tp := TopicPartition(topic, number)) in disk.logs
        }

    def wait_for(self, wanted: States) -> States:
        return self.wait_settled(list(wanted))

    def wait_settled(self, tps: Sequence[TopicPartition]) -> States:
        """Waits until nothing changes any more; returns the states."""
        while True:
            before = {tp: self.snapshot(tp) for tp in tps}
            self.simulation.advance_to(self.simulation.now + QUIET)
            if before == {tp: self.snapshot(tp) for tp in tps}:
                return before

    def produce_at(self, broker: int, topic: str, partition: int, count: int) -> None:
        tp = TopicPartition(topic, partition)
        answer = self.asked(broker, Produce(tp, count, -1))
        assert isinstance(answer, ProduceReply) and answer.error is None, answer

    def cut_off(self, broker: int) -> None:
        self._cut_off.add(node(broker))
        self.world.network.cut([node(broker)], self._others(broker))
        self._wait_fenced(broker)

    def resume(self, broker: int) -> None:
        heard = [other for other in self._others(broker) if other not in self._cut_off]
        self.world.network.heal([node(broker)], [OPERATOR, *heard])
        self.start(broker)

    def mend(self) -> None:
        self.world.network.heal_all()
        self.start(*(broker.id for broker in self._cut_off))
        self._cut_off.clear()

    def set_config(self, topic: str, name: str, value: str) -> None:
        self._done(SetConfig(topic, name, value))

    def set_elr(self, level: int) -> None:
        self._done(UpdateFeature(ELR_FEATURE, level))

    def set_broker_min_isr(self, broker: int, value: int | None) -> None:
        self._done(SetConfig("", MIN_ISR, None if value is None else str(value), broker))

    def delete_topic(self, topic: str) -> None:
        self._done(DeleteTopic(topic))
        live = [self.world.disks[number] for number in self.world.brokers]
        self.wait(lambda: all(tp.topic != topic for disk in live for tp in disk.logs), f"no logs of {topic}")

    def is_refused(self, topic: str, partition: int) -> bool:
        tp = TopicPartition(topic, partition)
        answer = self._at_leader(tp, Produce(tp, 1, -1))
        return isinstance(answer, ProduceReply) and answer.error is Error.NOT_ENOUGH_REPLICAS

    def described_min_isr(self, broker: int, topic: str) -> int:
        return self.world.brokers[broker].state.min_isr.levels(topic).in_force

    def _done(self, body: SetConfig | UpdateFeature | DeleteTopic) -> None:
        answer = self.applied(body)
        assert isinstance(answer, Done) and answer.refusal is None, answer

    def replace_disk(self, broker: int, index: int) -> None:
        self.world.replace_log_dir(broker, index)

    def flush(self) -> None:
        for disk in self.world.disks.values():
            disk.flush()

    def transact(self, name: str, tp: TopicPartition, records: int) -> None:
        self.transactions.write(name, [tp], records)
        assert not self.refused, self.refused

    def end_transaction(self, name: str, *, commit: bool) -> None:
        self.transactions.end(name, commit=commit)
        assert not self.refused, self.refused

    def power_off(self, brokers: Sequence[int], left: States) -> None:  # noqa: ARG002  # the simulator knows what is lost
        self.world.power_off(list(brokers))
        self._wait_fenced(*brokers)


class RealSide(RealClusterDriver):
    """A real cluster without security; logs are in the same log dirs as in the simulator."""

    def __init__(self, cluster: KafkaCluster, placements: Mapping[str, Placement]) -> None:
        super().__init__(cluster)
        self._placements = placements
        self._producers: dict[str, Producer] = {}

    @asynccontextmanager
    async def backend(self, *denied: str) -> AsyncIterator[Backend]:
        assert not denied
        backend = LiveBackend(ClientSettings(parse_addresses(self.cluster.bootstrap())))
        try:
            await backend.open()
            yield backend
        finally:
            await backend.close()

    def create_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        for (partition, broker), index in self._placements[topic].items():
            self._place(topic, partition, broker, index)
        super().create_topic(topic, assignment, config)

    def _place(self, topic: str, partition: int, broker: int, index: int) -> None:
        """Chooses the log dir of a future replica (KIP-113); the broker answers that it has no such replica."""
        node = self.cluster.node(broker)
        where = AlterReplicaLogDirTopic(name=TopicName(topic), partitions=(i32(partition),))
        path = AlterReplicaLogDir(path=str(node.log_dirs[index]), topics=(where,))
        with Connection(node.port, None, ANSWER_SECONDS) as connection:
            connection.ask(AlterReplicaLogDirsRequest(dirs=(path,)), AlterReplicaLogDirsResponse)

    def snapshot(self, tp: TopicPartition) -> PartitionSnapshot:
        state = self.cluster.metadata.partition(tp.topic, tp.partition)
        return PartitionSnapshot(
            state.leader,
            state.leader_epoch,
            state.replicas,
            tuple(sorted(state.isr)),
            tuple(sorted(state.elr)),
            tuple(sorted(state.last_known_elr)),
            {broker: self._log(broker, tp) for broker in state.replicas},
        )

    def wait_for(self, wanted: States) -> States:
        def same() -> bool:
            return all(self.snapshot(tp) == state for tp, state in wanted.items())

        try:
            wait_until(same, "the simulator's state", SETTLE_SECONDS, passing=(NoAnswer, KeyError))
        except TimedOut:
            return {tp: self.snapshot(tp) for tp in wanted}
        return wanted

    def _log(self, broker: int, tp: TopicPartition) -> Log | None:
        try:
            log = read_log(self.cluster.node(broker), tp.topic, tp.partition)
        except (TestbedError, OSError):
            return None  # missing, or being moved or removed
        return Log(log.start, log.end, log.last_epoch)

    def transact(self, name: str, tp: TopicPartition, records: int) -> None:
        if name not in self._producers:
            more = {"transactional.id": name, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
            self._producers[name] = Producer(self.cluster.superuser_config() | more)
            self._producers[name].init_transactions(SETTLE_SECONDS)
            self._producers[name].begin_transaction()
        for number in range(records):
            self._producers[name].produce(tp.topic, f"{name}-{number}".encode(), partition=tp.partition)
        assert self._producers[name].flush(SETTLE_SECONDS) == 0

    def end_transaction(self, name: str, *, commit: bool) -> None:
        producer = self._producers[name]
        (producer.commit_transaction if commit else producer.abort_transaction)(SETTLE_SECONDS)
        ended = "CompleteCommit" if commit else "CompleteAbort"

        def is_over() -> bool:
            described = self.cluster.tools("kafka-transactions", "describe", "--transactional-id", name)
            return ended in described.stdout

        wait_until(is_over, f"{name} to be {ended}", SETTLE_SECONDS)
        producer.begin_transaction()

    def set_elr(self, level: int) -> None:
        verb = "upgrade" if level else "downgrade"
        self.cluster.tools("kafka-features", verb, "--feature", f"{ELR_FEATURE}={level}")

    def produce_at(self, broker: int, topic: str, partition: int, count: int) -> None:
        # A client library would ask another broker who leads.
        data = PartitionProduceData(index=i32(partition), records=Records(batch(0, count, -1)))
        request = ProduceRequest(
            transactional_id=None,
            acks=i16(-1),
            timeout=i32Timedelta.parse(timedelta(seconds=ANSWER_SECONDS)),
            topic_data=(TopicProduceData(name=TopicName(topic), partition_data=(data,)),),
        )

        def appended() -> bool:
            # A broker that has not heard yet that it leads appends nothing.
            with Connection(self.cluster.node(broker).port, None, ANSWER_SECONDS) as connection:
                answer = connection.ask(request, ProduceResponse)
            (reported,) = answer.responses
            (row,) = reported.partition_responses
            assert row.error_code in (ErrorCode.none, ErrorCode.not_leader_or_follower), row
            return row.error_code is ErrorCode.none

        wait_until(appended, f"broker {broker} to append to {topic}-{partition}")

    def cut_off(self, broker: int) -> None:
        for other in (*self.cluster.controllers, *BROKERS):
            if other != broker:
                self.cluster.links.cut(broker, other)
        self.cluster.metadata.cut_off.add(broker)
        self.cluster.metadata.wait_fenced(broker)

    def mend(self) -> None:
        self.cluster.links.mend()
        self.cluster.metadata.cut_off.clear()
        self.cluster.metadata.wait_live(BROKERS)

    def set_config(self, topic: str, name: str, value: str) -> None:
        self._alter(2, topic, name, value)

    def set_broker_min_isr(self, broker: int, value: int | None) -> None:
        self._alter(4, str(broker), MIN_ISR, None if value is None else str(value))
        topic = next(iter(self._placements))
        wanted = value if value is not None else None
        # The value is in force a moment after it is described.
        wait_until(
            lambda: wanted is None or self.described_min_isr(broker, topic) == wanted,
            f"broker {broker} to have its own value",
        )

    def delete_topic(self, topic: str) -> None:
        (future,) = self.cluster.admin.delete_topics([topic]).values()
        future.result(SETTLE_SECONDS)
        where = [(broker, number) for number, broker in self._placements[topic]]
        wait_until(
            lambda: all(self._log(broker, TopicPartition(topic, number)) is None for broker, number in where),
            f"no logs of {topic}",
        )

    def is_refused(self, topic: str, partition: int) -> bool:
        sent = self.cluster.client.produce(topic, partition, 1, acks="all")
        return "NOT_ENOUGH_REPLICAS" in " ".join(map(str, sent.errors)).upper().replace(" ", "_")

    def described_min_isr(self, broker: int, topic: str) -> int:
        resource = DescribeConfigsResource(
            resource_type=i8(2), resource_name=topic, configuration_keys=(MIN_ISR,)
        )
        request = DescribeConfigsRequest(
            resources=(resource,), include_synonyms=False, include_documentation=False
        )
        with Connection(self.cluster.node(broker).port, None, ANSWER_SECONDS) as connection:
            answer = connection.ask(request, DescribeConfigsResponse)
        (result,) = answer.results
        (row,) = result.configs
        return int(row.value or 0)

    def _alter(self, kind: int, resource_name: str, name: str, value: str | None) -> None:
        operation = i8(1) if value is None else i8(0)
        change = AlterableConfig(name=name, config_operation=operation, value=value)
        resource = AlterConfigsResource(
            resource_type=i8(kind), resource_name=resource_name, configs=(change,)
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

        def changed() -> bool:
            answer = self.cluster.metadata.ask(request, IncrementalAlterConfigsResponse)
            return not any(result.error_code for result in answer.responses)

        wait_until(changed, f"{name} of {resource_name} to be changed", passing=(NoAnswer,))

    def replace_disk(self, broker: int, index: int) -> None:
        self.cluster.replace_log_dir(broker, index)

    def flush(self) -> None:
        """Nothing to do: ``power_off`` cuts the logs."""

    def power_off(self, brokers: Sequence[int], left: States) -> None:
        """A killed process keeps its page cache, so after SIGKILL the logs are cut to what a power loss leaves."""
        for broker in brokers:
            self.cluster.node(broker).kill()
            for tp, state in left.items():
                log = state.logs.get(broker)
                if log is not None:
                    cut_log(self.cluster.node(broker), tp.topic, tp.partition, log.end)
        self._wait_fenced(*brokers)
