"""The frozen description of a cluster for tests, and the ``server.properties`` that follow from it.

Property names and their meaning: Kafka's broker and controller configuration reference, KIP-853 (dynamic
quorum) and KIP-966 (ELR).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from testbed.kafka.errors import TestbedError
from testbed.kafka.jars import DEFAULT_VERSION
from testbed.kafka.listeners import ClientListener, SecurityFiles, internal_properties, listener_properties

FIRST_CONTROLLER = 100
FIRST_BROKER = 1
CONTROLLER_LISTENER = "CONTROLLER"
INTERNAL_LISTENER = "INTERNAL"
LOOPBACK = "127.0.0.1"
JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A node then needs about 250 MB and starts quickly; for thousands of logs, add ``-Xmx1500m``."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The cluster to create. Controllers have the node ids 100, 101, ... and brokers 1, 2, ...

    One controller is enough for most tests, and each more costs CPU; what loses a controller, or looks at voters,
    says ``controllers=3``.
    ``elr`` is the feature eligible.leader.replicas.version=1 (4.0 and later); None means on where there is one.
    ``spare_controllers`` have the next ids and ports. They are not formatted or started: a test lets them join.
    ``quorum`` "static" uses controller.quorum.voters (kraft.version 0). ``racks`` maps node ids to racks.
    ``broker_config``, ``controller_config`` and, for single nodes, ``node_config`` override the defaults.
    ``jvm`` are the flags of every node. With ``authorizer``, StandardAuthorizer decides; ``super_users`` may do
    all, others (and unauthenticated clients) what ACLs allow. ``users`` maps names to passwords, for SCRAM (made
    when the storage is formatted) and PLAIN; OAUTHBEARER and mutual TLS take names from token and certificate.
    With ``cuttable_links`` the nodes of a dynamic quorum reach each other through proxies (``cluster.links``).
    ``node_versions`` are the Kafka versions of single nodes, newer than ``version``, by which all are formatted.
    With ``combined`` the first brokers are the controllers too. With ``controller_tls`` the controllers' listener
    asks everybody for a certificate (of the name "broker").
    """

    version: str = DEFAULT_VERSION
    controllers: int = 1
    brokers: int = 3
    spare_controllers: int = 0
    log_dirs: int = 1
    elr: bool | None = None
    quorum: Literal["dynamic", "static"] = "dynamic"
    racks: Mapping[int, str] = field(default_factory=dict)
    broker_config: Mapping[str, str] = field(default_factory=dict)
    controller_config: Mapping[str, str] = field(default_factory=dict)
    node_config: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    jvm: tuple[str, ...] = JVM_FLAGS
    listeners: tuple[ClientListener, ...] = (ClientListener(),)
    users: Mapping[str, str] = field(default_factory=dict)
    super_users: tuple[str, ...] = ("admin",)
    authorizer: bool = False
    cuttable_links: bool = False
    node_versions: Mapping[int, str] = field(default_factory=dict)
    combined: bool = False
    controller_tls: bool = False

    def __post_init__(self) -> None:
        if self.controllers < 1 or self.brokers < 0 or self.log_dirs < 1 or not self.listeners:
            raise TestbedError("a cluster has at least one controller, one log dir and one client listener")
        if self.combined and (
            self.spare_controllers or self.cuttable_links or self.brokers < self.controllers
        ):
            raise TestbedError(
                "combined nodes are as many brokers as controllers, or more, without links or spares"
            )
        if self.elr and not self.has_elr_feature:
            raise TestbedError(f"Kafka {self.version} has no feature eligible.leader.replicas.version")
        if self.cuttable_links and self.quorum == "static":
            raise TestbedError(
                "links can be cut only where the controllers advertise addresses (a dynamic quorum)"
            )

    @property
    def controller_ids(self) -> tuple[int, ...]:
        first = FIRST_BROKER if self.combined else FIRST_CONTROLLER
        return tuple(range(first, first + self.controllers))

    @property
    def spare_ids(self) -> tuple[int, ...]:
        first = FIRST_CONTROLLER + self.controllers
        return tuple(range(first, first + self.spare_controllers))

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(range(FIRST_BROKER, FIRST_BROKER + self.brokers))

    @property
    def has_elr_feature(self) -> bool:
        return int(self.version.split(".")[0]) >= 4

    @property
    def secured(self) -> bool:
        """Whether the internal listeners authenticate too, so that ANONYMOUS needs no rights."""
        return self.authorizer

    def features(self) -> tuple[str, ...]:
        """``name=level`` for ``kafka-storage format --feature``."""
        if not self.has_elr_feature:
            return ()
        return (f"eligible.leader.replicas.version={0 if self.elr is False else 1}",)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The advertised loopback ports: one for each controller and spare; one for each broker and listener name.

    ``behind_proxy`` has the port on which a node itself listens, by the advertised one, where the two differ.
    """

    controllers: Mapping[int, int]
    brokers: Mapping[tuple[int, str], int]
    spares: Mapping[int, int] = field(default_factory=dict)
    behind_proxy: Mapping[int, int] = field(default_factory=dict)

    def listening(self, advertised: int) -> int:
        """The port on which the node itself listens."""
        return self.behind_proxy.get(advertised, advertised)

    def internal(self, node_id: int) -> int:
        """The advertised port that other nodes use."""
        port = self.controller(node_id)
        return self.brokers[node_id, INTERNAL_LISTENER] if port is None else port

    def controller(self, node_id: int) -> int | None:
        """The port of a controller or spare; None for a broker."""
        return self.controllers.get(node_id, self.spares.get(node_id))

    def of_controllers(self) -> str:
        return ",".join(f"{LOOPBACK}:{port}" for port in self.controllers.values())

    def of_brokers(self, listener: str) -> str:
        return ",".join(f"{LOOPBACK}:{port}" for (_, name), port in self.brokers.items() if name == listener)


_CONTROLLER_TLS = ClientListener(CONTROLLER_LISTENER, "SSL", client_certificates=True)


def node_properties(
    spec: ClusterSpec,
    addresses: Addresses,
    node_id: int,
    log_dirs: tuple[Path, ...],
    files: SecurityFiles | None,
) -> dict[str, str]:
    """The ``server.properties`` of one node as an ordered mapping."""
    is_broker = node_id in spec.broker_ids
    if addresses.controller(node_id) is None:
        properties = _broker(spec, addresses, node_id)
    elif is_broker:
        properties = _combined(_controller(spec, addresses, node_id), _broker(spec, addresses, node_id))
    else:
        properties = _controller(spec, addresses, node_id)
    extra = spec.broker_config if is_broker else spec.controller_config
    properties |= _quorum(spec, addresses)
    properties["log.dirs"] = ",".join(map(str, log_dirs))
    if spec.secured:
        properties |= internal_properties(
            (INTERNAL_LISTENER, CONTROLLER_LISTENER), spec.users, spec.super_users
        )
    if spec.controller_tls:
        properties |= listener_properties(_CONTROLLER_TLS, {}, files)
    if is_broker:
        for listener in spec.listeners:
            properties |= listener_properties(listener, spec.users, files)
    return properties | dict(extra) | dict(spec.node_config.get(node_id, {}))


def as_text(properties: Mapping[str, str]) -> str:
    """Java's properties format; a backslash is the only character of our values that it treats specially."""
    return "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in properties.items())


