"""Formatting a node's storage with ``kafka-storage format`` (KIP-853 for the quorum, KIP-900 for SCRAM users)."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping

from testbed.kafka.config import LOOPBACK, Addresses, ClusterSpec
from testbed.kafka.java_tools import MAIN_CLASSES, JavaRunner
from testbed.kafka.node import Node


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

    def first(self, node: Node) -> None:
        """Formats a node of a cluster that is being created."""
        args: list[str] = []
        if node.role == "controller":
            args += self._feature_args() + self._scram_args()
            if self._spec.quorum == "dynamic":
                args += ["--initial-controllers", self._initial_controllers()]
        self._format(node, args)
        node.directory_id = read_directory_id(node)

    def again(self, node: Node) -> None:
        """Formats the empty or missing log dirs of a node of the running cluster; the others are not touched.

        Each gets a new directory id. Without this, a broker with a new disk does not start.
        """
        dynamic = node.role == "controller" and self._spec.quorum == "dynamic"
        self._format(node, ["--ignore-formatted", *(["--no-initial-controllers"] if dynamic else [])])
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
    meta = node.log_dirs[0] / "meta.properties"
    if not meta.is_file():
        return ""
    lines = dict(line.partition("=")[::2] for line in meta.read_text().splitlines())
    return lines.get("directory.id", "")
