"""The brokers of a cluster in Kubernetes: kubectl finds their pods, and forwards a local port to each.

Nothing of Kubernetes' protocol is here: who may do it, and where the cluster is, kubectl knows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, NamedTuple

from console.errors import InputError

KUBECTL = "kubectl"
LIST_SECONDS, READY_SECONDS = 60.0, 60.0
AGAIN = 1.0
"""Seconds until a forward that ended is opened again: its pod was replaced, or Kubernetes was not reached."""
LOOPBACK = "127.0.0.1"
_UNTIL_WE_END = """
import subprocess, sys, threading
kubectl = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
threading.Thread(target=lambda: (sys.stdin.buffer.read(), kubectl.terminate()), daemon=True).start()
sys.exit(kubectl.wait())
"""
"""kubectl does not end with whoever started it, who may be killed: its standard input is closed then."""
_FORWARDING = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d+) ->")
_LONGEST_LINE = 300

Say = Callable[[str], None]


class KubernetesCluster(NamedTuple):
    """``cluster`` is the name of the Kafka resource, whose pods have the labels of Strimzi; ``selector`` finds pods
    of another operator, whose names end in ``-ID`` too. ``context`` "": kubectl's own.
    """

    namespace: str
    cluster: str
    port: int
    context: str = ""
    selector: str = ""

    @property
    def labels(self) -> str:
        return self.selector or f"strimzi.io/cluster={self.cluster},strimzi.io/broker-role=true"

    def certified(self, pod: str) -> str:
        """The name of a pod in its broker's certificate (the headless service of Strimzi)."""
        return f"{pod}.{self.cluster}-kafka-brokers.{self.namespace}.svc"

    def kubectl(self, *words: str) -> tuple[str, ...]:
        context = ("--context", self.context) if self.context else ()
        return (KUBECTL, *context, "--namespace", self.namespace, *words)


class Forwarded(NamedTuple):
    """``bootstrap`` has each forward under the name of its certificate, ``addresses`` the same by broker id, as
    ``--broker`` takes them.
    """

    bootstrap: str
    addresses: Mapping[int, str]


class Pod(NamedTuple):
    name: str
    phase: str

    @property
    def broker(self) -> int | None:
        """The number at the end of its name, which is the node id."""
        number = self.name.rpartition("-")[2]
        return int(number) if number.isdecimal() else None


_opened: dict[KubernetesCluster, Forwarded] = {}


def forwarded(cluster: KubernetesCluster, say: Say) -> Forwarded:
    """Opens a forward to each broker's pod that runs, until this process ends, however it does. ``say`` gets a line
    for each pod that is not reached. Raises InputError where there is no pod, or none is reached.
    """
    if cluster not in _opened:
        _opened[cluster] = _open(cluster, say)
    return _opened[cluster]


def _open(cluster: KubernetesCluster, say: Say) -> Forwarded:
    found = pods(cluster)
    if not found:
        raise InputError(f"kubectl: no pod in namespace {cluster.namespace} has the labels {cluster.labels}")
    forwards = []
    for pod in found:
        if pod.broker is None:
            say(f"pod {pod.name} is left out: its name ends in no broker id")
        elif pod.phase != "Running":
            say(f"pod {pod.name} is {pod.phase}: no port is forwarded to it")
        else:
            forwards.append(PortForward(cluster, pod))
    deadline = time.monotonic() + READY_SECONDS
    ready = []
    for forward in forwards:
        if forward.wait(max(deadline - time.monotonic(), 0.0)):
            ready.append(forward)
        else:
            say(f"pod {forward.pod.name}: kubectl forwards no port to it: {forward.said or 'no answer'}")
    if not ready:
        raise InputError(f"kubectl forwards a port to none of {len(found)} pods in {cluster.namespace}")
    bootstrap = ",".join(f"{cluster.certified(one.pod.name)}@{LOOPBACK}:{one.port}" for one in ready)
    return Forwarded(bootstrap, {one.broker: f"{LOOPBACK}:{one.port}" for one in ready})


def pods(cluster: KubernetesCluster) -> tuple[Pod, ...]:
    """The brokers' pods, those of broker 0 first. Raises InputError with what kubectl says."""
    words = cluster.kubectl("get", "pods", "--selector", cluster.labels, "--output", "json")
    try:
        ended = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIST_SECONDS, check=False
        )
    except FileNotFoundError:
        raise InputError("kubectl is not installed, and a profile with kube: needs it") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"kubectl get pods did not end within {LIST_SECONDS:g} s") from None
    if ended.returncode:
        raise InputError(f"kubectl get pods: {_last_line(ended.stderr) or f'status {ended.returncode}'}")
    try:
        items: Any = json.loads(ended.stdout)["items"]
        found = [Pod(str(item["metadata"]["name"]), str(item["status"]["phase"])) for item in items]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError("kubectl get pods printed no list of pods") from None
    return tuple(sorted(found, key=lambda pod: (pod.broker is None, pod.broker, pod.name)))


class PortForward:
    """One ``kubectl port-forward``, opened again at the same local port whenever it ends."""

    def __init__(self, cluster: KubernetesCluster, pod: Pod) -> None:
        assert pod.broker is not None
        self.pod, self.broker = pod, pod.broker
        self.port = 0
        self.said = ""
        self._cluster = cluster
        self._ready = threading.Event()
        self._closing = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        threading.Thread(target=self._keep, name=f"port-forward {pod.name}", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether it is open, after at most so many seconds."""
        return self._ready.wait(seconds)

    def close(self) -> None:
        """Ends kubectl."""
        self._closing.set()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _keep(self) -> None:
        while not self._closing.is_set():
            ports = f"{self.port or ''}:{self._cluster.port}"
            words = self._cluster.kubectl(
                "port-forward", "--address", LOOPBACK, f"pod/{self.pod.name}", ports
            )
            # In a session of its own: what interrupts a command at the terminal lets its requests end.
            with subprocess.Popen(
                (sys.executable, "-I", "-S", "-c", _UNTIL_WE_END, *words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process:
                self._process = process
                if self._closing.is_set():
                    self.close()
                assert process.stdout is not None
                self._read(process.stdout)
            self._closing.wait(AGAIN)

    def _read(self, output: IO[bytes]) -> None:
        for line in output:
            opened = _FORWARDING.match(line)
            if opened is None:
                self.said = _last_line(line)
            elif not self.port:
                self.port = int(opened[1])
                self._ready.set()


def _last_line(output: bytes) -> str:
    lines: Sequence[str] = output.decode("utf-8", "replace").strip().splitlines()
    text = lines[-1] if lines else ""
    return "".join(c if c.isprintable() else " " for c in text)[:_LONGEST_LINE]
