"""The cluster, its quorum and its health as JSON (docs/output.md): Kafka's words, in camelCase as in its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recovery.membership.quorum import NEVER, Quorum, QuorumReplica
from recovery.model import Unknown
from recovery.wording.cluster_health_text import health_line

if TYPE_CHECKING:
    from backends.base.answers import ClusterInfo, Contact, LogDir
    from recovery.cluster_health import ClusterHealth


def unknown_json(value: Unknown) -> dict[str, object]:
    return {"unknown": value.why.value, "detail": value.detail}


def last_listed_ms(one: LogDir) -> int | None:
    """When its broker, which lists no log dir now, last listed it, in ms since 1970."""
    return None if one.last_listed is None else round(one.last_listed * 1000)


def health_json(health: ClusterHealth) -> dict[str, object]:
    """The health of the whole cluster (docs/output.md, "health")."""
    return {
        "line": health_line(health),
        "well": health.well,
        "quorum": health.quorum.state,
        "deadVoters": health.quorum.dead_voters,
        "brokersDown": health.brokers_down,
        "brokersFenced": health.brokers_fenced,
        "brokersUnreached": health.brokers_unreached,
        "failedLogDirs": health.failed_dirs,
        "logDirsNotListed": health.dirs_not_listed,
        "offline": health.offline,
        "underMinIsr": health.under_min_isr,
        "selfElecting": health.self_electing,
        "leadersNotTold": health.unreachable_leaders,
        "cutOff": health.cut_off,
        "disksToRead": health.disks_to_read,
    }


def contact_json(contact: Contact) -> dict[str, object]:
    problem = None if contact.problem is None else unknown_json(contact.problem)
    return {
        "broker": contact.broker,
        "address": contact.address,
        "problem": problem,
        "seconds": round(contact.seconds, 3),
        "call": contact.call,
    }


def cluster_json(cluster: ClusterInfo) -> dict[str, object]:
    """The cluster, and who described it."""
    return {
        "clusterId": cluster.cluster_id,
        "describedBy": cluster.asked,
        "release": cluster.release or None,
        "elr": unknown_json(elr) if isinstance(elr := cluster.elr_enabled, Unknown) else elr,
        "brokers": [
            {"id": b.id, "host": b.host, "port": b.port, "rack": b.rack, "fenced": b.fenced}
            for b in cluster.brokers
        ],
    }


def quorum_json(quorum: Quorum | Unknown) -> dict[str, object]:
    """The metadata quorum, or why it is not known."""
    if isinstance(quorum, Unknown):
        return unknown_json(quorum)
    return {
        "leader": quorum.leader.id,
        "leaderEpoch": quorum.leader_epoch,
        "highWatermark": NEVER if quorum.high_watermark is None else quorum.high_watermark,
        "voters": [_quorum_replica(voter) for voter in quorum.voter_progress],
        "observers": [_quorum_replica(observer) for observer in quorum.observer_progress],
    }


def _quorum_replica(replica: QuorumReplica) -> dict[str, object]:
    return {
        "id": replica.key.id,
        "directoryId": replica.key.directory_id or None,
        "logEndOffset": replica.log_end_offset,
        "lastFetchMs": replica.last_fetch_ms,
        "lastCaughtUpMs": replica.last_caught_up_ms,
    }
