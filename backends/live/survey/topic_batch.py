"""Replicas of one topic on one broker, as columns.

A batch holds replicas that answer without an error. A replica with an error leaves the batch
(:meth:`TopicBatch.drop`) and is asked on its own from then on (``survey_row``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby, repeat
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from backends.live.calls.log_dir_replicas import ReplicaSizes
from backends.live.codec.names import numbers
from backends.live.survey.survey_progress import asked
from recovery import epoch_probe as probing
from recovery.epoch_probe import EpochAnswer, EpochProbe, OutOfRange
from recovery.model import (
    Broker,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.standing import standing

LARGEST = 1_000
"""Partitions in one batch: the limit of one GetReplicaLogInfo request."""

NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")
NOT_SETTLED = Unknown(Why.NOT_ANSWERED, "not settled in time")

_made = tuple.__new__
_topic, _partition = itemgetter(0), itemgetter(1)
_log_start, _high_watermark = itemgetter(3), itemgetter(4)
_offline_replicas = attrgetter("offline_replicas")


class LogEndColumns(NamedTuple):
    """Log end offsets and the partitions' leader epochs, in the order in which they were asked for."""

    offsets: Sequence[int]
    leader_epochs: Sequence[int]


class TopicBatch:
    """``places`` are those of the replicas in the whole survey; ``left`` are the positions without a last epoch.

    ``ends`` and ``probes`` are empty until the broker has reported its log ends.
    """

    __slots__ = ("ends", "left", "numbers", "places", "probes", "states", "topic", "unknown")

    def __init__(self, topic: str, states: tuple[PartitionState, ...], places: tuple[int, ...]) -> None:
        self.topic = topic
        self.states = states
        self.places = places
        self.numbers: tuple[int, ...] = tuple(map(_partition, states))
        self.ends = LogEndColumns((), ())
        self.probes: list[EpochProbe] = []
        self.left: list[int] = []
        self.unknown = NOT_SETTLED

    @property
    def topic_id(self) -> str:
        return self.states[0].topic_id

    def begin(self, ends: LogEndColumns) -> None:
        """Take over the log ends. Raises EpochProbeError where one of them is not usable."""
        known = [state.leader_epoch for state in self.states]
        epochs = (
            ends.leader_epochs if known == list(ends.leader_epochs) else map(max, known, ends.leader_epochs)
        )
        offline = [state.leader < 0 for state in self.states]
        self.probes = list(map(probing.start, ends.offsets, epochs, offline))
        self.ends = ends
        self.left = [place for place, probe in enumerate(self.probes) if not probe.bottom]  # nothing else yet

    def tps(self) -> list[TopicPartition]:
        """All its partitions."""
        return list(numbers(self.topic).all(self.numbers))

    def questions(self) -> tuple[tuple[int, ...], Sequence[int], Sequence[int]]:
        """Partitions, log ends and epochs of what is to be asked next."""
        asks = [self.probes[place].asks for place in self.left]
        if len(self.left) == len(self.numbers):
            return self.numbers, self.ends.offsets, asks
        numbers, offsets = self.numbers, self.ends.offsets
        return tuple([numbers[n] for n in self.left]), [offsets[n] for n in self.left], asks

    def advance(self, answers: Iterable[EpochAnswer | OutOfRange]) -> None:
        """One answer to each question. Raises EpochProbeError, and changes nothing, where one contradicts."""
        probes = self.probes
        if len(self.left) == len(probes):
            self.probes = moved = list(map(probing.advance, probes, answers))
        else:
            moved = list(map(probing.advance, [probes[place] for place in self.left], answers))
            for place, probe in zip(self.left, moved, strict=True):
                probes[place] = probe
        self.left = [place for place, probe in zip(self.left, moved, strict=True) if not probe.settled]

    def drop(self, positions: Iterable[int]) -> None:
        """Take the replicas at ``positions`` out of the batch; they are asked on their own."""
        gone = set(positions)
        keep = [place not in gone for place in range(len(self.states))]
        kept = {old: new for new, old in enumerate(compress(range(len(keep)), keep))}
        self.states = tuple(compress(self.states, keep))
        self.places = tuple(compress(self.places, keep))
        self.numbers = tuple(compress(self.numbers, keep))
        self.ends = LogEndColumns(*(tuple(compress(column, keep)) for column in self.ends))
        self.probes = list(compress(self.probes, keep))
        self.left = [kept[place] for place in self.left if place in kept]

    def fill(
        self, found: list[Replica | None], broker: int, brokers: Mapping[int, Broker], sizes: ReplicaSizes
    ) -> None:
        """Write every replica into its place in ``found``."""
        if not self.states:
            return
        standings = self._standings(broker, brokers)
        rows: Iterable[Any] = zip(repeat(broker), standings, self._logs(sizes), repeat(None))
        for place, replica in zip(self.places, map(_made, repeat(Replica), rows), strict=True):
            found[place] = replica

    def _standings(self, broker: int, brokers: Mapping[int, Broker]) -> Iterable[Standing]:
        usual = standing(self.states[0]._replace(offline_replicas=()), broker, brokers)
        if not any(map(_offline_replicas, self.states)):
            return repeat(usual)
        return [standing(state, broker, brokers) for state in self.states]

    def _logs(self, sizes: ReplicaSizes) -> Iterable[ReplicaLog | Unknown]:
        if not self.probes:
            return repeat(self.unknown, len(self.states))
        dirs, held = sizes.of(self.topic, self.numbers)
        offsets, epochs = self.ends
        if not self.left:
            probes = self.probes
            starts, marks = map(_log_start, probes), map(_high_watermark, probes)
            rows = zip(epochs, offsets, starts, marks, map(probing.lineage, probes), dirs, held, strict=False)
            return map(_made, repeat(ReplicaLog), rows)  # as ReplicaLog(...) does, without a call of Python's
        return self._partly(list(zip(dirs, held, strict=False)))

    def _partly(self, held: list[tuple[str, int]]) -> Iterator[ReplicaLog]:
        left = set(self.left)
        for place, (probe, offset, epoch) in enumerate(zip(self.probes, *self.ends, strict=True)):
            if place in left:
                yield ReplicaLog(
                    epoch, offset, lineage=self.unknown, log_dir=held[place][0], size=held[place][1]
                )
            else:
                lineage = probing.lineage(probe)
                yield ReplicaLog(
                    epoch, offset, probe.log_start_offset, probe.high_watermark, lineage, *held[place]
                )


