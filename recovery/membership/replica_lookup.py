"""Finds the replica that a node id means: the new observer, or the voter of that node."""

from __future__ import annotations

from recovery.membership.quorum import Quorum, QuorumReplica
from recovery.membership.quorum_health import GHOST_MS
from recovery.membership.voters import ReplicaKey


class NotChosen(ValueError):
    """No replica matches, or more than one; one line with what to do."""


def newcomer(quorum: Quorum, node_id: int, directory_id: str | None) -> ReplicaKey:
    """The observer of that node that is alive, with the directory where one is given. Raises NotChosen.

    A former directory of the node stays listed for some minutes: the one that fetches is meant.
    """
    mine = [
        replica
        for replica in quorum.progress
        if replica.key.id == node_id and replica.key not in quorum.voters.keys
    ]
    if directory_id is not None:
        if not any(replica.key.directory_id == directory_id for replica in mine):
            raise NotChosen(_wrong_directory(quorum, node_id, directory_id, mine))
        return ReplicaKey(node_id, directory_id)
    alive = [replica for replica in mine if fetches(quorum, replica)]
    if len(alive) > 1:
        named = ", ".join(replica.key.directory_id for replica in alive)
        raise NotChosen(f"node {node_id} fetches with several directories ({named}): give --directory-id")
    if alive:
        return alive[0].key
    voter = next((v for v in quorum.voters.voters if v.key.id == node_id), None)
    if voter is not None:
        raise NotChosen(
            f"node {node_id} is a voter already, with directory {voter.key.directory_id}, and fetches with no other"
        )
    if mine:
        raise NotChosen(f"node {node_id} is listed as an observer and has stopped fetching: is it running?")
    raise NotChosen(
        f"node {node_id} does not fetch from the leader: format it with --no-initial-controllers, start it, and see"
        " that its controller.quorum.bootstrap.servers names a controller that is up"
    )


def voter_of(quorum: Quorum, node_id: int, directory_id: str | None) -> ReplicaKey:
    """The voter of that node, with the directory where one is given. Raises NotChosen."""
    mine = [key for key in quorum.voters.keys if key.id == node_id]
    if directory_id is not None:
        mine = [key for key in mine if key.directory_id == directory_id]
    if len(mine) == 1:
        return mine[0]
    known = ", ".join(map(str, quorum.voters.keys))
    if mine:
        raise NotChosen(f"node {node_id} is a voter with several directories: give --directory-id ({known})")
    named = f"{node_id} with directory {directory_id}" if directory_id else str(node_id)
    raise NotChosen(f"VOTER_NOT_FOUND: {named} is none of the voters {known}")


def fetches(quorum: Quorum, replica: QuorumReplica) -> bool:
    """Whether a replica has fetched lately enough to be running."""
    return replica.last_fetch_ms > 0 and quorum.now_ms - replica.last_fetch_ms <= GHOST_MS


def _wrong_directory(quorum: Quorum, node_id: int, directory_id: str, mine: list[QuorumReplica]) -> str:
    if ReplicaKey(node_id, directory_id) in quorum.voters.keys:
        return f"{node_id} with directory {directory_id} is a voter already"
    directories = ", ".join(replica.key.directory_id for replica in mine)
    reported = f"; what fetches as node {node_id} has {directories}" if directories else ""
    return f"nothing with directory {directory_id} fetches as node {node_id}{reported}"
