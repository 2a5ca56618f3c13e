"""CreateTopics and DeleteTopics."""

from __future__ import annotations

import re
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.live.codec.primitives import kafka_id
from backends.simulator.messages import CreateTopic, DeleteTopic
from backends.simulator.partition_table import id_of, topics_of
from backends.simulator.served.handlers.configs import (
    ACTED_UPON,
    TOPIC,
    refusal_of,
    set_config,
    wrong_config,
)
from backends.simulator.served.served_call import ServedCall, code, message
from backends.simulator.topology import spread
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.rules import MIN_ISR

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
LONGEST_NAME = 249
MOST_PARTITIONS = 10_000
"""The most partitions of one request here; a scenario may have more."""


class _Refused(Exception):
    def __init__(self, error: ErrorCode, said: str) -> None:
        super().__init__(said)
        self.error = error
        self.said = said


async def create_topics(call: ServedCall) -> Values:
    """Each topic by itself; replicas as given, or spread over the brokers that are alive."""
    return {"topics": [await _create(call, asked) for asked in call.request.topics]}


async def _create(call: ServedCall, asked: Any) -> Values:
    image = call.context.world.image
    head = {
        "name": asked.name,
        "topic_id": None,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": None,
    }
    if not (call.rights.cluster("CREATE") or call.rights.topic("CREATE", asked.name)):
        said = "Authorization failed."
        return {**head, "error_code": ErrorCode.topic_authorization_failed, "error_message": said}
    try:
        rows = _checked(call, image, asked)
        if not call.field("validate_only", False):
            await _make(call, asked, rows)
    except _Refused as refused:
        return {**head, "error_code": refused.error, "error_message": refused.said}
    made = id_of(call.context.world.image, asked.name)
    return {
        **head,
        "topic_id": None if call.field("validate_only", False) else made,
        "num_partitions": len(rows),
        "replication_factor": len(rows[0]),
        "configs": (),
        "error_code": ErrorCode.none,
    }


def _checked(call: ServedCall, image: ClusterImage, asked: Any) -> tuple[tuple[int, ...], ...]:
    wrong = wrong_name(asked.name)
    if wrong is not None:
        raise _Refused(ErrorCode.invalid_topic_exception, f"Topic name is invalid: {wrong}")
    if asked.name in topics_of(image):
        raise _Refused(ErrorCode.topic_already_exists, f"Topic '{asked.name}' already exists.")
    alike = next((name for name in topics_of(image) if _in_metrics(name) == _in_metrics(asked.name)), None)
    if alike is not None:
        collides = f"Topic '{asked.name}' collides with existing topic: {alike}"
        raise _Refused(ErrorCode.invalid_topic_exception, collides)
    for config in asked.configs:
        said = wrong_config(config.name, config.value)
        if said is not None:
            raise _Refused(ErrorCode.invalid_config, said)
    if asked.assignments:
        return _given(image, asked)
    return spread_replicas(call, image, asked.num_partitions, asked.replication_factor)


def _in_metrics(name: str) -> str:
    """Two topics whose names are equal in Kafka's metrics cannot both exist."""
    return name.replace(".", "_")