def _quorum(spec: ClusterSpec, addresses: Addresses) -> dict[str, str]:
    # The timeouts of elections are Kafka's own: with shorter ones, a quorum of three on an overloaded machine goes
    # from election to election without a leader, and brokers end because nobody registers them.
    listener = {"controller.listener.names": CONTROLLER_LISTENER}
    if spec.quorum == "static":
        voters = (f"{node}@{LOOPBACK}:{port}" for node, port in addresses.controllers.items())
        return listener | {"controller.quorum.voters": ",".join(voters)}
    return listener | {"controller.quorum.bootstrap.servers": addresses.of_controllers()}


def _controller(spec: ClusterSpec, addresses: Addresses, node_id: int) -> dict[str, str]:
    port = addresses.internal(node_id)
    advertised = f"{CONTROLLER_LISTENER}://{LOOPBACK}:{port}"
    return {
        "process.roles": "controller",
        "node.id": str(node_id),
        "listeners": f"{CONTROLLER_LISTENER}://{LOOPBACK}:{addresses.listening(port)}",
        **({} if spec.quorum == "static" else {"advertised.listeners": advertised}),
        "listener.security.protocol.map": _protocol_map(spec),
        # The controller uses this to fence a broker that stopped sending heartbeats.
        "broker.session.timeout.ms": "3000",
        "unclean.leader.election.enable": "false",
    }


def _broker(spec: ClusterSpec, addresses: Addresses, node_id: int) -> dict[str, str]:
    own = {name: port for (node, name), port in addresses.brokers.items() if node == node_id}
    replication = str(min(3, spec.brokers))
    rack = spec.racks.get(node_id)
    return {
        "process.roles": "broker",
        "node.id": str(node_id),
        **({"broker.rack": rack} if rack else {}),
        "listeners": _listeners({name: addresses.listening(port) for name, port in own.items()}),
        "advertised.listeners": _listeners(own),
        "listener.security.protocol.map": _protocol_map(spec),
        "inter.broker.listener.name": INTERNAL_LISTENER,
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # A broker that finds no leader of the quorum asks again so often: with Kafka's 20 ms it keeps a core busy.
        "controller.quorum.retry.backoff.ms": "200",
        "unclean.leader.election.enable": "false",
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": replication,
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": replication,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": replication,
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        # The cleaner's default buffer is half of a small heap.
        "log.cleaner.dedupe.buffer.size": "4194304",
    }


def _combined(controller: Mapping[str, str], broker: Mapping[str, str]) -> dict[str, str]:
    """A node of both roles: the settings of both, and the listeners of both side by side."""
    both = ("process.roles", "listeners", "advertised.listeners")
    joined = {name: f"{broker[name]},{controller[name]}" for name in both if name in controller}
    return {**controller, **broker, **joined}


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items())


def _protocol_map(spec: ClusterSpec) -> str:
    internal = "SASL_PLAINTEXT" if spec.secured else "PLAINTEXT"
    names = {
        CONTROLLER_LISTENER: _CONTROLLER_TLS.protocol if spec.controller_tls else internal,
        INTERNAL_LISTENER: internal,
    }
    names |= {listener.name: listener.protocol for listener in spec.listeners}
    return ",".join(f"{name}:{protocol}" for name, protocol in names.items())
