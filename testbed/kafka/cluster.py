"""A real Apache Kafka cluster on loopback: create, start, break, restore and remove it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient

from testbed.kafka.access_control import AccessControl
from testbed.kafka.certificates import Authority
from testbed.kafka.class_archive import class_archive
from testbed.kafka.client import Client
from testbed.kafka.client_config import ClientConfigs
from testbed.kafka.cluster_metadata import ClusterMetadata
from testbed.kafka.config import (
    INTERNAL_LISTENER,
    JVM_FLAGS,
    LOOPBACK,
    Addresses,
    ClusterSpec,
    node_properties,
)
from testbed.kafka.errors import NodeDied, TestbedError, TimedOut
from testbed.kafka.format_storage import StorageFormatter, new_uuid
from testbed.kafka.jars import kafka_jars
from testbed.kafka.java_tools import JavaRunner, Tools
from testbed.kafka.links import Links
from testbed.kafka.listeners import INTERNAL_PASSWORD, INTERNAL_USER, SecurityFiles
from testbed.kafka.maven_jars import to_stderr
from testbed.kafka.node import Node
from testbed.kafka.ports import PortReservation
from testbed.kafka.work_directory import WorkDirectory

_START_SECONDS = 120.0
_STARTS = 3


class KafkaCluster:
    """A cluster as ``spec`` describes it. As a context manager it runs inside the block and is removed after it.

    Its files are in ``directory``, by default a new temporary one that ``stop`` removes. ``start`` raises
    TestbedError (one line, then the end of the log of the node that did not start) and leaves nothing running.
    ``run_tools`` makes the runner of Java's tools and of ``kafka-storage format`` from the one with processes.
    """

    def __init__(
        self,
        spec: ClusterSpec = ClusterSpec(),  # noqa: B008 - frozen
        *,
        directory: Path | None = None,
        say: Callable[[str], None] | None = None,
        run_tools: Callable[[JavaRunner], JavaRunner] = lambda runner: runner,
    ) -> None:
        self.spec = spec
        self._run_tools = run_tools
        self.cluster_id = new_uuid()
        self._say = say
        self._given_directory = directory
        self._work: WorkDirectory | None = None
        self._ports: PortReservation | None = None
        self._links: Links | None = None
        self._security_files: SecurityFiles | None = None
        self._nodes: dict[int, Node] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def directory(self) -> Path:
        """Where the nodes' files are. Raises TestbedError before ``start``."""
        if self._work is None:
            raise TestbedError("the cluster has not been started")
        return self._work.path

    @property
    def links(self) -> Links:
        """Cuts the link between two nodes. Raises TestbedError if the cluster has no cuttable links."""
        if self._links is None:
            raise TestbedError("the links of this cluster cannot be cut; see ClusterSpec.cuttable_links")
        return self._links

    @property
    def brokers(self) -> dict[int, Node]:
        return {node.id: node for node in self._nodes.values() if node.role == "broker"}

    @property
    def controllers(self) -> dict[int, Node]:
        """Also those that are brokers too."""
        ids = (*self.spec.controller_ids, *self.spec.spare_ids)
        return {node.id: node for node in self._nodes.values() if node.id in ids}

    def node(self, node_id: int) -> Node:
        """The broker or controller of that id. Raises TestbedError if there is none."""
        if node_id not in self._nodes:
            raise TestbedError(f"there is no node {node_id}; there are {', '.join(map(str, self._nodes))}")
        return self._nodes[node_id]

    def bootstrap(self, listener: str | None = None) -> str:
        """``host:port,...`` of all brokers at a client listener, by default the first."""
        return self._addresses.of_brokers(listener or self.spec.listeners[0].name)

    @property
    def bootstrap_controllers(self) -> str:
        return self._addresses.of_controllers()

    def controller_address(self, node_id: int) -> str:
        """``host:port`` where a controller listens for the others."""
        return f"{LOOPBACK}:{self._addresses.controller(node_id)}"

    @cached_property
    def metadata(self) -> ClusterMetadata:
        """What the brokers say about the cluster, and waiting until they say it."""
        ports = {node: self._addresses.brokers[node, INTERNAL_LISTENER] for node in self.spec.broker_ids}
        credentials = (INTERNAL_USER, INTERNAL_PASSWORD) if self.spec.secured else None
        return ClusterMetadata(self._nodes, ports, credentials)

    @property
    def admin(self) -> AdminClient:
        """A new AdminClient of confluent-kafka as superuser, on the internal listener. One that has sent requests
        goes on waiting for the broker that it then took for the controller, also where that one was killed since.
        """
        # A client that nobody holds any more takes its unanswered requests with it.
        self._newest_admin = AdminClient({**self.superuser_config()})
        return self._newest_admin

    @cached_property
    def client(self) -> Client:
        """Creates topics, produces and consumes."""
        return Client(lambda: self.admin, self.metadata, self.superuser_config(), self._reader_config())

    @property
    def tools(self) -> Tools:
        """Java's admin tools as superuser: ``cluster.tools("kafka-topics", "--describe")``."""
        return Tools(
            self._run_tools(self._runner),
            self._internal_bootstrap(),
            self.client_configs.internal_properties(),
            self.spec.version,
        )

    def _internal_bootstrap(self) -> str:
        """Without the brokers that are paused: a client may wait for one of them until it gives up."""
        ports = self._addresses.brokers
        asked = [node for node, broker in self.brokers.items() if not broker.is_paused] or self.brokers
        return ",".join(f"{LOOPBACK}:{ports[node, INTERNAL_LISTENER]}" for node in asked)

    @cached_property
    def access_control(self) -> AccessControl:
        """Adds ACLs and SCRAM users, as superuser."""
        return AccessControl(self.admin)

    def superuser_config(self, broker: int | None = None) -> dict[str, str | int]:
        """confluent-kafka's settings for the testbed's own superuser on the internal listener, of ``broker`` alone
        or of all.
        """
        alone = "" if broker is None else f"{LOOPBACK}:{self._addresses.brokers[broker, INTERNAL_LISTENER]}"
        return {
            **self.client_configs.internal_settings(),
            "bootstrap.servers": alone or self._internal_bootstrap(),
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            # Brokers die here all the time; errors are returned as results.
            "log_level": 0,
        }

    def _reader_config(self) -> dict[str, object]:
        settings = self.client_configs.internal_settings()
        config: dict[str, object] = {"bootstrap_servers": settings["bootstrap.servers"]}
        if "sasl.username" in settings:
            config |= {
                "security_protocol": settings["security.protocol"],
                "sasl_mechanism": settings["sasl.mechanism"],
                "sasl_plain_username": settings["sasl.username"],
                "sasl_plain_password": settings["sasl.password"],
            }
        return config

    def start(self) -> None:
        """Creates, formats and starts all nodes; returns when every broker is unfenced."""
        if self._nodes:
            raise TestbedError("this cluster was started before; create a new one")
        try:
            self._lay_out()
            self._format_and_start()
            self._wait_first()
        except BaseException:
            self.stop()
            raise

    def _wait_first(self) -> None:
        """As :meth:`_wait_up`; a node that ended is started again, as a service manager would, and reported.

        Seen on a busy machine: a broker that cannot register within a minute ends itself. All starts together have
        ``_START_SECONDS``.
        """
        deadline = time.monotonic() + _START_SECONDS
        for _ in range(_STARTS - 1):
            try:
                self._wait_up(deadline - time.monotonic())
            except NodeDied as error:
                ended = [node for node in self._nodes.values() if node.directory_id and not node.is_running]
                if not ended:
                    raise
                (self._say or to_stderr)(f"started again: {error}")
                for node in ended:
                    if node.role == "broker":
                        node.forget_quorum_leader()
                    node.start()
            else:
                return
        self._wait_up(deadline - time.monotonic())

    def _wait_up(self, timeout: float = _START_SECONDS) -> None:
        """Until no broker is fenced. Raises NodeDied, with the ends of all nodes' logs."""
        if not self.spec.brokers:
            return
        started = [node.id for node in self._nodes.values() if node.directory_id]
        try:
            self.metadata.wait_live(self.spec.broker_ids, timeout, started=started)
        except (TimedOut, NodeDied) as error:
            tails = (f"{node.role} {node.id}: {node.log_tail(12)}" for node in self._nodes.values())
            raise NodeDied("\n".join((str(error), *tails))) from None

    def stop(self) -> None:
        """Kills every node and removes the files; may be called in any state, also twice."""
        for node in self._nodes.values():
            node.kill()
        if self._work is not None:
            self._work.release()
        if self._links is not None:
            self._links.close()
        if self._ports is not None:
            self._ports.release()

    def bring_all_up(self) -> None:
        """Starts or resumes every node, with empty disks in place of lost ones; waits until no broker is fenced.

        Topics and logs stay as an incident left them.
        """
        for node in self._nodes.values():
            if not node.directory_id:
                continue  # a spare controller that never joined
            node.resume()
            missing = [log_dir for log_dir in node.log_dirs if not log_dir.is_dir()]
            if missing:
                node.kill()
                self._formatter.again(node)
            node.start()
        self._wait_up()

    def format_again(self, node_id: int, *, standalone: bool = False) -> str:
        """Wipe all log dirs of a stopped node and format it for joining the running cluster.

        Returns the new directory id. A controller is formatted with ``--no-initial-controllers``: it comes back as
        an observer, to be added as a voter; with ``standalone`` it has a quorum of its own.
        """
        node = self.node(node_id)
        for index in range(len(node.log_dirs)):
            node.wipe_log_dir(index)
        self._formatter.again(node, standalone=standalone)
        return node.directory_id

    def set_bootstrap_controllers(self, controllers: Iterable[int]) -> None:
        """Write controller.quorum.bootstrap.servers on every host, as an operator does; nothing is restarted."""
        servers = ",".join(f"{LOOPBACK}:{self.node(node_id).port}" for node_id in controllers)
        for node in self._nodes.values():
            node.change_properties({"controller.quorum.bootstrap.servers": servers})

    def replace_log_dir(self, node_id: int, index: int) -> None:
        """Replaces one log dir of a stopped node with an empty, formatted one that has a new directory id."""
        node = self.node(node_id)
        node.wipe_log_dir(index)
        self._formatter.again(node)

    def _lay_out(self) -> None:
        spec = self.spec
        programs = {version: self._jars(version) for version in (spec.version, *spec.node_versions.values())}
        self._work = WorkDirectory(self._given_directory)
        listeners = (INTERNAL_LISTENER, *(listener.name for listener in spec.listeners))
        node_ids = tuple(dict.fromkeys((*spec.controller_ids, *spec.broker_ids, *spec.spare_ids)))
        self._ports = PortReservation(
            spec.controllers
            + spec.brokers * len(listeners)
            + spec.spare_controllers
            + spec.cuttable_links * len(node_ids)
        )
        ports = iter(self._ports.ports)
        self._addresses = Addresses(
            controllers={node: next(ports) for node in spec.controller_ids},
            brokers={(node, name): next(ports) for node in spec.broker_ids for name in listeners},
            spares={node: next(ports) for node in spec.spare_ids},
        )
        if spec.cuttable_links:
            self._links = self._make_links(node_ids, ports)
        authority = self._make_authority()
        self.client_configs = ClientConfigs(spec, self._addresses, self.directory, authority)
        self._runners = {
            version: JavaRunner(jars, spec.jvm, self.directory, archive)
            for version, (jars, archive) in programs.items()
        }
        for node_id in node_ids:
            self._nodes[node_id] = self._make_node(node_id)
        voters = {node: new_uuid() for node in spec.controller_ids}
        self._formatter = StorageFormatter(
            spec, self.cluster_id, self._addresses, voters, self._run_tools(self._runner)
        )

    @staticmethod
    def _jars(version: str) -> tuple[tuple[Path, ...], Path | None]:
        jars = kafka_jars(version)
        return jars, class_archive(jars, JVM_FLAGS, to_stderr)

    @property
    def _runner(self) -> JavaRunner:
        return self._runners[self.spec.version]

    def _make_links(self, node_ids: Iterable[int], ports: Iterator[int]) -> Links:
        """A proxy at the port that each node advertises to the others; the node listens on a port of its own."""
        proxied = {node: (self._addresses.internal(node), next(ports)) for node in node_ids}
        self._addresses = replace(self._addresses, behind_proxy=dict(proxied.values()))
        return Links(proxied)

    def _make_authority(self) -> Authority | None:
        if not (self.spec.controller_tls or any(listener.encrypted for listener in self.spec.listeners)):
            return None
        authority = Authority(self.directory / "certificates")
        self._security_files = SecurityFiles(authority.certificate, authority.issue("broker").keystore)
        return authority

    def _make_node(self, node_id: int) -> Node:
        ports = self._addresses
        controller = node_id not in self.spec.broker_ids
        count = 1 if controller else self.spec.log_dirs
        directory = self.directory / f"node-{node_id}"
        log_dirs = tuple(directory / f"data-{index}" for index in range(count))
        port = ports.internal(node_id) if controller else ports.brokers[node_id, self.spec.listeners[0].name]
        node = Node(
            node_id,
            role="controller" if controller else "broker",
            directory=directory,
            log_dirs=log_dirs,
            port=port,
            runner=self._runners[self.spec.node_versions.get(node_id, self.spec.version)],
        )
        node.write_properties(node_properties(self.spec, ports, node_id, log_dirs, self._security_files))
        return node

    def _format_and_start(self) -> None:
        def bring_up(role: tuple[Node, ...]) -> None:
            self._report(f"formatting {', '.join(f'{node.role} {node.id}' for node in role)}")
            self._formatter.first(role)
            for node in role:
                self._report(f"starting {node.role} {node.id} on port {node.port}")
                node.start()

        controllers = tuple(self._nodes[node] for node in self.spec.controller_ids)
        brokers = tuple(node for node in self.brokers.values() if node not in controllers)
        roles = tuple(role for role in (controllers, brokers) if role)
        with ThreadPoolExecutor(len(roles), thread_name_prefix="testbed-format") as pool:
            for future in [pool.submit(bring_up, role) for role in roles]:
                future.result()

    def _report(self, line: str) -> None:
        if self._say is not None:
            self._say(line)
