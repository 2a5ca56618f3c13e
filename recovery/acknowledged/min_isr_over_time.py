"""The min ISR by which a leader acknowledged, over time, from the metadata log and from the brokers' answers.

What is believed of Kafka, each with its source (tried on 4.3.1 in ``tests/live/test_advice_by_min_isr.py``):

- The value is that of the broker that leads: topic, broker, cluster, file (:func:`in_force`).
- A topic's value belongs to the topic id in whose life it was set. Nothing in the log removes it with the topic:
  ``ReplicationControlManager.replay(RemoveTopicRecord)`` does. A broker that reads setting and removal in one
  delta, as at its start, keeps the old value (``ConfigurationsDelta.replay(RemoveTopicRecord)`` looks only into the
  image of before the delta), so that either may be in force. A controller that read it back writes it into its
  next snapshot, for the topic that was made again (tried on 4.3.1).
- A broker applies a delta's leaderships before its configurations (``BrokerMetadataPublisher.onMetadataUpdate``),
  so a new leader acknowledges for a moment by the values of before; see :data:`APPLIED_LATE_MS`.
- A broker reads its file when it starts (``KafkaConfig``), so an answer tells the file for the life of its process.
- With the ELR on the cluster always has a dynamic value, whose removal is refused like a value of a single broker
  (``ConfigurationControlManager``; seen on 4.3.1, formatted with the ELR and upgraded to it): no file counts then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from recovery.acknowledged.broker_restarts import BrokerRestart
from recovery.controller.rules import MIN_ISR
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, ConfigSubject, HistoryRow, TopicSubject
from recovery.metadata_log.min_isr_levels import (
    OF_CLUSTER,
    MinIsrLevel,
    configured_number,
    in_force,
    of_broker,
    of_topic,
)
from recovery.metadata_log.records import ConfigRecord, RemoveTopicRecord, TopicRecord
from recovery.model import FileAnswer, MinIsrLevels

BEFORE_THE_LOG = -1
"""The offset of values from a snapshot: they were in force before the first record of the log."""

APPLIED_LATE_MS = 60_000
"""A value that was replaced so many ms before an election may still be in force on the broker that was elected.

A broker gets both changes in one delta where it hung in between: it stays in the ISR, and can be elected, until its
session ends (``broker.session.timeout.ms``, 9 s by default). Tried on 4.3.1 with 300 new leaderships in the delta:
min ISR was raised 6.0 s before the election, the broker hung for 8 s, and acknowledged 4,884 records by the old
value, up to 0.94 s after it went on. No answer shows how late a broker was, so the margin is ten times that.
"""

CLOCKS_APART_MS = 10_000
"""So far the clock of whoever asked a broker may be from that of the controllers."""


class MinIsrChange(NamedTuple):
    """From ``offset`` on one of ``values`` was in force on a broker; None: that of its file. With ``from_snapshot``
    the topic's value stands in a snapshot, as the topic does; ``without`` would be in force if an earlier topic of
    that name had it.
    """

    offset: int
    time_ms: int
    values: tuple[int | None, ...]
    from_snapshot: bool = False
    without: int | None = None


class LowestMinIsr(NamedTuple):
    """``assumed``: the value is taken for the leader's file, which is not known; a lower one may be in it."""

    value: int
    assumed: bool = False


_offset = attrgetter("offset")


