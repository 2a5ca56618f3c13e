"""Replicas of one topic on one broker, as columns.

A batch holds replicas that answer without an error. A replica with an error leaves the batch
(:meth:`TopicBatch.drop`) and is asked on its own from then on (``survey_row``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby, repeat
from operator import attrgetter, gt, itemgetter
from typing import Any, NamedTuple

from backends.base.answers import LikelyEpochs
from backends.live.calls.describe_log_dirs import ReplicaSizes
from backends.live.codec.names import numbers
from backends.live.survey.survey_progress import asked
from recovery import epoch_probe as probing
from recovery.epoch_probe import EpochAnswer, EpochProbe, OutOfRange
from recovery.model import (
    NO_EPOCH,
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

NOT_READ_BEFORE: Mapping[TopicPartition, int] = {}

NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")
NOT_SETTLED = Unknown(Why.NOT_ANSWERED, "not settled in time")

_made = tuple.__new__
_ANSWERED = tuple(map(repeat, Replica._field_defaults.values()))
"""What the log of a replica says that was not read from a disk."""
_topic, _partition, _leader, _leader_epoch, _replicas = map(
    itemgetter,
    map(PartitionState._fields.index, ("topic", "partition", "leader", "leader_epoch", "replicas")),
)
_offline_replicas = attrgetter("offline_replicas")
_asks, _log_start, _high_watermark, _bottom = map(
    itemgetter, map(EpochProbe._fields.index, ("asks", "log_start_offset", "high_watermark", "bottom"))
)


class LogEndColumns(NamedTuple):
    """Log end offsets and the partitions' leader epochs, in the order in which they were asked for."""

    offsets: Sequence[int]
    leader_epochs: Sequence[int]


