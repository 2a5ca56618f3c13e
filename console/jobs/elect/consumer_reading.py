"""What consumers are given of a plan's partitions, beside what was read of the leaders' logs before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backends.base.consumer_witness import ConsumerWitness
from backends.base.protocol import Backend
from recovery.consumer_sight import ConsumerSight, ReadThrough, disagreements
from recovery.model import ReplicaLog, Survey, TopicPartition, Unknown, Why
from recovery.wording.quantity_text import counted, printable
from widgets.fields import first_lines

AT_MOST = 200
"""Partitions that are read: one after the other is asked for its offsets."""
SECONDS = 20.0
OFFSETS_TOPIC = "__consumer_offsets"
_WOULD_MAKE_TOPIC = Unknown(
    Why.NOT_ASKED,
    f"the cluster has no {OFFSETS_TOPIC} yet, and a broker makes that topic for the first consumer",
)
"""A consumer of librdkafka looks for its group's coordinator, whatever it reads; Kafka makes the topic for that
(``KafkaApis.getCoordinator``).
"""


@dataclass(frozen=True, slots=True)
class ConsumerReading:
    """``sights`` of ``client``, and where they contradict our own reading; ``left_out`` are beyond AT_MOST."""

    client: str
    sights: Mapping[TopicPartition, ConsumerSight | Unknown]
    contradictions: tuple[tuple[TopicPartition, str], ...]
    left_out: int = 0


async def read_as_consumer(
    backend: Backend, surveys: Sequence[Survey], seconds: float
) -> ConsumerReading | None:
    """None where there is no listener that a consumer could read from, as in a simulation."""
    offered = getattr(backend, "consumer_witness", None)
    witness: ConsumerWitness | None = None if offered is None else offered()
    if witness is None:
        return None
    led = [survey for survey in surveys if not survey.state.offline]
    asked = led[:AT_MOST]
    partitions = [survey.tp for survey in asked]
    sights: Mapping[TopicPartition, ConsumerSight | Unknown]
    if await _has_offsets_topic(backend):
        sights = await witness.read(partitions, min(seconds, SECONDS))
    else:
        sights = dict.fromkeys(partitions, _WOULD_MAKE_TOPIC)
    found = tuple(
        (survey.tp, text) for survey in asked for text in disagreements(sights[survey.tp], leader_log(survey))
    )
    return ConsumerReading(witness.client, sights, found, len(led) - len(asked))


async def _has_offsets_topic(backend: Backend) -> bool:
    """Whether the topic is there, also where this caller may not see it."""
    found = await backend.partitions([OFFSETS_TOPIC])
    return bool(found.states) or OFFSETS_TOPIC in found.hidden


def leader_log(survey: Survey) -> ReplicaLog | Unknown | None:
    """The log of the replica that leads; None where none of the replicas does."""
    return next((one.log for one in survey.replicas if one.broker == survey.state.leader), None)


def consumer_lines(reading: ConsumerReading, limit: int) -> Iterator[str]:
    """The contradictions first, then who stands still, and how many partitions were read."""
    if reading.contradictions:
        yield "A CONSUMER DISAGREES with what was read here: trust neither before you know why"
        lines = [f"{printable(str(tp))}: {text}" for tp, text in reading.contradictions]
        yield from first_lines(lines, limit, "  ")
    sights = [one for one in reading.sights.values() if isinstance(one, ConsumerSight)]
    whole = sum(one.finished for one in sights)
    asked = counted(len(reading.sights), "partition")
    line = f"as a consumer ({reading.client}): {whole:,} of {asked} read to the end"
    yield line + (f"; {counted(reading.left_out, 'partition')} more not asked" if reading.left_out else "")
    yield from first_lines(list(_in_trouble(reading.sights)), limit, "  ")


def _in_trouble(sights: Mapping[TopicPartition, ConsumerSight | Unknown]) -> Iterator[str]:
    for tp, one in sights.items():
        name = printable(str(tp))
        if isinstance(one, Unknown):
            yield f"{name}: not read: {one}"
        elif not one.finished:
            yield f"{name}: not read to the end in time (offsets {one.start:,} to {one.high:,})"
        elif one.waits_at is not None:
            yield (
                f"{name}: consumers of committed records stand still at offset {one.waits_at:,} of {one.high:,}:"
                " a transaction is open there, or hangs"
            )


def consumer_json(reading: ConsumerReading | None) -> dict[str, object] | None:
    """None where no consumer read."""
    if reading is None:
        return None
    rows = [_row(tp, one) for tp, one in reading.sights.items()]
    disagree = [
        {"topic": tp.topic, "partition": tp.partition, "text": text} for tp, text in reading.contradictions
    ]
    return {
        "client": reading.client,
        "contradictions": disagree,
        "partitions": rows,
        "notAsked": reading.left_out,
    }


def _row(tp: TopicPartition, one: ConsumerSight | Unknown) -> dict[str, object]:
    name: dict[str, object] = {"topic": tp.topic, "partition": tp.partition}
    if isinstance(one, Unknown):
        return {**name, "problem": str(one)}
    return {
        **name,
        "low": one.low,
        "high": one.high,
        "start": one.start,
        "uncommitted": _through(one.plain),
        "committed": _through(one.committed),
        "waitsAt": one.waits_at,
        "problem": None,
    }


def _through(one: ReadThrough) -> dict[str, object]:
    return {"records": one.records, "end": one.end}
