"""Formatting a node's storage with ``kafka-storage format`` (KIP-853 for the quorum, KIP-900 for SCRAM users).

The tool writes the same files for every node of a role, except for the ids in ``meta.properties``. So the first
node of a role is formatted with it, and the others get copies with ids of their own: that saves 0.7 CPU seconds
of a Java start for each.
"""

from __future__ import annotations

import base64
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.kafka.config import LOOPBACK, Addresses, ClusterSpec
from testbed.kafka.errors import TestbedError
from testbed.kafka.java_tools import MAIN_CLASSES, JavaRunner
from testbed.kafka.node import Node

_META = "meta.properties"


def new_uuid() -> str:
    """A random Kafka Uuid: 16 bytes in URL-safe base64 without padding, not starting with a dash."""
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        if not text.startswith("-"):
            return text


class StorageFormatter:
    """Formats nodes of one cluster; ``voters`` are the initial controllers' directory ids by node id."""

    def __init__(
        self,
        spec: ClusterSpec,
        cluster_id: str,
        addresses: Addresses,
        voters: Mapping[int, str],
        runner: JavaRunner,
    ) -> None:
        self._spec = spec
        self._cluster_id = cluster_id
        self._addresses = addresses
        self._voters = voters
        self._runner = runner

    def first(self, role: Sequence[Node]) -> None:
        """Formats the controllers, or the brokers, of a cluster that is being created; none of them runs."""
        node, *others = role
        args: list[str] = []
        if node.id in self._voters:
            args += self._feature_args() + self._scram_args()
            if self._spec.quorum == "dynamic":
                args += ["--initial-controllers", self._initial_controllers()]
        self._format(node, args)
        node.directory_id = read_directory_id(node)
        for other in others:
            self._copy(node, other)

    def _copy(self, formatted: Node, node: Node) -> None:
        for source, target in zip(formatted.log_dirs, node.log_dirs, strict=True):
            shutil.copytree(source, target)
            voter = self._voters.get(node.id) if self._spec.quorum == "dynamic" else None
            _change(target / _META, {"node.id": str(node.id), "directory.id": voter or new_uuid()})
        node.directory_id = read_directory_id(node)

    def again(self, node: Node, *, standalone: bool = False) -> None:
        """Formats the empty or missing log dirs of a node of the running cluster; the others are not touched.

        Each gets a new directory id. Without this, a broker with a new disk does not start. ``standalone``: a
        controller becomes the only voter of a quorum of its own.
        """
        is_controller = node.role == "controller" or node.id in self._voters
        dynamic = is_controller and self._spec.quorum == "dynamic"
        joining = ["--standalone" if standalone else "--no-initial-controllers"] if dynamic else []
        self._format(node, ["--ignore-formatted", *joining])
        node.directory_id = read_directory_id(node)

    def _format(self, node: Node, args: list[str]) -> None:
        own = ["format", "-t", self._cluster_id, "-c", str(node.properties_file)]
        self._runner.run(MAIN_CLASSES["kafka-storage"], *own, *args)

    def _initial_controllers(self) -> str:
        ports = self._addresses.controllers
        return ",".join(
            f"{node}@{LOOPBACK}:{ports[node]}:{directory}" for node, directory in self._voters.items()
        )

    def _feature_args(self) -> list[str]:
        return [word for feature in self._spec.features() for word in ("--feature", feature)]

    def _scram_args(self) -> list[str]:
        mechanisms = {name for listener in self._spec.listeners for name in listener.mechanisms}
        return [
            word
            for mechanism in sorted(mechanisms)
            if mechanism.startswith("SCRAM-")
            for user, password in self._spec.users.items()
            for word in ("--add-scram", f"{mechanism}=[name={user},password={password}]")
        ]


def read_directory_id(node: Node) -> str:
    """The directory id in the first log dir's ``meta.properties``; empty if it is not formatted."""
    meta = node.log_dirs[0] / _META
    return _read(meta).get("directory.id", "") if meta.is_file() else ""


def _read(meta: Path) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in meta.read_text().splitlines())


def _change(meta: Path, changed: Mapping[str, str]) -> None:
    values = _read(meta)
    if missing := changed.keys() - values.keys():
        raise TestbedError(f"{meta} has no {', '.join(sorted(missing))}")
    meta.write_text("".join(f"{key}={value}\n" for key, value in {**values, **changed}.items() if value))
