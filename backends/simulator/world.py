"""The whole simulated cluster, and everything that can happen to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from backends.simulator.broker.broker_process import BrokerProcess
from backends.simulator.broker.log_storage import BrokerDisk, LogDirState
from backends.simulator.broker.replica_log import Log
from backends.simulator.clients import Consumer, Producer, TransactionalProducer
from backends.simulator.committed_records import CommittedRecords, config_steps
from backends.simulator.context import Context
from backends.simulator.controller.controller_process import ControllerProcess
from backends.simulator.events import (
    BrokerStopped,
    DiskLost,
    Event,
    EventBus,
    MetadataCommitted,
    MetadataDiskLost,
    OfALog,
)
from backends.simulator.history import History
from backends.simulator.loop import Loop
from backends.simulator.messages import MetadataUpdate, NotController, TopicRemoved
from backends.simulator.network import OPERATOR, Network, NetworkNode, NetworkRole
from backends.simulator.partition_table import Interner, PartitionTable, generation_of
from backends.simulator.permissions import DeniedPermissions
from backends.simulator.quorum.quorum_log import FIRST_EPOCH, QuorumLog
from backends.simulator.rpc import Answer, RpcEndpoint
from backends.simulator.topology import BrokerSpec, PartitionStart, TopicSpec, Topology, directory_id
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage, Layered
from recovery.controller.registration import MIGRATING_DIRECTORY, Registration
from recovery.controller.rules import UncleanRecoveryStrategy
from recovery.membership.raft_votes import RaftLogEnd
from recovery.model import NO_LEADER, EpochSpan, TopicPartition
from recovery.wording.quantity_text import counted, some_of

# A topology as the state of a running cluster: its metadata, and the logs on each broker's disks. Equal
# logs and registrations are one object, so that 200,000 partitions load in a second or two.


class InitialState(NamedTuple):
    """The first entry of the metadata log, and the brokers' disks."""

    metadata: MetadataUpdate
    disks: dict[int, BrokerDisk]


def initial_state(topology: Topology, cluster: str = "") -> InitialState:
    """``cluster`` tells its topic ids from those of others. Raises KeyError if a topic names an unknown broker."""
    brokers = {spec.id: spec for spec in topology.brokers}
    disks = {spec.id: BrokerDisk(_log_dirs(spec)) for spec in topology.brokers}
    tracked = any(spec.log_dirs > 1 for spec in topology.brokers)
    intern = Interner()
    rows = {}
    for topic in topology.topics:
        rows[topic.name] = _row(topic, brokers, intern, tracked=tracked)
    table = PartitionTable(rows, cluster=cluster)
    for topic in topology.topics:
        _place(topic, table, disks, brokers)
    registrations = {
        spec.id: BrokerRegistration(
            epoch, fenced=spec.fenced, directories=_ids(spec) if spec.log_dirs > 1 else ()
        )
        for epoch, spec in enumerate(topology.brokers, start=1)
    }
    image = ClusterImage(
        registrations,
        table,
        topology.config.rules,
        Layered(
            topology.min_isr,
            # With the ELR on the cluster always has a dynamic value, and without it the files can differ.
            cluster=topology.min_isr if topology.config.rules.elr or not _files_differ(topology) else None,
            topics={topic.name: topic.min_isr for topic in topology.topics if topic.min_isr is not None},
        ),
        Layered(
            UncleanRecoveryStrategy(topology.config.rules.strategy),
            topics={topic.name: topic.strategy for topic in topology.topics if topic.strategy is not None},
        ),
    )
    configs = tuple(config_steps(ClusterImage({}, {}), image))
    return InitialState(MetadataUpdate(image, (), (), len(registrations), "loaded", configs=configs), disks)


def _files_differ(topology: Topology) -> bool:
    return any(spec.min_isr is not None for spec in topology.brokers)


def _ids(spec: BrokerSpec) -> tuple[str, ...]:
    """Of the log dirs that work."""
    indexes = (index for index in range(spec.log_dirs) if index not in spec.failed_log_dirs)
    return tuple(directory_id(spec.id, index) for index in indexes)


def _log_dirs(spec: BrokerSpec) -> list[LogDirState]:
    return [
        LogDirState(f"/kafka/{index}", directory_id(spec.id, index), broken=index in spec.failed_log_dirs)
        for index in range(spec.log_dirs)
    ]


