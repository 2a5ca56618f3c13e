"""Checks that a fault names nodes that it can happen to: brokers or controllers, and existing log dirs."""

from __future__ import annotations

from collections.abc import Sequence

from backends.simulator.network import NetworkNode, NetworkRole
from backends.simulator.scenario.errors import MisplacedValue
from backends.simulator.scenario.faults import (
    BrokerFault,
    ControllerFault,
    ControllerMove,
    DiskFault,
    Fault,
    PartitionFault,
    VoterChangeFault,
)
from backends.simulator.topology import Topology

_OF_BROKERS = (BrokerFault, DiskFault, PartitionFault)
_OF_CONTROLLERS = (ControllerFault, ControllerMove, VoterChangeFault)
_OF_A_CONTROLLER = {
    "kill": "kill-controller",
    "power-off": "kill-controller",
    "start": "start-controller",
    "break-disk": "break-controller-disk",
    "replace-disk": "replace-controller-disk",
}


def check_kind(fault: Fault, found: Sequence[NetworkNode], path: tuple[int | str, ...]) -> None:
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


def check_log_dir(
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
