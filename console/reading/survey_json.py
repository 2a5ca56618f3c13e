"""The cluster, its quorum and its health as JSON (docs/output.md): Kafka's words, in camelCase as in its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recovery.advice import FirstStep
from recovery.loss import Loss
from recovery.membership.quorum import NEVER, Quorum, QuorumReplica
from recovery.model import TopicPartition, Unknown
from recovery.wording.advice_text import advice_text
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
        "withoutVote": health.quorum.new_disks,
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
        **({} if cluster.disks_end_ms is None else {"readFromDisksMs": cluster.disks_end_ms}),
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


def loss_json(loss: Loss) -> dict[str, object]:
    """A range of offsets (docs/output.md, "loss")."""
    return {
        "atLeast": loss.at_least,
        "atMost": loss.at_most,
        "tail": loss.tail,
        "head": loss.head,
        "unanswered": list(loss.unanswered),
        "firstMs": loss.first_ms,
        "lastMs": loss.last_ms,
        "compacted": loss.compacted,
    }


def tp_json(tp: TopicPartition) -> dict[str, object]:
    return {"topic": tp.topic, "partition": tp.partition}


def steps_json(steps: Sequence[FirstStep]) -> list[dict[str, object]]:
    """All steps in order, with the sentences of the tables."""
    return [_step_json(step) for step in steps]


def _step_json(step: FirstStep) -> dict[str, object]:
    advice = step.advice
    text = advice_text(advice, step.partitions)
    return {
        "kind": advice.kind.value,
        "brokers": list(advice.brokers),
        "partitions": step.partitions,
        "example": tp_json(step.example),
        "keepDown": [
            {
                "broker": one.broker,
                "electedAs": one.kind.value,
                "checksRecords": one.checks_records,
                "failedDisk": one.failed_disk,
                "cutsOff": list(one.cuts_off),
            }
            for one in advice.keep_down
        ],
        "checkDisk": list(advice.check_disk),
        "byElr": advice.by_elr,
        "reassigning": advice.reassigning,
        "leadsAgain": advice.leads_again,
        "instead": list(advice.instead),
        "startIfWhole": [one.broker for one in advice.start_if_whole],
        "readBefore": list(advice.read_before),
        "repairBefore": list(advice.repair),
        "onlyThen": step.only_then,
        "action": text.action,
        "orElse": text.instead,
        "warnings": list(text.warnings),
        "reasons": list(text.reasons),
        "text": " ".join(text.sentences),
    }
