"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.live.codec.recovery_tool_messages import DESIGNATED
from backends.simulator.messages import ElectLeaders, ElectLeadersReply, Reassign, ReassignReply
from backends.simulator.partition_table import topics_of
from backends.simulator.served.handlers.configs import refusal_of
from backends.simulator.served.served_call import ServedCall, code, message
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.transition_targets import ElectionKind
from recovery.model import NO_LEADER, TopicPartition

UNCLEAN = 1
_KINDS = {0: ElectionKind.PREFERRED, UNCLEAN: ElectionKind.UNCLEAN, DESIGNATED: ElectionKind.DESIGNATED}
NOT_AN_ELECTION = ErrorCode.invalid_request

# The messages of released Kafka.
_WORDS = {
    ControllerError.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ControllerError.ELIGIBLE_LEADERS_NOT_AVAILABLE: None,
    ControllerError.ELECTION_NOT_NEEDED: None,
}


async def elect_leaders(call: ServedCall) -> Values:
    """Preferred and unclean elections (KIP-460); from v3 on designated ones, which need CLUSTER_ACTION."""
    kind = _KINDS.get(call.field("election_type", 0))
    asked = call.request.topic_partitions
    if kind is None or (kind is ElectionKind.DESIGNATED and (call.version < 3 or asked is None)):
        return {"error_code": NOT_AN_ELECTION, "replica_election_results": ()}
    rows = None if asked is None else list(_rows(asked, designated=kind is ElectionKind.DESIGNATED))
    if rows is not None and any(leader is None for _, leader in rows):
        return _all_refused(rows, ErrorCode.invalid_request)
    need = "CLUSTER_ACTION" if kind is ElectionKind.DESIGNATED else "ALTER"
    if not call.rights.cluster(need):
        return _all_refused(rows or (), ErrorCode.cluster_authorization_failed)
    partitions = None if rows is None else tuple((tp, leader or 0) for tp, leader in rows)
    reply = await call.ask(ElectLeaders(kind, partitions))
    if not isinstance(reply, ElectLeadersReply):
        return _all_refused(rows or (), code(refusal_of(reply)))
    return {
        "error_code": ErrorCode.none,
        "replica_election_results": _by_topic(
            call, reply.refusals, "topic", "partition_result", "partition_id"
        ),
    }


def _rows(asked: Iterable[Any], *, designated: bool) -> Iterable[tuple[TopicPartition, int | None]]:
    for topic in asked:
        leaders: tuple[int | None, ...] = (NO_LEADER,) * len(topic.partitions)
        if designated:
            given = topic.designated_leaders or ()
            leaders = (*given, *(None,) * (len(topic.partitions) - len(given)))
        for partition, leader in zip(topic.partitions, leaders, strict=False):
            yield TopicPartition(topic.topic, partition), leader


def _all_refused(rows: Iterable[tuple[TopicPartition, int | None]], error: ErrorCode) -> Values:
    topics: dict[str, list[Values]] = {}
    for tp, _ in rows:
        topics.setdefault(tp.topic, []).append(
            {"partition_id": tp.partition, "error_code": error, "error_message": None}
        )
    return {
        "error_code": error,
        "replica_election_results": [{"topic": t, "partition_result": r} for t, r in topics.items()],
    }


def _by_topic(
    call: ServedCall,
    refusals: Mapping[TopicPartition, ControllerRefusal | None],
    topic_key: str,
    rows_key: str,
    index_key: str,
) -> list[Values]:
    topics: dict[str, list[Values]] = {}
    for tp, refusal in refusals.items():
        message = _error_message(call, tp, refusal)
        topics.setdefault(tp.topic, []).append(
            {index_key: tp.partition, "error_code": code(refusal), "error_message": message}
        )
    return [{topic_key: topic, rows_key: rows} for topic, rows in topics.items()]


def _error_message(call: ServedCall, tp: TopicPartition, refusal: ControllerRefusal | None) -> str | None:
    if refusal is None:
        return None
    if refusal.error is ControllerError.UNKNOWN_TOPIC_OR_PARTITION:
        known = tp.topic in topics_of(call.context.world.image)
        return f"No such partition as {tp}" if known else f"No such topic as {tp.topic}"
    if refusal.error is ControllerError.REQUEST_LIMIT_REACHED:
        return str(refusal)
    return _WORDS.get(refusal.error, message(refusal))


async def alter_partition_reassignments(call: ServedCall) -> Values:
    """KIP-455, with the flag of KIP-860 from v1 on. Null replicas cancel."""
    if not call.rights.cluster("ALTER"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "responses": ()}
    targets = tuple(
        (TopicPartition(topic.name, asked.partition_index), asked.replicas)
        for topic in call.request.topics
        for asked in topic.partitions
    )
    reply = await call.ask(Reassign(targets, call.field("allow_replication_factor_change", True)))
    if not isinstance(reply, ReassignReply):
        return {"error_code": code(refusal_of(reply)), "responses": ()}
    return {
        "error_code": ErrorCode.none,
        "allow_replication_factor_change": call.field("allow_replication_factor_change", True),
        "responses": _by_topic(call, reply.refusals, "name", "partitions", "partition_index"),
    }


async def list_partition_reassignments(call: ServedCall) -> Values:
    """Reassignments in progress."""
    if not call.rights.cluster("DESCRIBE"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "topics": ()}
    asked = call.request.topics
    world = call.context.world
    image = await call.read_broker(lambda broker: broker.state.image) if call.at_broker else world.image
    partitions = image.partitions
    selected: Iterable[TopicPartition] = partitions
    if asked is not None:
        selected = (TopicPartition(t.name, index) for t in asked for index in t.partition_indexes)
    topics: dict[str, list[Values]] = {}
    for tp in selected:
        moved = partitions.get(tp)
        if moved is not None and moved.reassigning:
            row = {
                "partition_index": tp.partition,
                "replicas": moved.replicas,
                "adding_replicas": moved.adding,
                "removing_replicas": moved.removing,
            }
            topics.setdefault(tp.topic, []).append(row)
    rows = [{"name": topic, "partitions": moving} for topic, moving in topics.items()]
    return {"error_code": ErrorCode.none, "topics": rows}
