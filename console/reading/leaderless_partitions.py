"""Partitions of a replaced disk that have no leader: their replicas do not come back by themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from recovery.disks.disk_swap import leaderless
from recovery.disks.values import LogDirPlace
from recovery.model import PartitionState, TopicPartition
from recovery.wording.quantity_text import counted, some_of

SECONDS = 5.0
"""Seconds without a leader until a partition is reported: a normal election takes a moment."""
SHOWN = 5


class Leaderless:
    """The partitions without a leader that a wait has found. ``now`` is in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._since: dict[TopicPartition, float] = {}
        self._said: tuple[frozenset[TopicPartition], bool] = (frozenset(), False)

    def news(self, left: Iterable[PartitionState], now: float, *, back: bool) -> list[PartitionState] | None:
        """Partitions without a leader for :data:`SECONDS`; None if they are the same as last time and the
        disk has not come back since.
        """
        states = {state.tp: state for state in leaderless(left)}
        self._since = {tp: self._since.get(tp, now) for tp in states}
        found = [states[tp] for tp, since in self._since.items() if now - since >= SECONDS]
        report = frozenset(state.tp for state in found), back and bool(found)
        if report == self._said:
            return None
        self._said = report
        return found


def has_copy(state: PartitionState, where: LogDirPlace) -> bool:
    """Whether a replica on another disk may have a copy."""
    return bool(set(state.replicas) - {where.broker} - set(state.offline_replicas))


def leaderless_lines(
    found: Iterable[PartitionState], where: LogDirPlace, led_empty: Collection[TopicPartition]
) -> Iterator[str]:
    """What has to be done for them. ``led_empty`` are the partitions that the disk's broker would be elected
    to lead with an empty disk, as soon as that disk is online.
    """
    advices: dict[str, list[str]] = {}
    for state in found:
        advices.setdefault(_advice(state, where, led_empty), []).append(str(state.tp))
    for advice, names in advices.items():
        have = f"{counted(len(names), 'partition')} {'has' if len(names) == 1 else 'have'}"
        named = some_of(names, SHOWN)
        yield f"{have} no leader, and no replica comes back into the ISR without one: {named}: {advice}"


def _advice(state: PartitionState, where: LogDirPlace, led_empty: Collection[TopicPartition]) -> str:
    if not has_copy(state, where):
        return "no other replica has a copy, the records are only on the old disk, or in a backup"
    if state.tp in led_empty:
        return f"{where.broker} would be elected with its empty disk, elect another first (ktriage plan)"
    return "bring back a broker that may lead, or elect one (ktriage plan)"
