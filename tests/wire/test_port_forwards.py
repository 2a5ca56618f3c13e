"""A profile with ``kube:``: kubectl finds the brokers' pods and forwards a port to each.

A program stands for kubectl, and really forwards to a served cluster.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.live.client.addresses import parse_addresses
from backends.simulator.network import NetworkRole
from backends.simulator.scenario.files import read
from console import port_forwards
from console.errors import InputError
from console.port_forwards import KubernetesCluster, Pod, PortForward, forwarded, pods
from testbed.kafka import wait_until
from tests.unit.cli.command_process import invoke
from tests.wire.cluster_thread import ClusterThread

PROFILE = """\
clusters:
  production:
    kube: {namespace: kafka, cluster: events, context: eu-1}
"""
DOWN = 3
"""The broker of the scenario that does not run."""
CLUSTER = KubernetesCluster("kafka", "events", 9092)


class FakeKube:
    """What the program finds."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def has(self, ports: dict[str, int], **phases: str) -> None:
        """Pods that run, by the port of their broker, and others by phase."""
        every = dict.fromkeys(ports, "Running") | {
            name.replace("_", "-"): phase for name, phase in phases.items()
        }
        items = [{"metadata": {"name": name}, "status": {"phase": phase}} for name, phase in every.items()]
        (self.home / "pods.json").write_text(json.dumps({"items": items}))
        (self.home / "ports.json").write_text(json.dumps(ports))

    def lines(self, file: str) -> list[str]:
        path = self.home / file
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def kube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKube]:
    programs = tmp_path / "bin"
    programs.mkdir()
    # The Python of the tests, which is not always found by its name.
    source = Path(__file__).with_name("fake_kubectl.py").read_text().partition("\n")[2]
    (programs / "kubectl").write_text(f"#!{sys.executable}\n{source}")
    (programs / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("FAKE_KUBE", str(tmp_path))
    monkeypatch.setattr(port_forwards, "_opened", {})
    opened: list[PortForward] = []

    def recorded(cluster: KubernetesCluster, pod: Pod) -> PortForward:
        opened.append(PortForward(cluster, pod))
        return opened[-1]

    monkeypatch.setattr(port_forwards, "PortForward", recorded)
    yield FakeKube(tmp_path)
    for forward in opened:
        forward.close()
    for path in tmp_path.glob("*.pid"):
        try:
            os.kill(int(path.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_each_broker_is_reached_through_the_port_that_kubectl_forwards(
    kube: FakeKube, tmp_path: Path
) -> None:
    config = tmp_path / "config/ktriage"
    config.mkdir(parents=True)
    (config / "clusters.yaml").write_text(PROFILE)
    with ClusterThread(read("strimzi-new-volume")) as served:
        ports = {a.port for a in parse_addresses(served.cluster.bootstrap)}
        brokers = served.do(
            lambda cluster: {
                node.id: port
                for node, port in cluster.ports.items()
                if node.role is NetworkRole.BROKER and node.id != DOWN
            }
        )
        kube.has({f"events-pool-{broker}": port for broker, port in brokers.items()}, events_pool_3="Pending")
        more = {
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "FAKE_KUBE": str(tmp_path),
            "PATH": os.environ["PATH"],
        }
        words = ("status", "--cluster", "production", "--output", "json", "--duration", "60s")
        ended = invoke(tmp_path, "ktriage", *words, **more)
    assert ended.status in (0, 1), str(ended)
    assert "pod events-pool-3 is Pending: no port is forwarded to it" in ended.err
    contacts = json.loads(ended.out)["contacts"]
    assert {one["broker"] for one in contacts if one["problem"] is None} == set(brokers)
    (first, *_) = json.loads(ended.out)["steps"]
    assert (first["kind"], first["checkDisk"]) == ("bring back", [DOWN]), "its volume is read first"
    asked = {int(one["address"].rpartition(":")[2]) for one in contacts if one["problem"] is None}
    assert len(asked) > 2 and not asked & ports, "no broker was asked at its advertised address"
    assert set(kube.lines("connections.log")) == {f"events-pool-{broker}" for broker in brokers}
    labels = "strimzi.io/cluster=events,strimzi.io/broker-role=true"
    listed, *others = kube.lines("asked.log")
    assert listed == f"--context eu-1 --namespace kafka get pods --selector {labels} --output json"
    assert all("port-forward --address 127.0.0.1 pod/events-pool-" in line for line in others)
    wait_until(
        lambda: not any(map(runs, kube.home.glob("*.pid"))), "every kubectl to end with the command", 60
    )


def test_certificates_are_checked_against_the_name_that_strimzi_gives_a_pod(kube: FakeKube) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        kube.has({"events-a-7": broker.getsockname()[1]})
        found = forwarded(CLUSTER, pytest.fail)
    (address,) = parse_addresses(found.bootstrap)
    assert address.certified == "events-a-7.events-kafka-brokers.kafka.svc"
    assert found.addresses == {7: f"127.0.0.1:{address.port}"}


def test_a_forward_that_ends_is_opened_again_at_the_same_port(kube: FakeKube) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        kube.has({"events-a-1": broker.getsockname()[1]})
        forward = PortForward(CLUSTER, Pod("events-a-1", "Running"))
        try:
            assert forward.wait(60)
            port = forward.port
            os.kill(int((kube.home / "events-a-1.pid").read_text()), signal.SIGKILL)
            wait_until(lambda: len(kube.lines("asked.log")) > 1, "another kubectl", 60)
            wait_until(lambda: _connects(port), "the same port to answer", 60)
        finally:
            forward.close()
    assert kube.lines("asked.log")[1].endswith(f"pod/events-a-1 {port}:9092")


def runs(pid: Path) -> bool:
    """Whether the process is there, and no zombie."""
    status = Path("/proc") / pid.read_text() / "stat"
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _connects(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_what_kubectl_says_is_told(kube: FakeKube) -> None:
    with pytest.raises(InputError, match=r'kubectl get pods: Error from server .Forbidden.: .* User "ada"'):
        pods(CLUSTER)
    kube.has({})
    with pytest.raises(
        InputError, match=r"no pod in namespace kafka has the labels strimzi\.io/cluster=events"
    ):
        forwarded(CLUSTER, pytest.fail)
    (kube.home / "pods.json").write_text("[]")
    with pytest.raises(InputError, match="kubectl get pods printed no list of pods"):
        pods(CLUSTER)
    said: list[str] = []
    kube.has({}, events_a_1="Pending")
    with pytest.raises(InputError, match="kubectl forwards a port to none of 1 pods in kafka"):
        forwarded(CLUSTER, said.append)
    assert said == ["pod events-a-1 is Pending: no port is forwarded to it"]
    shutil.rmtree(kube.home / "bin")
    with pytest.raises(InputError, match="kubectl is not installed"):
        pods(CLUSTER)
