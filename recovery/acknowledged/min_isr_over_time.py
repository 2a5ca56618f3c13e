"""The topic's min ISR over time, from the metadata log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from recovery.controller.rules import MIN_ISR
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, ConfigSubject
from recovery.metadata_log.min_isr_levels import configured_number, effective_level, min_isr_levels
from recovery.metadata_log.records import ConfigRecord

BEFORE_THE_LOG = -1
"""The offset of values from a snapshot: they were in force before the first record of the log."""


class MinIsrChange(NamedTuple):
    """``value`` was configured from ``offset`` on; None: only the brokers' own files had a value."""

    offset: int
    value: int | None


_offset = attrgetter("offset")


class MinIsrOverTime(NamedTuple):
    """The topic's min.insync.replicas, the oldest change first; the first entry is the value before the log.

    ``static`` is the value of the brokers' own files, which counts if no record sets one.
    """

    changes: tuple[MinIsrChange, ...]
    static: int

    def lowest(self, start: int, end: int) -> int:
        """The lowest value in force between the offsets ``start`` and ``end``."""
        return min(self.static if value is None else value for value in self._between(start, end))

    def only_static(self, start: int, end: int) -> bool:
        """Whether the value between these offsets depends on the brokers' own files, which no record shows."""
        return any(value is None for value in self._between(start, end))

    def _between(self, start: int, end: int) -> Iterator[int | None]:
        """The value in force at ``start``, then each later one up to ``end``."""
        first = bisect_right(self.changes, start, key=_offset) - 1
        last = bisect_right(self.changes, end, first, key=_offset)
        return (change.value for change in self.changes[first:last])


def min_isr_over_time(
    history: MetadataHistory, topic: str, brokers: Iterable[int], now: int
) -> MinIsrOverTime:
    """Kafka's precedence: the topic's own value, then one broker's, then the cluster's, then the brokers' files.

    ``now`` is the effective value that the cluster reported. It stands for the files if no record sets a value; if
    one does, the files are not known and may contain 1. Of several brokers' values the lowest is taken.
    """
    rows = []
    for level, resource in min_isr_levels(topic, brokers):
        for row in history.of(ConfigSubject(level, resource, MIN_ISR)):
            if isinstance(row.change, ConfigRecord):
                at = BEFORE_THE_LOG if row.batch == IN_SNAPSHOT else row.offset
                rows.append((at, level, resource, configured_number(row.change.value)))
    rows.sort(key=lambda row: row[0])
    values: dict[tuple[int, str], int | None] = {}
    changes = [MinIsrChange(BEFORE_THE_LOG, None)]
    for at, level, resource, value in rows:
        values[level, resource] = value
        changes.append(MinIsrChange(at, effective_level(values, topic)))
    return MinIsrOverTime(tuple(changes), now if changes[-1].value is None else 1)
