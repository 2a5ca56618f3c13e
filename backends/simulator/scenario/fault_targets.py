"""What the names in a fault stand for: nodes, racks and partitions; and whether the fault can happen to them."""

from __future__ import annotations

from collections.abc import Sequence

from backends.base.consumer_groups import TRANSACTIONS_TOPIC
from backends.simulator.network import OPERATOR, NetworkNode, NetworkRole
from backends.simulator.scenario.errors import MisplacedValue
from backends.simulator.scenario.faults import (
    BrokerFault,
    ConfigFault,
    ControllerFault,
    ControllerMove,
    DiskFault,
    Fault,
    FileEdit,
    PartitionFault,
    ReassignmentFault,
    TopicCreation,
    TransactionalRecords,
    TransactionEnd,
    VoterChangeFault,
)
from backends.simulator.topology import BrokerSpec, Topology
from recovery.model import TopicPartition

_OF_BROKERS = (BrokerFault, DiskFault, FileEdit, PartitionFault)
_OF_CONTROLLERS = (ControllerFault, ControllerMove, VoterChangeFault)
_OF_A_CONTROLLER = {
    "kill": "kill-controller",
    "power-off": "kill-controller",
    "start": "start-controller",
    "break-disk": "break-controller-disk",
    "replace-disk": "replace-controller-disk",
}


def nodes(given: tuple[str, ...], topology: Topology, path: tuple[int | str, ...]) -> tuple[NetworkNode, ...]:
    """The nodes of ``broker-1``, ``controller-100``, ``operator``, ``brokers``, ``controllers`` or a rack,
    ``rack-a``. Raises MisplacedValue.
    """
    found: dict[NetworkNode, None] = {}
    for name in given:
        matching = _named(name, topology)
        if not matching:
            raise MisplacedValue(
                path, f"a node (broker-ID, controller-ID, rack-NAME, brokers, controllers), not {name!r}"
            )
        found.update(dict.fromkeys(matching))
    return tuple(found)


def _named(name: str, topology: Topology) -> list[NetworkNode]:
    brokers = [NetworkNode(NetworkRole.BROKER, spec.id) for spec in topology.brokers]
    controllers = [NetworkNode(NetworkRole.CONTROLLER, number) for number in topology.every_controller]
    if name in ("brokers", "controllers", "operator"):
        return {"brokers": brokers, "controllers": controllers, "operator": [OPERATOR]}[name]
    if name.startswith("rack-"):
        rack = name.removeprefix("rack-")
        return [NetworkNode(NetworkRole.BROKER, spec.id) for spec in topology.brokers if spec.rack == rack]
    return [node for node in (*brokers, *controllers) if str(node) == name]


def others(inside: tuple[NetworkNode, ...], topology: Topology) -> tuple[NetworkNode, ...]:
    """Every broker and controller that is not in ``inside``; never the operator."""
    everybody = nodes(("brokers", "controllers"), topology, ())
    return tuple(node for node in everybody if node not in inside)


def partition(text: str, topology: Topology, path: tuple[int | str, ...]) -> TopicPartition:
    """Parses ``topic-3``. Raises MisplacedValue."""
    topic, _, number = text.rpartition("-")
    known = {spec.name: spec.partitions for spec in topology.topics}
    if topic not in known or not number.isdecimal() or int(number) >= known[topic]:
        raise MisplacedValue(path, f"an existing partition (TOPIC-NUMBER), not {text!r}")
    return TopicPartition(topic, int(number))


def check_fault(fault: Fault, topology: Topology, path: tuple[int | str, ...]) -> None:
    """Checks that the fault names existing targets of the right kind. Raises MisplacedValue."""
    for key in ("nodes", "others", "node", "target", "source"):
        given = getattr(fault, key, None)
        if given and given != ("others",):
            one = isinstance(given, str)
            found = nodes((given,) if one else given, topology, (*path, key))
            _check_kind(fault, found, (*path, key))
            if one and len(found) != 1:
                raise MisplacedValue((*path, key), f"one node; {given} are {len(found)} nodes")
            _check_log_dir(fault, found, topology, (*path, "log_dir"))
    named = getattr(fault, "partition", None)
    if named is not None:
        partition(named, topology, (*path, "partition"))
    for index, name in enumerate(getattr(fault, "partitions", ())):
        partition(name, topology, (*path, "partitions", index))
    if isinstance(fault, ReassignmentFault) and fault.replicas is not None:
        check_replicas(fault.replicas, topology.brokers, (*path, "replicas"))
    if isinstance(fault, TopicCreation):
        for index, replicas in enumerate(fault.replicas):
            check_replicas(replicas, topology.brokers, (*path, "replicas", index))
    if isinstance(fault, ConfigFault) and fault.broker is not None:
        if fault.topic:
            raise MisplacedValue((*path, "broker"), "a topic or a broker, not both")
        if all(spec.id != fault.broker for spec in topology.brokers):
            raise MisplacedValue((*path, "broker"), "the id of a broker")
    coordinated = isinstance(fault, TransactionalRecords | TransactionEnd)
    if coordinated and all(topic.name != TRANSACTIONS_TOPIC for topic in topology.topics):
        raise MisplacedValue(
            (*path, "do"), f"a topic {TRANSACTIONS_TOPIC} in the scenario, for its coordinators"
        )


def check_replicas(
    replicas: tuple[int, ...], brokers: Sequence[BrokerSpec], path: tuple[int | str, ...]
) -> None:
    """As the controller checks an assignment (ReplicationControlManager). Raises MisplacedValue."""
    known = {spec.id for spec in brokers}
    if not replicas or len(set(replicas)) != len(replicas) or not known.issuperset(replicas):
        raise MisplacedValue(path, f"{list(replicas)} is not a set of brokers of the cluster")


def _check_kind(fault: Fault, found: Sequence[NetworkNode], path: tuple[int | str, ...]) -> None:
    """``found`` are the nodes named at ``path``. Raises MisplacedValue if the fault cannot happen to one."""
    if isinstance(fault, _OF_BROKERS):
        role = NetworkRole.BROKER
    elif isinstance(fault, _OF_CONTROLLERS):
        role = NetworkRole.CONTROLLER
    else:
        return
    wrong = next((node for node in found if node.role is not role), None)
    if wrong is None:
        return
    instead = _OF_A_CONTROLLER.get(fault.do) if wrong.role is NetworkRole.CONTROLLER else None
    hint = f" (for a controller: {instead})" if instead else ""
    raise MisplacedValue(path, f"a {role.value}, not {wrong}{hint}")


def _check_log_dir(
    fault: Fault, found: Sequence[NetworkNode], topology: Topology, path: tuple[int | str, ...]
) -> None:
    """``found`` are brokers. Raises MisplacedValue if one of them has no such log dir."""
    if not isinstance(fault, DiskFault):
        return
    ids = {node.id for node in found}
    for spec in topology.brokers:
        if spec.id in ids and fault.log_dir >= spec.log_dirs:
            raise MisplacedValue(
                path, f"a log dir of broker-{spec.id}, counted from 0 and below {spec.log_dirs}"
            )
