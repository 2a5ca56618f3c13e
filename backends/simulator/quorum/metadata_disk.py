"""A controller's metadata disk, which survives every crash, and the configuration of its host."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from backends.simulator.quorum.raft_log import RaftLog
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet

LISTENER = "CONTROLLER"
PORT = 9093


class MetadataDisk:
    """``epoch``, ``voted`` and ``leader`` are the quorum-state file (KIP-595).

    Every write is flushed before it counts, so a power loss takes no more than a crash.
    """

    def __init__(self, key: ReplicaKey, bootstrap: VoterSet | None, kraft_version: int) -> None:
        self.key = key
        self.epoch = 0
        self.voted: ReplicaKey | None = None
        self.leader: int | None = None
        self.log = RaftLog(bootstrap, kraft_version)
        self.broken = False


@dataclass(frozen=True, slots=True)
class ControllerHost:
    """A controller's configuration: its listener, ``controller.quorum.auto.join.enable``, and the range of
    kraft.version that its software supports.
    """

    id: int
    host: str
    port: int = PORT
    auto_join: bool = False
    kraft_versions: tuple[int, int] = (0, 1)

    @property
    def endpoints(self) -> tuple[VoterEndpoint, ...]:
        return (VoterEndpoint(LISTENER, self.host, self.port),)

    def voter(self, key: ReplicaKey) -> Voter:
        """This controller as a voter with the directory of ``key``."""
        return Voter(key, self.endpoints, self.kraft_versions)


def host_name(controller: int) -> str:
    return f"controller-{controller}.simulated"


def metadata_directory_id(controller: int, generation: int = 0) -> str:
    """The id of a metadata log dir as Kafka prints it: 22 characters. A replaced disk has another."""
    digest = hashlib.sha256(f"metadata {controller} {generation}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