class TopicBatch:
    """``indices`` are those of ``states`` in the survey; ``likely`` as in :func:`probing.start`. ``left`` are the
    positions here without a last epoch.

    ``ends`` and ``probes`` are empty until the broker has reported its log ends. ``behind`` are the partitions of
    which the broker knows an older leader epoch, and ``leads`` tells of these whether it leads them.
    """

    __slots__ = (
        "behind",
        "ends",
        "indices",
        "leads",
        "left",
        "likely",
        "numbers",
        "probes",
        "states",
        "topic",
        "unknown",
    )

    def __init__(
        self,
        topic: str,
        states: tuple[PartitionState, ...],
        indices: tuple[int, ...],
        likely: tuple[int, ...],
    ) -> None:
        self.topic = topic
        self.states = states
        self.indices = indices
        self.likely = likely
        self.numbers: tuple[int, ...] = tuple(map(_partition, states))
        self.ends = LogEndColumns((), ())
        self.probes: list[EpochProbe] = []
        self.left: list[int] = []
        self.behind: tuple[int, ...] = ()
        self.leads: dict[int, bool] = {}
        self.unknown = NOT_SETTLED

    @property
    def topic_id(self) -> str:
        return self.states[0].topic_id

    def begin(self, ends: LogEndColumns) -> None:
        """Take over the log ends. Raises EpochProbeError where one of them is not usable."""
        known = tuple(map(_leader_epoch, self.states))
        epochs: Iterable[int] = ends.leader_epochs
        self.behind = ()
        if known != tuple(ends.leader_epochs):
            epochs = map(max, known, ends.leader_epochs)
            self.behind = tuple(compress(self.numbers, map(gt, known, ends.leader_epochs)))
        offline = [leader < 0 for leader in map(_leader, self.states)]
        self.probes = list(map(probing.start, ends.offsets, epochs, offline, self.likely))
        self.ends = ends
        # Nothing else settles a log yet.
        self.left = [position for position, settled in enumerate(map(_bottom, self.probes)) if not settled]

    def tps(self) -> list[TopicPartition]:
        """All its partitions."""
        return list(numbers(self.topic).all(self.numbers))

    def questions(self) -> tuple[tuple[int, ...], Sequence[int], Sequence[int]]:
        """Partitions, log ends and epochs of what is to be asked next."""
        if len(self.left) == len(self.numbers):
            return self.numbers, self.ends.offsets, list(map(_asks, self.probes))
        asks = [self.probes[position].asks for position in self.left]
        numbers, offsets = self.numbers, self.ends.offsets
        return tuple([numbers[n] for n in self.left]), [offsets[n] for n in self.left], asks

    def advance(self, answers: Iterable[EpochAnswer | OutOfRange]) -> None:
        """One answer to each question. Raises EpochProbeError, and changes nothing, where one contradicts."""
        probes = self.probes
        if len(self.left) == len(probes):
            self.probes = moved = list(map(probing.advance, probes, answers))
        else:
            moved = list(map(probing.advance, [probes[position] for position in self.left], answers))
            for position, probe in zip(self.left, moved, strict=True):
                probes[position] = probe
        if all(map(_bottom, moved)):
            self.left = []
        else:
            self.left = [place for place, probe in zip(self.left, moved, strict=True) if not probe.settled]

    def drop(self, positions: Iterable[int]) -> None:
        """Take the replicas at ``positions`` out of the batch; they are asked on their own."""
        gone = set(positions)
        keep = [place not in gone for place in range(len(self.states))]
        new_positions = {old: new for new, old in enumerate(compress(range(len(keep)), keep))}
        self.states = tuple(compress(self.states, keep))
        self.indices = tuple(compress(self.indices, keep))
        self.likely = tuple(compress(self.likely, keep))
        self.numbers = tuple(compress(self.numbers, keep))
        self.ends = LogEndColumns(*(tuple(compress(column, keep)) for column in self.ends))
        self.probes = list(compress(self.probes, keep))
        self.left = [new_positions[place] for place in self.left if place in new_positions]

    def replicas(
        self, broker: int, brokers: Mapping[int, Broker], sizes: ReplicaSizes
    ) -> Iterable[tuple[int, Replica]]:
        """Every replica here, after the index of its partition in the survey."""
        if not self.states:
            return ()
        standings = self._standings(broker, brokers)
        rows: Iterable[Any] = zip(repeat(broker), standings, self._logs(sizes), *_ANSWERED)
        return zip(self.indices, map(_made, repeat(Replica), rows), strict=True)

    def replica(
        self, partition: int, broker: int, brokers: Mapping[int, Broker], sizes: ReplicaSizes
    ) -> Replica | None:
        """The replica of that partition; None: it is not, or no longer, in this batch."""
        position = self.position(partition)
        if position is None:
            return None
        state = self.states[position]
        log = self._log(position, *sizes.one(state.tp)) if self.probes else self.unknown
        return Replica(broker, standing(state, broker, brokers), log)

    def position(self, partition: int) -> int | None:
        """The position of that partition here; None: it is not, or no longer, in this batch."""
        position = bisect_left(self.numbers, partition)
        found = position < len(self.numbers) and self.numbers[position] == partition
        return position if found else None

    def incomplete(self) -> Sequence[int]:
        """The indices of the partitions whose log, or last epoch, is not known."""
        if not self.probes:
            return self.indices
        return [self.indices[position] for position in self.left]

    def _standings(self, broker: int, brokers: Mapping[int, Broker]) -> Iterable[Standing]:
        usual = standing(self.states[0]._replace(offline_replicas=()), broker, brokers)
        if not any(map(_offline_replicas, self.states)):
            return repeat(usual)
        return [standing(state, broker, brokers) for state in self.states]

    def _logs(self, sizes: ReplicaSizes) -> Iterable[ReplicaLog | Unknown]:
        if not self.probes:
            return repeat(self.unknown, len(self.states))
        dirs, in_bytes = sizes.of(self.topic, self.numbers)
        offsets, epochs = self.ends
        if not self.left:
            probes = self.probes
            starts, marks = map(_log_start, probes), map(_high_watermark, probes)
            leads = map(self.leads.get, self.numbers) if self.leads else repeat(None)
            rows = zip(
                epochs,
                offsets,
                starts,
                marks,
                map(probing.lineage, probes),
                dirs,
                in_bytes,
                leads,
                strict=False,
            )
            return map(_made, repeat(ReplicaLog), rows)  # as ReplicaLog(...) does, without a call of Python's
        return map(self._log, range(len(self.probes)), dirs, in_bytes)

    def _log(self, position: int, log_dir: str, size: int) -> ReplicaLog:
        probe, offset, epoch = (
            self.probes[position],
            self.ends.offsets[position],
            self.ends.leader_epochs[position],
        )
        leads = self.leads.get(self.numbers[position])
        if not probe.settled:
            return ReplicaLog(epoch, offset, lineage=self.unknown, log_dir=log_dir, size=size, leads=leads)
        lineage = probing.lineage(probe)
        return ReplicaLog(
            epoch, offset, probe.log_start_offset, probe.high_watermark, lineage, log_dir, size, leads
        )


def topic_batches(
    states: Sequence[PartitionState], *, leaders_only: bool, likely_epochs: LikelyEpochs
) -> dict[int, list[TopicBatch]]:
    """The batches of each broker; ``states`` sorted; ``leaders_only`` and ``likely_epochs`` as in SurveyRequest."""
    found: dict[int, list[TopicBatch]] = {}
    first = 0
    for topic, group in groupby(states, _topic):
        several = tuple(group)
        mine: dict[int, list[int]] = {}
        wanted = (
            [asked(state, leaders_only=True) for state in several]
            if leaders_only
            else map(_replicas, several)
        )
        for index, brokers in enumerate(wanted, first):
            for broker in brokers:
                if broker in mine:
                    mine[broker].append(index)
                else:
                    mine[broker] = [index]
        for broker, indices in mine.items():
            likely = likely_epochs.get(broker, NOT_READ_BEFORE)
            found.setdefault(broker, []).extend(_cut(topic, indices, states, likely))
        first += len(several)
    return found


def _cut(
    topic: str,
    indices: Sequence[int],
    states: Sequence[PartitionState],
    likely: Mapping[TopicPartition, int],
) -> Iterator[TopicBatch]:
    for first in range(0, len(indices), LARGEST):
        part = tuple(indices[first : first + LARGEST])
        mine = tuple(map(states.__getitem__, part))
        epochs = (
            tuple([likely.get(state.tp, NO_EPOCH) for state in mine]) if likely else (NO_EPOCH,) * len(mine)
        )
        yield TopicBatch(topic, mine, part, epochs)


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