def _row(
    topic: TopicSpec, brokers: dict[int, BrokerSpec], intern: Interner, *, tracked: bool
) -> tuple[Registration, ...]:
    row = []
    if topic.start:
        return tuple(_tracked(one, brokers) if tracked else one.registration for one in topic.start)
    for number in range(topic.partitions):
        replicas = topic.assignments[number % len(topic.assignments)]
        directories: tuple[str, ...] = ()
        if tracked:
            directories = tuple(_directory(brokers[replica], number) for replica in replicas)
        row.append(intern(Registration(replicas, replicas, replicas[0], directories=directories)))
    return tuple(row)


def _tracked(start: PartitionStart, brokers: dict[int, BrokerSpec]) -> Registration:
    """With the log dir of each replica; one without a log may be placed anywhere."""
    directories = {
        replica: directory_id(replica, log.directory)
        for replica, log in start.logs.items()
        if brokers[replica].log_dirs > 1
    }
    replicas = start.registration.replicas
    return start.registration._replace(
        directories=tuple(directories.get(replica, MIGRATING_DIRECTORY) for replica in replicas)
    )


def _index(spec: BrokerSpec, number: int) -> int:
    return number % spec.log_dirs


def _directory(spec: BrokerSpec, number: int) -> str:
    if spec.log_dirs == 1:
        return MIGRATING_DIRECTORY
    return directory_id(spec.id, _index(spec, number))


def _place(
    topic: TopicSpec, table: PartitionTable, disks: dict[int, BrokerDisk], brokers: dict[int, BrokerSpec]
) -> None:
    if topic.start:
        for tp, start in zip(table.keys_of(topic.name), topic.start, strict=True):
            for replica, log in start.logs.items():
                disks[replica].store(tp, log)
        return
    end = topic.records
    spans = (EpochSpan(0, 0, end),) if end else ()
    logs = [Log(spans, 0, end, end, end, index) for index in range(max(b.log_dirs for b in brokers.values()))]
    for tp, partition in zip(table.keys_of(topic.name), table.topics[topic.name], strict=True):
        for replica in partition.replicas:
            disks[replica].logs[tp] = logs[_index(brokers[replica], tp.partition)]


