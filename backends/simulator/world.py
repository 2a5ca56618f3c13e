"""The whole cluster, and everything that can happen to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from backends.simulator.broker.process import BrokerProcess
from backends.simulator.clients import Producer
from backends.simulator.context import Context, Denied
from backends.simulator.controller.process import ControllerProcess
from backends.simulator.history import History
from backends.simulator.load import load
from backends.simulator.loop import Loop
from backends.simulator.messages import MetadataUpdate
from backends.simulator.metadata_log import MetadataLog
from backends.simulator.network import OPERATOR, Network, Node, Role
from backends.simulator.rpc import Answer, Endpoint
from backends.simulator.solo import SoloLog
from backends.simulator.topology import BrokerSpec, Topology, directory_id
from backends.simulator.watch import BrokerStopped, DiskLost, Event, MetadataCommitted, Watch
from recovery.controller.image import ClusterImage
from recovery.model import NO_LEADER, TopicPartition

LogFactory = Callable[[Loop, Network, Sequence[int], Any], MetadataLog]


class World:
    """One cluster at time 0, running as its topology says; time moves with ``loop``.

    ``image`` is the newest committed metadata, whoever has heard of it. Faults may be asked for in any state:
    what is down already stays down.
    """

    def __init__(self, topology: Topology, seed: int, metadata_log: LogFactory = SoloLog) -> None:
        self.topology = topology
        self.loop = Loop(seed)
        self.history = History(self.loop)
        self.network = Network(self.loop, topology.weather)
        self.watch = Watch()
        loaded = load(topology)
        self.image: ClusterImage = loaded.metadata.image
        self.disks = loaded.disks
        log = metadata_log(self.loop, self.network, topology.controllers, loaded.metadata)
        self.context = Context(
            self.loop,
            self.network,
            topology.config,
            self.history,
            self.watch,
            log,
            topology.controllers,
            {topic.name: topic.configs for topic in topology.topics},
            Denied(topology.config.denied),
        )
        self.specs: dict[int, BrokerSpec] = {spec.id: spec for spec in topology.brokers}
        self.brokers: dict[int, BrokerProcess] = {}
        self.controllers: dict[int, ControllerProcess] = {}
        self._replaced = 0
        self.watch.lookers.append(self._saw)
        self._begin(loaded.metadata)
        self.operator = Endpoint(self.loop, self.network, OPERATOR, _nobody)

    def _begin(self, first: MetadataUpdate) -> None:
        for controller in self.topology.controllers:
            self.start_controller(controller)
        for broker, registered in first.image.brokers.items():
            running = (registered.epoch, first.image)
            self.brokers[broker] = BrokerProcess(
                self.context, broker, self.disks[broker], self._stopped, running
            )
        self.producers = [
            Producer(self.context, number, spec, self._leader)
            for number, spec in enumerate(self.topology.producers)
        ]

    def _saw(self, event: Event) -> None:
        if isinstance(event, MetadataCommitted):
            self.image = event.image

    def _leader(self, tp: TopicPartition) -> int:
        """The leader in the newest metadata that a running broker has: what clients find."""
        newest = max(self.brokers.values(), key=lambda process: process.offset, default=None)
        partition = None if newest is None else newest.image.partitions.get(tp)
        return NO_LEADER if partition is None else partition.leader

    def nodes(self) -> list[Node]:
        """Every broker and controller, up or down."""
        return [
            *(Node(Role.BROKER, broker) for broker in self.specs),
            *(Node(Role.CONTROLLER, controller) for controller in self.topology.controllers),
        ]

    # Brokers.

    def start_broker(self, broker: int) -> None:
        if broker not in self.brokers:
            self.brokers[broker] = BrokerProcess(self.context, broker, self.disks[broker], self._stopped)

    def kill_broker(self, broker: int) -> None:
        """SIGKILL: the page cache survives."""
        process = self.brokers.pop(broker, None)
        if process is not None:
            process.stop()

    def power_off(self, brokers: Iterable[int]) -> None:
        """What was not flushed is gone. Of a broker that is down already the page cache goes too."""
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
                    self.watch(BrokerStopped(broker, clean=False, power_lost=True))

    def shut_down_broker(self, broker: int) -> None:
        """A controlled shutdown: it ends when a controller has agreed."""
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
        """The files of one partition fail, in a log dir that is good."""
        self.disks[broker].bad[tp] = None
        self.history.add(f"broker-{broker}", f"the files of {tp} fail")

    def replace_log_dir(self, broker: int, directory: int) -> None:
        """A new, empty disk. Raises ValueError while the broker runs: Kafka looks at its dirs when it starts."""
        if broker in self.brokers:
            raise ValueError(f"broker {broker} runs: stop it before its disk is replaced")
        self._replaced += 1
        self.disks[broker].replace(directory, directory_id(broker, directory, self._replaced))
        self.disks[broker].clean_shutdown_epoch = None
        self.history.add(f"broker-{broker}", f"log dir {directory} replaced by an empty one")
        self.watch(DiskLost(broker))

    # Controllers.

    def start_controller(self, controller: int) -> None:
        if controller not in self.controllers:
            self.controllers[controller] = ControllerProcess(self.context, controller)

    def kill_controller(self, controller: int) -> None:
        process = self.controllers.pop(controller, None)
        if process is not None:
            process.stop()

    def failover(self, to: int) -> None:
        """Make ``to`` the active controller, where the metadata log has a designated one and no elections."""
        log = self.context.metadata
        assert isinstance(log, SoloLog)
        log.failover(to)

    @property
    def active(self) -> ControllerProcess | None:
        """The controller that acts; where two believe that they do, the one with the newer metadata."""
        acting = [process for process in self.controllers.values() if process.active is not None]
        return max(acting, key=lambda process: self.context.metadata.leads(process.id), default=None)


def _nobody(_source: Node, _body: Any, _answer: Answer) -> None:
    """Nobody asks the operator anything."""
