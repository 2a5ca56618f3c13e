"""Partitions, replica logs and brokers as JSON (docs/output.md): Kafka's words, in camelCase as in its files.

A tuple becomes an array; an epoch span is [epoch, first offset, offset after the last] as in the plan file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from recovery.membership.quorum import NEVER, Quorum, QuorumReplica
from recovery.model import Lineage, Replica, Survey, Unknown
from recovery.plan.verdict_json import verdict_json
from recovery.wording.cluster_health_text import health_line
from recovery.wording.replica_text import replica_sets

if TYPE_CHECKING:
    from backends.base.answers import ClusterInfo, Contact, LogDir
    from recovery.acknowledged.verdict import PartitionVerdicts
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


def survey_json(
    survey: Survey, calls: Mapping[int, str], verdicts: PartitionVerdicts | None = None
) -> dict[str, object]:
    """A partition with all its replicas (docs/output.md, "partition"), and what each choice of leader loses of the
    acknowledged records; None: nobody judged.
    """
    candidates = {} if verdicts is None else verdicts.candidates
    state = survey.state
    return {
        "topic": state.topic,
        "partition": state.partition,
        "topicId": state.topic_id,
        "leader": state.leader,
        "leaderEpoch": state.leader_epoch,
        "replicas": state.replicas,
        "isr": state.isr,
        "elr": state.elr,
        "lastKnownElr": state.last_known_elr,
        "offlineReplicas": state.offline_replicas,
        "minIsr": _value(survey.min_isr),
        "minIsrByBroker": {str(broker): value for broker, value in survey.min_isr_by_broker.items()},
        "reassigning": _value(survey.reassigning),
        "logs": [_log_json(survey, replica, calls) for replica in survey.replicas],
        "acknowledged": [
            {"broker": broker, **verdict_json(verdict)} for broker, verdict in candidates.items()
        ],
    }


def _log_json(survey: Survey, replica: Replica, calls: Mapping[int, str]) -> dict[str, object]:
    log = replica.log
    sets = replica_sets(survey.state, replica.broker)
    if isinstance(log, Unknown):
        who = {"broker": replica.broker, "standing": replica.standing, "in": sets}
        return {**who, **unknown_json(log)}
    lineage = log.lineage
    return {
        "broker": replica.broker,
        "standing": replica.standing,
        "in": sets,
        "lastEpoch": lineage.last_epoch if isinstance(lineage, Lineage) else None,
        "logEndOffset": log.log_end_offset,
        "logStartOffset": log.log_start_offset,
        "highWatermark": log.high_watermark,
        "leaderEpoch": log.leader_epoch,
        "actsAsLeader": log.leads,
        "lineage": (
            {"lastEpoch": lineage.last_epoch, "floor": lineage.floor, "spans": lineage.spans}
            if isinstance(lineage, Lineage)
            else unknown_json(lineage)
        ),
        "logDir": log.log_dir or None,
        "size": log.size,
        "call": calls.get(replica.broker) if replica.disk_read_ms is None else None,
        "diskReadAtMs": replica.disk_read_ms,
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


def _value(value: int | bool | Unknown) -> object:
    return unknown_json(value) if isinstance(value, Unknown) else value


def cluster_json(cluster: ClusterInfo) -> dict[str, object]:
    """The cluster, and who described it."""
    return {
        "clusterId": cluster.cluster_id,
        "describedBy": cluster.asked,
        "release": cluster.release or None,
        "elr": _value(cluster.elr_enabled),
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
