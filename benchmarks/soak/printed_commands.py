"""Every command that is printed can be carried out: all scenarios on served clusters, with more faults."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.scenario.files import names, read
from backends.simulator.served.api_versions import hidden
from backends.simulator.served.control_socket import ControlError, checked, inject, read_fault
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from benchmarks.soak import SoakOptions
from tests.command_server import Ended
from tests.unit.cli.command_process import Caller
from tests.unit.cli.command_walk import AGREED, CommandWalk
from tests.wire.cluster_thread import ClusterThread

LARGE = {"offline-2000", "partitions-200000"}
SILENT = ("disk-failure", "last-replica-standing", "one-sided-cuts")
"""Scenarios in which nodes are silent too: each command then waits for answers, so that a walk takes minutes."""
RELEASED = "GetReplicaLogInfo,ElectLeaders:3"
"""What no Kafka release offers."""
SETTLE, SPEED = 20.0, 5.0
"""Virtual seconds after each fault, and a real second."""
UNSERVED = "heal unregister"
"""A served cluster does not unregister brokers."""
MOST = 250
PORTS = 40


class WalkedIncident(NamedTuple):
    """A scenario, and what is done to it afterwards, as ``simulate fault`` takes it; with ``elected``, after its
    partitions were recovered. ``without`` are calls that are not offered.
    """

    scenario: str
    faults: tuple[str, ...]
    without: str
    elected: bool = False

    def __str__(self) -> str:
        faults = ("recovered", *self.faults) if self.elected else self.faults
        return f"{self.scenario} ({'; '.join(faults) or 'as it is'}{', native calls' * (not self.without)})"


def walked_incidents() -> Iterator[WalkedIncident]:
    """What is met most often first."""
    scenarios = [name for name in names() if name not in LARGE]
    for kind in range(len(_faults(scenarios[0]))):
        for number, name in enumerate(scenarios):
            yield WalkedIncident(name, _faults(name)[kind], RELEASED if (number + kind) % 3 else "")
    for name in scenarios:
        if read(name).offline:
            for faults in (_faults(name)[1], _faults(name)[5]):
                yield WalkedIncident(name, faults, RELEASED, elected=True)
    for name in SILENT:
        for faults in _silences(name):
            yield WalkedIncident(name, faults, RELEASED)


def _faults(scenario: str) -> tuple[tuple[str, ...], ...]:
    topology = read(scenario).topology
    brokers = [f"broker-{spec.id}" for spec in topology.brokers]
    second, last = brokers[1], brokers[-1]
    return (
        (),
        (f"start {' '.join(brokers)}",),
        (f"break-disk {second}", f"kill {second}"),
        ("kill brokers",),
        (f"kill {last}", f"replace-disk {last}", f"start {last}"),
        (f"kill {second}",),
        (f"kill-controller controller-{min(topology.controllers)}",),
    )


def _silences(scenario: str) -> tuple[tuple[str, ...], ...]:
    topology = read(scenario).topology
    broker = f"broker-{topology.brokers[0].id}"
    dead = tuple(f"kill-controller controller-{number}" for number in topology.controllers)
    return (
        dead,
        (*dead, f"kill {broker}"),
        (f"cut {broker} others=[operator]",),
        (f"cut {broker}",),
        ("cut controllers others=[operator]",),
        (f"power-off {broker}",),
    )


def _first(cluster: ServedCluster) -> Iterator[tuple[str, ...]]:
    controllers = ("--bootstrap-controller", cluster.bootstrap_controllers)
    for name in ("status", "check", "log-dirs", "handover", "report", "resume", "timeline"):
        yield (name,)
    for words in (("quorum", "status"), ("quorum", "replication"), ("resume",), ("handover",)):
        yield (*words, *controllers)
    yield "plan", "--all-offline-partitions", "--strategy", "aggressive", "recovery.json"
    yield "plan", "balanced.json"
    yield "replicas", "--all-offline-partitions"
    yield "groups", "show"
    yield "transactions", "show"
    topology = cluster.scenario.topology
    for controller in topology.controllers:
        yield "quorum", "replace", str(controller), "--why", "disk", "--dry-run"
    for broker in topology.brokers:
        yield "heal", "show", "--broker-id", str(broker.id), "--gone-for-good"
        yield "log-dirs", "--if-fails", str(broker.id)


class _ServedIncident:
    """The served cluster of one incident, made again for each state that is needed."""

    def __init__(self, incident: WalkedIncident, caller: Caller) -> None:
        self._incident = incident
        self._caller = caller
        self._open = ExitStack()
        self._base = _free_ports()
        self.begin()

    @property
    def where(self) -> tuple[str, str]:
        return "--bootstrap-server", self.cluster.bootstrap

    def begin(self) -> None:
        """A new cluster at the same ports."""
        self._open.close()
        options = ServedClusterOptions(
            speed=SPEED, port_base=self._base, without=hidden(self._incident.without)
        )
        self.served = self._open.enter_context(ClusterThread(read(self._incident.scenario), options))
        self.cluster = self.served.cluster
        if self._incident.elected:
            self._elect()
        for fault in self._incident.faults:
            self._inject(fault)

    def _elect(self) -> None:
        plan = ("plan", "--all-offline-partitions", "--strategy", "aggressive", "first.json")
        for words in (plan, ("apply", "first.json", *AGREED)):
            self._caller("ktriage", *words, *self.where)

    def _inject(self, fault: str) -> None:
        def happens(cluster: ServedCluster) -> None:
            with suppress(ControlError):  # a broker that the scenario has killed already
                inject(cluster, checked(read_fault(fault.split()), cluster.clock.now / SECOND))
            cluster.clock.step(SETTLE)

        self.served.do(happens)

    def close(self) -> None:
        self._open.close()


def _free_ports() -> int:
    """The first of some ports that nobody listens at, below those that clients get."""
    begin = 20_000 + os.getpid() * PORTS % 10_000
    for base in chain(range(begin, 32_000, PORTS), range(20_000, begin, PORTS)):
        with ExitStack() as taken, suppress(OSError):
            for port in range(base, base + PORTS):
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
            return base
    raise OSError("no ports are free")


def walked(incident: WalkedIncident) -> tuple[int, list[str]]:
    """The number of commands, and what went wrong."""
    with (
        tempfile.TemporaryDirectory() as directory,
        pytest.MonkeyPatch.context() as patch,
        ExitStack() as stack,
    ):
        home = Path(directory) / "home"
        home.mkdir()
        caller = Caller(patch, home)
        served = _ServedIncident(incident, caller)
        stack.callback(served.close)

        def run(words: Sequence[str]) -> Ended:
            return caller("ktriage", *words)

        copies = Path(directory) / "copies"
        walk = CommandWalk(run, home, copies, served.where, begin=served.begin, most=MOST)
        troubles = [
            trouble
            for trouble in walk.troubles(_first(served.cluster))
            if UNSERVED not in trouble.split("\n")[0]
        ]
        return walk.steps, troubles


def run(options: SoakOptions) -> int:
    """Walks every incident, or ``rounds`` from the one with the number ``first`` on; 1 if any went wrong."""
    incidents = list(walked_incidents())
    wrong = steps = 0
    chosen = [number for number in options.seeds(len(incidents)) if number < len(incidents)]
    for number in chosen:
        began = time.monotonic()
        done, troubles = walked(incidents[number])
        steps += done
        wrong += bool(troubles)
        took = f"{done} commands, {time.monotonic() - began:.0f} s"
        print(f"printed_commands: {number} {incidents[number]}: {took}", flush=True)
        for trouble in troubles:
            print(f"printed_commands: {number}: {trouble}", flush=True)
    print(f"printed_commands: {len(chosen):,} incidents, {steps:,} commands: {wrong:,} went wrong")
    return 1 if wrong else 0