class World:
    """One cluster at time 0, running as its topology says. Time moves with ``loop``.

    ``image`` is the newest committed metadata, and ``committed_records`` the metadata log so far. ``files`` has
    min.insync.replicas in each broker's configuration file, which it reads at its start. Faults may be requested in
    any state: a stopped node stays stopped. ``cluster`` tells its topic ids from those of others.
    """

    def __init__(self, topology: Topology, seed: int, cluster: str = "") -> None:
        self.topology = topology
        self.loop = Loop(seed)
        self.history = History(self.loop)
        self.network = Network(self.loop, topology.weather)
        self.events = EventBus()
        loaded = initial_state(topology, cluster)
        self.image: ClusterImage = loaded.metadata.image
        self.disks = loaded.disks
        self.files: dict[int, int] = {
            spec.id: topology.min_isr if spec.min_isr is None else spec.min_isr for spec in topology.brokers
        }
        self.specs: dict[int, BrokerSpec] = {spec.id: spec for spec in topology.brokers}
        racks = {spec.id: spec.rack for spec in topology.brokers}
        self.quorum = QuorumLog(
            topology,
            self.loop,
            self.history,
            self.events.emit,
            first=loaded.metadata,
            committed=self._committed,
            brokers_without=self._brokers_without,
        )
        first_voters = self.quorum.disks[topology.controllers[0]].log.voters
        self.committed_records = CommittedRecords(loaded.metadata, FIRST_EPOCH, first_voters, racks)
        self.context = Context(
            self.loop,
            self.network,
            topology.config,
            self.history,
            self.events.emit,
            self.quorum,
            topology.every_controller,
            {topic.name: topic.configs for topic in topology.topics},
            DeniedPermissions(topology.config.denied),
        )
        self.brokers: dict[int, BrokerProcess] = {}
        self.controllers: dict[int, ControllerProcess] = {}
        self._replaced = 0
        self._topics_deleted = False
        self._begin(loaded.metadata)
        self.operator = RpcEndpoint(self.loop, self.network, OPERATOR, _nobody)

    def _begin(self, first: MetadataUpdate) -> None:
        for controller in self.topology.controllers:
            self.start_controller(controller)
        for broker, registered in first.image.brokers.items():
            if not self.specs[broker].running:
                continue
            running = (registered.epoch, first.image)
            self.brokers[broker] = BrokerProcess(
                self.context,
                broker,
                self.disks[broker],
                self._stopped,
                file_min_isr=self.files[broker],
                running=running,
            )
        self.producers = [
            Producer(self.context, number, spec, self._leader)
            for number, spec in enumerate(self.topology.producers)
        ]
        first_consumer = len(self.producers)
        self.consumers = [
            Consumer(self.context, first_consumer + number, spec, self._leader)
            for number, spec in enumerate(self.topology.consumers)
        ]
        first_transactional = first_consumer + len(self.consumers)
        for number, transactions in enumerate(self.topology.transactions, first_transactional):
            TransactionalProducer(self.context, number, transactions, self._leader)

    def _committed(self, at: RaftLogEnd, controller: int, update: MetadataUpdate) -> None:
        before, self.image = self.image, update.image
        for step in update.configs:
            if isinstance(step, TopicRemoved):
                self._forget(step.topic)
        self.committed_records.add(at, controller, self.quorum.replicas[controller].voters, update)
        of = counted(len(update.touched), "partition")
        self.history.add(f"controller-{controller}", f"{update.why}; {of}{_unclean(before, update)}")
        self.events.emit(MetadataCommitted(before, update.image, update.touched, update.why))

    def _forget(self, topic: str) -> None:
        """What clients wrote to a topic that is deleted now."""
        self._topics_deleted = True
        context = self.context
        for store in (context.times, context.contents, context.producers, context.transactions):
            store.forget(topic)

    def log(self, broker: int, tp: TopicPartition) -> Log | None:
        """The log on the broker's disk, if it belongs to the topic that has that name now."""
        if not self._topics_deleted:
            return self.disks[broker].logs.get(tp)
        return self.disks[broker].log_of(tp, generation_of(self.image, tp.topic))

    def of_earlier_topic(self, event: Event) -> bool:
        """Whether a broker does it with a log of a deleted topic whose name another topic has now."""
        if not self._topics_deleted or not isinstance(event, OfALog):
            return False
        generation = self.disks[event.broker].generations.get(event.tp, 0)
        return generation != generation_of(self.image, event.tp.topic)

    def _brokers_without(self, level: int) -> list[int]:
        ranges = {broker: self.specs[broker].kraft_versions for broker in self.image.brokers}
        return [broker for broker, (lowest, highest) in ranges.items() if not lowest <= level <= highest]

    def _leader(self, tp: TopicPartition) -> int:
        """The leader in the newest metadata of a running broker, as clients find it."""
        newest = max(self.brokers.values(), key=lambda process: process.state.offset, default=None)
        partition = None if newest is None else newest.state.image.partitions.get(tp)
        return NO_LEADER if partition is None else partition.leader

    def nodes(self) -> list[NetworkNode]:
        """Every broker and controller, up or down."""
        return [
            *(NetworkNode(NetworkRole.BROKER, broker) for broker in self.specs),
            *(
                NetworkNode(NetworkRole.CONTROLLER, controller)
                for controller in self.topology.every_controller
            ),
        ]

    # Brokers.

    def start_broker(self, broker: int) -> None:
        if broker not in self.brokers:
            self.brokers[broker] = BrokerProcess(
                self.context, broker, self.disks[broker], self._stopped, file_min_isr=self.files[broker]
            )

    def kill_broker(self, broker: int) -> None:
        """SIGKILL: the page cache survives."""
        process = self.brokers.pop(broker, None)
        if process is not None:
            process.stop()

    def power_off(self, brokers: Iterable[int]) -> None:
        """Unflushed data is lost, also the page cache of a broker that is already down."""
        for broker in brokers:
            process = self.brokers.pop(broker, None)
            if process is not None:
                process.stop(power_lost=True)
            else:
                disk = self.disks[broker]
                epoch = disk.clean_shutdown_epoch
                lost = disk.crash(power_lost=True)
                disk.clean_shutdown_epoch = epoch
                if lost:
                    self.events.emit(BrokerStopped(broker, clean=False, power_lost=True))

    def shut_down_broker(self, broker: int) -> None:
        """A controlled shutdown: the process ends when the controller agrees."""
        process = self.brokers.get(broker)
        if process is not None:
            process.shut_down()

    def _stopped(self, broker: int, clean: bool) -> None:
        self.brokers.pop(broker).stop(clean=clean)

    # Disks.

    def break_log_dir(self, broker: int, directory: int) -> None:
        """Every read and write fails from now on; the broker notices with the next one."""
        self.disks[broker].directories[directory].broken = True
        self.history.add(f"broker-{broker}", f"log dir {directory} fails")

    def break_partition(self, broker: int, tp: TopicPartition) -> None:
        """The files of one partition fail, in a working log dir."""
        self.disks[broker].bad[tp] = None
        self.history.add(f"broker-{broker}", f"the files of {tp} fail")

    def replace_log_dir(self, broker: int, directory: int) -> None:
        """A new, empty disk. Raises ValueError while the broker runs: Kafka reads its log dirs at start only."""
        if broker in self.brokers:
            raise ValueError(f"broker {broker} is running: stop it before replacing its disk")
        self._replaced += 1
        self.disks[broker].replace(directory, directory_id(broker, directory, self._replaced))
        self.disks[broker].clean_shutdown_epoch = None
        self.history.add(f"broker-{broker}", f"log dir {directory} replaced by an empty one")
        self.events.emit(DiskLost(broker))

    # Controllers.

    def start_controller(self, controller: int) -> None:
        if controller not in self.controllers:
            self.controllers[controller] = ControllerProcess(self.context, controller, self.kill_controller)

    def kill_controller(self, controller: int) -> None:
        """SIGKILL or a power loss: the metadata log is always flushed."""
        process = self.controllers.pop(controller, None)
        if process is not None:
            process.stop()

    def failover(self, to: int) -> None:
        """The quorum's leader resigns in favour of ``to``, which soon leads if its log is long enough."""
        self.quorum.hand_over(to)

    def break_controller_disk(self, controller: int) -> None:
        """The metadata log dir fails; the controller stops with its next write."""
        self.history.add(f"controller-{controller}", "the metadata log dir fails")
        self.quorum.break_disk(controller)

    def replace_controller_disk(self, controller: int) -> None:
        """A new disk, formatted without initial controllers: another directory id.

        Raises ValueError while the controller runs.
        """
        if controller in self.controllers:
            raise ValueError(f"controller {controller} is running: stop it before replacing its disk")
        lost = self.quorum.disks[controller]
        key = self.quorum.replace_disk(controller)
        self.history.add(f"controller-{controller}", f"a new disk: it is {key} now")
        self.events.emit(MetadataDiskLost(controller, lost))

    def send_to_quorum(self, body: Any) -> None:
        """A request from inside the cluster's network to the quorum's leader."""
        leader = self.quorum.leader
        if leader is None:
            self.history.add("quorum", "nobody leads: refused")
            return

        def answered(reply: Any) -> None:
            what = (
                "not the controller any more" if isinstance(reply, NotController) else reply.refusal or "done"
            )
            self.history.add("quorum", f"answers {type(body).__name__}: {what}")

        self.quorum.receive(leader.id, body, answered)

    @property
    def active(self) -> ControllerProcess | None:
        """The active controller; if two believe to be it, the one with the newer epoch."""
        acting = [process for process in self.controllers.values() if process.active is not None]
        return max(acting, key=lambda process: self.quorum.leading_epoch(process.id), default=None)


def _nobody(_source: NetworkNode, _body: Any, _answer: Answer) -> None:
    """The operator serves no requests."""


def _unclean(before: ClusterImage, update: MetadataUpdate) -> str:
    """The leaders that it elected uncleanly: they were in neither ISR nor ELR, so records may be lost."""
    found = []
    for tp in update.touched:
        was, now = before.partitions.get(tp), update.image.partitions.get(tp)
        if was is None or now is None or not now.has_leader or now.leader == was.leader:
            continue
        if now.leader not in was.isr and now.leader not in was.elr:
            found.append(f"{tp} by {now.leader}")
    return f"; led after an unclean election: {some_of(found)}" if found else ""