def wrong_name(name: str) -> str | None:
    """Kafka's message for an invalid topic name; None if it is valid."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > LONGEST_NAME:
        return f"the length of '{name}' is longer than the max allowed length {LONGEST_NAME}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def _given(image: ClusterImage, asked: Any) -> tuple[tuple[int, ...], ...]:
    if asked.num_partitions != -1 or asked.replication_factor != -1:
        raise _Refused(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    rows = {row.partition_index: row.broker_ids for row in asked.assignments}
    if sorted(rows) != list(range(len(asked.assignments))):
        raise _Refused(
            ErrorCode.invalid_replica_assignment,
            "partitions should be a consecutive 0-based integer sequence",
        )
    found = tuple(rows[number] for number in sorted(rows))
    for replicas in found:
        said = _wrong_replicas(image, replicas, len(found[0]))
        if said is not None:
            manual = "The manual partition assignment includes"
            raise _Refused(ErrorCode.invalid_replica_assignment, f"{manual} {said}")
    return found


def _wrong_replicas(image: ClusterImage, replicas: tuple[int, ...], others: int) -> str | None:
    """``others`` is the number of replicas of the first partition."""
    if not replicas:
        return "an empty replica list."
    for number in sorted(replicas):
        if number not in image.brokers:
            return f"broker {number}, but no such broker is registered."
        if replicas.count(number) > 1:
            return f"the broker {number} more than once."
    if len(replicas) != others:
        return (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions,"
            f" which have {others} replica(s)."
        )
    return None


def spread_replicas(
    call: ServedCall, image: ClusterImage, partitions: int, factor: int
) -> tuple[tuple[int, ...], ...]:
    """The replicas of each partition, over brokers that are alive if there are enough."""
    partitions = 1 if partitions == -1 else partitions
    factor = 1 if factor == -1 else factor
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise _Refused(
            ErrorCode.invalid_partitions,
            "Number of partitions was set to an invalid non-positive value."
            if partitions < 1
            else f"at most {MOST_PARTITIONS} partitions",
        )
    if factor < 1:
        raise _Refused(
            ErrorCode.invalid_replication_factor, "Replication factor must be larger than 0, or -1."
        )
    if factor > len(image.brokers):
        said = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} "
            f"cannot be reached because only {len(image.brokers)} broker(s) are registered"
            " or some brokers have all their log directories cordoned."
        )
        raise _Refused(ErrorCode.invalid_replication_factor, said)
    alive = [number for number, registration in sorted(image.brokers.items()) if registration.active]
    ids = alive if len(alive) >= factor else sorted(image.brokers)
    specs = call.context.world.specs
    rows = spread(tuple(specs[number] for number in ids), factor)
    return tuple(rows[number % len(rows)] for number in range(partitions))


async def _make(call: ServedCall, asked: Any, rows: tuple[tuple[int, ...], ...]) -> None:
    given = {config.name: config.value for config in asked.configs if config.value is not None}
    minimum = given.get(MIN_ISR, "")
    reply = await call.ask(CreateTopic(asked.name, rows, int(minimum) if minimum else None))
    refusal = refusal_of(reply)
    if refusal is not None:
        raise _Refused(code(refusal), message(refusal) or refusal.__class__.__name__)
    topic_config = call.context.inert_configs[TOPIC, asked.name]
    for name, value in given.items():
        if name in ACTED_UPON and name != MIN_ISR:
            await set_config(call, asked.name, name, value)
        elif name != MIN_ISR:
            topic_config[name] = value


async def delete_topics(call: ServedCall) -> Values:
    """By name; from v6 on also by id."""
    names: list[tuple[str | None, str | None]]
    if call.version >= 6:
        names = [(topic.name, kafka_id(topic.topic_id) or None) for topic in call.request.topics]
    else:
        names = [(name, None) for name in call.request.topic_names]
    return {"responses": [await _delete(call, name, by_id) for name, by_id in names]}


async def _delete(call: ServedCall, name: str | None, by_id: str | None) -> Values:
    image = call.context.world.image
    if name is None:
        name = next((topic for topic in topics_of(image) if id_of(image, topic) == by_id), None)
        if name is None:
            return _deleted(None, by_id, ErrorCode.unknown_topic_id, None)
    if not call.rights.topic("DELETE", name):
        return _deleted(name, None, ErrorCode.topic_authorization_failed, None)
    made = id_of(image, name) if name in topics_of(image) else None
    refusal = refusal_of(await call.ask(DeleteTopic(name)))
    if refusal is None:
        call.context.inert_configs.pop((TOPIC, name), None)
    return _deleted(name, made, code(refusal), message(refusal))


def _deleted(name: str | None, made: str | None, error: ErrorCode, said: str | None) -> Values:
    return {"name": name, "topic_id": made, "error_code": error, "error_message": said}
