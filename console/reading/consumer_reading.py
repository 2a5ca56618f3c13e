"""What consumers are given of partitions and groups, beside what was read here before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from backends.base.consumer_witness import ConsumerWitness
from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.reading.partition_selection import described, surveyed
from recovery.consumer_sight import ConsumerSight, Expected, ReadThrough, disagreements
from recovery.model import ReplicaLog, Survey, TopicPartition, Unknown, Why
from recovery.wording.quantity_text import and_more, counted, printable, some_of
from widgets.fields import first_lines

AT_MOST = 200
"""Partitions that are read, and groups whose offsets are: librdkafka takes one group a request."""
SECONDS = 20.0
MOST_LINES = 5
"""Lines about single partitions or groups at the end of a change."""
OFFSETS_TOPIC = "__consumer_offsets"
DISAGREES = "A CONSUMER DISAGREES with what was read here: trust neither before you know why"
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

    @property
    def in_short(self) -> str:
        """The first contradiction in one sentence, "" where there is none."""
        if not self.contradictions:
            return ""
        tp, text = self.contradictions[0]
        return f"A consumer disagrees: {tp}: {text}{and_more(len(self.contradictions))}"


def contradicted(reading: ConsumerReading | ConsumerOffsets | None) -> bool:
    """Whether a consumer was given something else than was read here."""
    return reading is not None and bool(reading.contradictions)


def _witness(backend: Backend) -> ConsumerWitness | None:
    """None where there is no listener that a consumer could read from, as in a simulation."""
    offered = getattr(backend, "consumer_witness", None)
    return None if offered is None else offered()


async def read_as_consumer(
    backend: Backend,
    surveys: Sequence[Survey],
    seconds: float,
    expected: Mapping[TopicPartition, Expected] = MappingProxyType({}),
) -> ConsumerReading | None:
    """None in a simulation. A leader that did not answer here is not asked again. ``expected``: what a change must
    have brought about.
    """
    witness = _witness(backend)
    if witness is None:
        return None
    led = [survey for survey in surveys if not survey.state.offline]
    asked = led[:AT_MOST]
    logs = {survey.tp: leader_log(survey) for survey in asked}
    sights: dict[TopicPartition, ConsumerSight | Unknown] = {}
    for tp, log in logs.items():
        if isinstance(log, Unknown) and log.why is Why.NOT_ANSWERED:
            sights[tp] = Unknown(Why.NOT_ASKED, "its leader did not answer before")
    wanted = [tp for tp in logs if tp not in sights]
    if wanted and await _has_offsets_topic(backend):
        starts = {tp: at.start for tp, at in expected.items() if at.start is not None}
        sights.update(await witness.read(wanted, min(seconds, SECONDS), starts))
    else:
        sights.update(dict.fromkeys(wanted, _WOULD_MAKE_TOPIC))
    found = tuple(
        (tp, text)
        for tp, log in logs.items()
        if tp in wanted
        for text in disagreements(sights[tp], log, expected.get(tp, Expected()))
    )
    return ConsumerReading(witness.client, sights, found, len(led) - len(asked))


async def read_back_as_consumer(
    backend: Backend, expected: Mapping[TopicPartition, Expected], seconds: float = SECONDS
) -> ConsumerReading | None:
    """After a change of these partitions: their leaders' logs are read here first, and then by a consumer. None in
    a simulation, and where there are none.
    """
    witness = _witness(backend)
    if witness is None or not expected:
        return None
    first = list(expected)[:AT_MOST]
    left_out = len(expected) - len(first)
    try:
        states = (await described(backend, first)).states
        surveys = await surveyed(backend, states, None, seconds, leaders_only=True)
        reading = await read_as_consumer(backend, surveys, seconds, expected)
    except BackendError as error:
        unread = Unknown(Why.NOT_ASKED, f"its leader could not be read before: {error}")
        return ConsumerReading(witness.client, dict.fromkeys(first, unread), (), left_out)
    return reading and replace(reading, left_out=left_out)


@dataclass(frozen=True, slots=True)
class ConsumerOffsets:
    """Where ``client`` says that consumers of so many ``groups`` go on, after a fix; ``unread`` are the others and
    why. ``contradictions``: group, and what differs from what was read here.
    """

    client: str
    groups: int
    unread: Mapping[str, Unknown]
    contradictions: tuple[tuple[str, str], ...]
    left_out: int = 0

    @property
    def in_short(self) -> str:
        """The first contradiction in one sentence, "" where there is none."""
        if not self.contradictions:
            return ""
        group, text = self.contradictions[0]
        return f"A consumer disagrees: group {group}: {text}{and_more(len(self.contradictions))}"


async def offsets_as_consumer(
    backend: Backend, committed: Mapping[str, Mapping[TopicPartition, int]]
) -> ConsumerOffsets | None:
    """Whether consumers of these groups go on where they were read here to go on. None in a simulation."""
    witness = _witness(backend)
    if witness is None or not committed:
        return None
    first = dict(list(committed.items())[:AT_MOST])
    answers = await witness.committed({group: tuple(rows) for group, rows in first.items()}, SECONDS)
    unread = {group: answer for group, answer in answers.items() if isinstance(answer, Unknown)}
    found = []
    for group, answer in answers.items():
        if isinstance(answer, Unknown):
            continue
        for tp, offset in first[group].items():
            given = answer.get(tp)
            if given != offset:
                where = "nowhere" if given is None else f"at {given:,}"
                found.append((group, f"its consumers go on {where} on {tp}, and {offset:,} was read here"))
    return ConsumerOffsets(
        witness.client, len(first) - len(unread), unread, tuple(found), len(committed) - len(first)
    )


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
        yield DISAGREES
        lines = [f"{printable(str(tp))}: {text}" for tp, text in reading.contradictions]
        yield from first_lines(lines, limit, "  ")
    sights = [one for one in reading.sights.values() if isinstance(one, ConsumerSight)]
    whole = sum(one.finished for one in sights)
    asked = counted(len(reading.sights), "partition")
    line = f"as a consumer ({reading.client}): {whole:,} of {asked} read to the end"
    yield line + (f"; {counted(reading.left_out, 'partition')} more not asked" if reading.left_out else "")
    yield from first_lines(list(_in_trouble(reading.sights)), limit, "  ")


def offset_lines(reading: ConsumerOffsets, limit: int) -> Iterator[str]:
    """The contradictions first, and how many groups were read."""
    if reading.contradictions:
        yield DISAGREES
        yield from first_lines([printable(f"{g}: {text}") for g, text in reading.contradictions], limit, "  ")
    asked = counted(reading.groups + len(reading.unread), "group")
    line = f"as a consumer ({reading.client}): the offsets of {reading.groups:,} of {asked} read"
    yield line + (f"; {counted(reading.left_out, 'group')} more not asked" if reading.left_out else "")
    unread = [printable(f"{group}: not read: {why}") for group, why in reading.unread.items()]
    yield from first_lines(unread, limit, "  ")


def offsets_as_consumer_json(reading: ConsumerOffsets | None) -> dict[str, object] | None:
    """None where no consumer read."""
    if reading is None:
        return None
    return {
        "client": reading.client,
        "contradictions": [{"group": group, "text": text} for group, text in reading.contradictions],
        "groups": reading.groups,
        "unread": [{"group": group, "problem": str(why)} for group, why in reading.unread.items()],
        "notAsked": reading.left_out,
    }


def _in_trouble(sights: Mapping[TopicPartition, ConsumerSight | Unknown]) -> Iterator[str]:
    unread: dict[Unknown, list[TopicPartition]] = {}
    for tp, one in sights.items():
        name = printable(str(tp))
        if isinstance(one, Unknown):
            unread.setdefault(one, []).append(tp)
        elif not one.finished:
            yield f"{name}: not read to the end in time (offsets {one.start:,} to {one.high:,})"
        elif one.waits_at is not None:
            yield (
                f"{name}: consumers of committed records stand still at offset {one.waits_at:,} of {one.high:,}:"
                " a transaction is open there, or hangs"
            )
    for why, partitions in unread.items():
        yield f"{printable(some_of(partitions))}: not read: {why}"


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
