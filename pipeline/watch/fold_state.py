"""The state of a fold after a micro-batch: a file, named after the micro-batch.

A micro-batch starts from the newest state of an earlier one, so it can be repeated after a kill; the states
before that one are removed.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import orjson

from pipeline.errors import PipelineError
from pipeline.storage import StoragePath
from recovery.controller.registration import LeaderRecoveryState, Registration
from recovery.metadata_log.incident_fold import FoldState, IncidentKey, OpenIncident
from recovery.metadata_log.log_changes import MetadataLogRecord, PartitionSubject
from recovery.metadata_log.outages import Outage
from recovery.metadata_log.partition_states import EpochState
from recovery.model import TopicPartition

VERSION = 2
OTHER_STATES = (
    "the checkpoint has states of another version of ktriage: name another directory by --out, and the logs are"
    " read from their beginning"
)

_SUFFIX = ".state"
_FAST = 1
"""The level of compression: the state is written for every micro-batch that changes it."""


def read_state(place: StoragePath, batch_id: int) -> FoldState:
    """The newest state before that micro-batch; an empty one if there is none.

    Raises PipelineError, also if a later micro-batch has begun: the state before this one may be removed then, and
    only a task of a given up attempt, which Spark could not end, still asks for it.
    """
    written = _written(place)
    if any(number > batch_id for number in written):
        raise PipelineError(f"{place.uri}: micro-batch {batch_id} is over")
    earlier = [number for number in written if number < batch_id]
    return load_state((place / _name(max(earlier))).read()) if earlier else FoldState()


def write_state(place: StoragePath, batch_id: int, state: FoldState) -> None:
    """Raises PipelineError."""
    earlier = sorted(number for number in _written(place) if number < batch_id)
    (place / _name(batch_id)).write(dump_state(state))
    for number in earlier[:-1]:
        (place / _name(number)).remove()


def _name(batch_id: int) -> str:
    return f"{batch_id}{_SUFFIX}"


def _written(place: StoragePath) -> list[int]:
    return [int(file.name.removesuffix(_SUFFIX)) for file in place.walk() if file.name.endswith(_SUFFIX)]


def dump_state(state: FoldState) -> bytes:
    """Equal shapes are written once: most partitions of a topic have the same."""
    shapes: dict[int, tuple[int, Registration]] = {}
    partitions: dict[str, list[int]] = {}
    for (topic_id, partition), (shape, leader_epoch, partition_epoch) in state.partitions.items():
        number, _ = shapes.setdefault(id(shape), (len(shapes), shape))
        partitions.setdefault(topic_id, []).extend((partition, number, leader_epoch, partition_epoch))
    fields = {
        "version": VERSION,
        "reported_until": state.reported_until,
        "uncertain": state.uncertain,
        "goes_on": state.goes_on,
        "topics": state.topics,
        "shapes": [list(shape) for _, shape in shapes.values()],
        "partitions": partitions,
        "min_isr": [[*level, value] for level, value in state.min_isr.items()],
        "incidents": [_incident_fields(open_) for open_ in state.incidents.values()],
        "transaction": None
        if state.transaction is None
        else [[*record[:3], base64.b64encode(record.value).decode()] for record in state.transaction],
    }
    return zlib.compress(orjson.dumps(fields), _FAST)


def load_state(data: bytes) -> FoldState:
    """Raises PipelineError for a state of another version of ktriage."""
    fields = orjson.loads(zlib.decompress(data))
    if fields["version"] != VERSION:
        raise PipelineError(OTHER_STATES)
    shapes = [_registration(values) for values in fields["shapes"]]
    transaction = fields["transaction"]
    return FoldState(
        fields["reported_until"],
        fields["uncertain"],
        fields["goes_on"],
        fields["topics"],
        dict(_partitions(fields["partitions"], shapes)),
        {(level, resource): value for level, resource, value in fields["min_isr"]},
        {open_.key.subject: open_ for open_ in map(_open_incident, fields["incidents"])},
        None
        if transaction is None
        else [
            MetadataLogRecord(offset, time_ms, batch, base64.b64decode(value))
            for offset, time_ms, batch, value in transaction
        ],
    )


def _partitions(
    fields: dict[str, list[int]], shapes: list[Registration]
) -> Iterator[tuple[PartitionSubject, EpochState]]:
    for topic_id, numbers in fields.items():
        partitions, shape_of, leader_epochs, partition_epochs = (numbers[column::4] for column in range(4))
        subjects = map(PartitionSubject, repeat(topic_id), partitions)
        states = map(EpochState, map(shapes.__getitem__, shape_of), leader_epochs, partition_epochs)
        yield from zip(subjects, states, strict=True)


def _registration(values: list[Any]) -> Registration:
    replicas, isr, leader, leader_epoch, partition_epoch, elr, last_known, recovery, *moves, directories = (
        values
    )
    removing, adding = moves
    return Registration(
        tuple(replicas),
        tuple(isr),
        leader,
        leader_epoch,
        partition_epoch,
        tuple(elr),
        tuple(last_known),
        LeaderRecoveryState(recovery),
        tuple(removing),
        tuple(adding),
        tuple(directories),
    )


def _incident_fields(open_: OpenIncident) -> list[Any]:
    (subject, offset), outage, exact, leader_epoch = open_
    return [*subject, offset, outage.tp.topic, outage.since_ms, outage.leader_before, exact, leader_epoch]


def _open_incident(fields: list[Any]) -> OpenIncident:
    topic_id, partition, offset, topic, since_ms, leader_before, exact, leader_epoch = fields
    outage = Outage(TopicPartition(topic, partition), since_ms, leader_before=leader_before)
    key = IncidentKey(PartitionSubject(topic_id, partition), offset)
    return OpenIncident(key, outage, exact, leader_epoch)
