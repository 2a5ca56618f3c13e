"""Small quorums for the tests: controllers 1, 2, 3 …, all caught up with the leader 1 unless told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recovery.membership.quorum import Quorum, QuorumReplica
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet

NOW = 10_000_000
END = 500
CLUSTER = "the-cluster"


def key(node: int, directory: str = "") -> ReplicaKey:
    return ReplicaKey(node, directory or f"dir{node}")


def voter(node: int, directory: str = "", versions: tuple[int, int] = (0, 1)) -> Voter:
    return Voter(key(node, directory), (VoterEndpoint("CONTROLLER", f"host{node}", 9093),), versions)


def voters(*nodes: int) -> VoterSet:
    return VoterSet(tuple(voter(node) for node in nodes))


def progress(key: ReplicaKey, *, behind: int = 0, silent_ms: int = 0) -> QuorumReplica:
    return QuorumReplica(key, END - behind, NOW - silent_ms, NOW - silent_ms)


def quorum(
    *nodes: int, observers: tuple[ReplicaKey, ...] = (), down: tuple[int, ...] = (), **changed: Any
) -> Quorum:
    """A quorum of ``nodes``; those in ``down`` have not fetched for a minute."""
    minute = 60_000
    known = (
        *(progress(key(node), silent_ms=minute if node in down else 0) for node in nodes),
        *(progress(observer) for observer in observers),
    )
    healthy = Quorum(
        cluster_id=CLUSTER,
        leader=key(1),
        leader_epoch=7,
        voters=voters(*nodes),
        high_watermark=END,
        log_end_offset=END,
        now_ms=NOW,
        progress=known,
        voters_offset=100,
        change_pending=False,
    )
    return replace(healthy, **changed)