class MinIsrOverTime:
    """The values that each broker had in force for one topic.

    ``changes`` of each broker, the oldest first, beginning before the log. ``restarts`` of each broker, the oldest
    first. ``files`` of each broker: for each of its processes the value of its file, None where it is not known;
    one process more than there are restarts. ``assumed`` stands for a file that is not known.
    """

    def __init__(
        self,
        changes: Mapping[int, Sequence[MinIsrChange]],
        restarts: Mapping[int, Sequence[BrokerRestart]],
        files: Mapping[int, Sequence[int | None]],
        assumed: int,
    ) -> None:
        self._changes = changes
        self._restarts = restarts
        self._files = files
        self._assumed = assumed

    def lowest(self, leader: int, start: int, start_ms: int, end: int) -> LowestMinIsr:
        """The lowest value by which ``leader`` may have acknowledged in a leader epoch: from the change at offset
        ``start`` (``start_ms``) to the one at ``end``.
        """
        between, file = self._in_epoch(leader, start, start_ms, end)
        found = {value for one in between for value in one.values}
        known = [value for value in found if value is not None]
        if None not in found:
            return LowestMinIsr(min(known))
        if file is not None:
            return LowestMinIsr(min((*known, file)))
        lowest = min((*known, self._assumed))
        return LowestMinIsr(lowest, assumed=lowest > 1)

    def lowest_if_made_again(self, leader: int, start: int, start_ms: int, end: int) -> int | None:
        """The lowest value as :meth:`lowest` has it, if the value that a snapshot has of the topic is that of an
        earlier topic of the same name. None: the topic has no value of a snapshot, or it was set in its own life.
        """
        between, file = self._in_epoch(leader, start, start_ms, end)
        found = {one.without for one in between if one.from_snapshot}
        return (
            min((1 if file is None else file) if value is None else value for value in found)
            if found
            else None
        )

    def _in_epoch(
        self, leader: int, start: int, start_ms: int, end: int
    ) -> tuple[Iterator[MinIsrChange], int | None]:
        """What may have been in force in a leader epoch, and the file of the process that led."""
        restarts = self._restarts.get(leader, ())
        process = bisect_right(restarts, start, key=_offset)
        # It was unfenced only when it had applied everything up to its registration (BrokerLifecycleManager).
        since = restarts[process - 1].offset if process else BEFORE_THE_LOG
        return self._between(leader, since, start, start_ms, end), self._files[leader][process]

    def _between(
        self, leader: int, since: int, start: int, start_ms: int, end: int
    ) -> Iterator[MinIsrChange]:
        """The values in force at ``start``, each later one up to ``end``, and before it those that the leader may
        have applied late.
        """
        changes = self._changes[leader]
        first = bisect_right(changes, start, key=_offset) - 1
        last = bisect_right(changes, end, first, key=_offset)
        while (
            first > 0
            and changes[first].offset > since
            and changes[first].time_ms > start_ms - APPLIED_LATE_MS
        ):
            first -= 1
        return iter(changes[first:last])


def min_isr_over_time(
    history: MetadataHistory,
    topic: TopicSubject,
    restarts: Mapping[int, Sequence[BrokerRestart]],
    now: int,
    *,
    answers: Iterable[MinIsrLevels] = (),
    file_answers: Mapping[int, Sequence[FileAnswer]] = MappingProxyType({}),
) -> MinIsrOverTime:
    """The values in force for the topic of that id while one of the brokers of ``restarts`` leads.

    ``now`` is the effective value that the cluster reported, ``answers`` are those of single brokers, and
    ``file_answers`` is what they answered earlier about their files. A file that is not known is assumed to have
    the lowest value of the others' files, or else ``now`` where no record sets a value, and 1 where one does.
    """
    answer_of = {one.broker: one for one in answers}
    life = _topic_values(history, topic)
    of_all = list(_level_values(history, OF_CLUSTER))
    changes = {}
    for broker in restarts:
        rows = [*life.rows, *of_all, *_level_values(history, of_broker(broker))]
        rows.sort(key=_offset)
        changes[broker] = _changes(rows, life)
    deviating = _deviating_values(life, answer_of.values())
    if deviating:
        changes = {
            broker: [one._replace(values=(*one.values, *deviating)) for one in several]
            for broker, several in changes.items()
        }
    files = {
        broker: _files(of, answer_of.get(broker), file_answers.get(broker, ()))
        for broker, of in restarts.items()
    }
    others = [one.file for one in answer_of.values()]
    unset = all(None in several[-1].values for several in changes.values())
    return MinIsrOverTime(changes, restarts, files, min(others, default=now if unset else 1))


class _Value(NamedTuple):
    """``level`` has this value from ``offset`` on; None: it sets none."""

    offset: int
    time_ms: int
    level: MinIsrLevel
    value: int | None


class _TopicLife(NamedTuple):
    """``rows`` are the topic's own values, those of its creation from before the log on. ``earlier`` is the last
    value of the deleted topics of the same name, which a broker may have kept; None: they had none.
    ``in_snapshot``: its creation is older than the log, so that nothing is known of topics before it.
    """

    level: MinIsrLevel
    rows: list[_Value]
    earlier: int | None
    in_snapshot: bool = False