def topic_batches(states: Iterable[PartitionState], *, leaders_only: bool) -> dict[int, list[TopicBatch]]:
    """The batches of each broker; ``states`` sorted; ``leaders_only`` as in SurveyRequest."""
    found: dict[int, list[TopicBatch]] = {}
    place = 0
    for topic, group in groupby(states, _topic):
        mine: dict[int, list[tuple[PartitionState, int]]] = {}
        for state in group:
            wanted = asked(state, leaders_only=leaders_only)
            for broker in state.replicas:
                if broker in wanted:
                    if broker in mine:
                        mine[broker].append((state, place))
                    else:
                        mine[broker] = [(state, place)]
                place += 1
        for broker, several in mine.items():
            found.setdefault(broker, []).extend(_cut(topic, several))
    return found


def _cut(topic: str, several: Sequence[tuple[PartitionState, int]]) -> Iterator[TopicBatch]:
    for first in range(0, len(several), LARGEST):
        yield TopicBatch(topic, *zip(*several[first : first + LARGEST], strict=True))


def per_request(waiting: Sequence[TopicBatch], at_most: int) -> Iterator[list[TopicBatch]]:
    """The batches of one request at a time: at most ``at_most`` partitions, and each topic once."""
    together: list[TopicBatch] = []
    size = 0
    for batch in waiting:
        if together and (size + len(batch.numbers) > at_most or together[-1].topic == batch.topic):
            yield together
            together, size = [], 0
        together.append(batch)
        size += len(batch.numbers)
    if together:
        yield together