def _topic_values(history: MetadataHistory, topic: TopicSubject) -> _TopicLife:
    name = history.topic_name(topic.topic_id) or ""
    level = of_topic(name)
    values = [(row, value) for row, value in _values(history, level)]
    created = next((row for row in history.of(topic) if isinstance(row.change, TopicRecord)), None)
    if created is None or created.batch == IN_SNAPSHOT:
        return _TopicLife(level, [_value(row, level, value) for row, value in values], None, in_snapshot=True)
    others = (TopicSubject(other) for other in history.topic_ids(name) if other != topic.topic_id)
    removals = [
        row.offset
        for other in others
        for row in history.of(other)
        if isinstance(row.change, RemoveTopicRecord) and row.offset < created.offset
    ]
    # Nobody can set a value of a topic that does not exist: what comes after the removal belongs to the creation.
    began = max(removals, default=BEFORE_THE_LOG)
    rows, earlier = [], None
    for row, value in values:
        if row.batch == IN_SNAPSHOT or row.offset < began:
            earlier = value
        elif row.offset < created.offset or row.batch == created.batch:
            rows.append(_Value(BEFORE_THE_LOG, row.time_ms, level, value))
        else:
            rows.append(_Value(row.offset, row.time_ms, level, value))
    return _TopicLife(level, rows, earlier)


def _values(history: MetadataHistory, level: MinIsrLevel) -> Iterator[tuple[HistoryRow, int | None]]:
    for row in history.of(ConfigSubject(*level, MIN_ISR)):
        if isinstance(row.change, ConfigRecord):
            yield row, configured_number(row.change.value)


def _value(row: HistoryRow, level: MinIsrLevel, value: int | None) -> _Value:
    at = BEFORE_THE_LOG if row.batch == IN_SNAPSHOT else row.offset
    return _Value(at, row.time_ms, level, value)


def _level_values(history: MetadataHistory, level: MinIsrLevel) -> Iterator[_Value]:
    return (_value(row, level, value) for row, value in _values(history, level))


def _changes(rows: Iterable[_Value], life: _TopicLife) -> list[MinIsrChange]:
    """What one broker had in force; ``rows`` are those that concern it, in the order of the log."""
    found = [MinIsrChange(BEFORE_THE_LOG, 0, _in_force({}, life))]
    values: dict[MinIsrLevel, int | None] = {}
    from_snapshot = False
    for offset, time_ms, level, value in rows:
        values[level] = value
        if level == life.level:
            from_snapshot = life.in_snapshot and offset == BEFORE_THE_LOG and value is not None
        if found[-1].offset == offset:
            found.pop()
        without = _of_others(values, life)
        found.append(MinIsrChange(offset, time_ms, _in_force(values, life), from_snapshot, without))
    return found


def _in_force(values: Mapping[MinIsrLevel, int | None], life: _TopicLife) -> tuple[int | None, ...]:
    """A topic that never had a value in this life may have that of an earlier one."""
    own = values.get(life.level)
    now = _of_others(values, life) if own is None else own
    if life.level in values or life.earlier is None:
        return (now,)
    return now, life.earlier


def _of_others(values: Mapping[MinIsrLevel, int | None], life: _TopicLife) -> int | None:
    """The value in force where the topic has none."""
    broker = next((v for level, v in values.items() if level not in (OF_CLUSTER, life.level)), None)
    return in_force(None, broker, values.get(OF_CLUSTER))


def _deviating_values(life: _TopicLife, answers: Iterable[MinIsrLevels]) -> tuple[int, ...]:
    """The values of brokers on which a topic's own value is not as the log has it: then nobody's is certain."""
    own = life.rows[-1].value if life.rows else None
    expected = {own} if life.rows else {own, life.earlier}
    return tuple({one.in_force for one in answers if one.topic not in expected})


def _files(
    restarts: Sequence[BrokerRestart], now: MinIsrLevels | None, file_answers: Iterable[FileAnswer]
) -> list[int | None]:
    """The value of the file of each process of a broker; the last process is the one that answered now."""
    found: list[int | None] = [None] * (len(restarts) + 1)
    starts = [restart.time_ms for restart in restarts]
    for one in sorted(file_answers, key=lambda one: one.time_ms):
        process = bisect_right(starts, one.time_ms)
        began = starts[process - 1] if process else None
        ended = starts[process] if process < len(starts) else None
        if (began is None or began + CLOCKS_APART_MS <= one.time_ms) and (
            ended is None or one.time_ms <= ended - CLOCKS_APART_MS
        ):
            found[process] = one.value
    if now is not None:
        found[-1] = now.file
    return found
