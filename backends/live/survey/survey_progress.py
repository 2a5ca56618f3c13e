"""Progress of a survey: which partitions still wait for a replica."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, starmap
from operator import itemgetter, lt

from recovery.model import PartitionState

_name = itemgetter(0, 1)
_replicas = itemgetter(PartitionState._fields.index("replicas"))


class SurveyProgress:
    """Replicas are counted by the index of their partition among ``states``."""

    def __init__(self, states: Sequence[PartitionState], *, leaders_only: bool) -> None:
        wanted = (
            (asked(state, leaders_only=True) for state in states) if leaders_only else map(_replicas, states)
        )
        self._pending = list(map(len, wanted))
        self.total = len(states)
        self.left = self.total - self._pending.count(0)

    def settled(self, indices: Iterable[int]) -> None:
        """The survey no longer waits for one replica of each of these partitions."""
        pending = self._pending
        for index in indices:
            waiting = pending[index] = pending[index] - 1
            if not waiting:
                self.left -= 1

    def asked_again(self, index: int) -> None:
        """The survey waits once more for a replica of that partition."""
        self.left += not self._pending[index]
        self._pending[index] += 1


def asked(state: PartitionState, *, leaders_only: bool) -> tuple[int, ...]:
    """The brokers that are asked about that partition: where it is led perhaps its leader only."""
    if leaders_only and not state.offline:
        return tuple(broker for broker in state.replicas if broker == state.leader)
    return state.replicas


def in_order(states: Sequence[PartitionState]) -> Sequence[PartitionState]:
    """Sorted by name, each partition once. Returns ``states`` itself if it is sorted, as a broker's list is."""
    names = list(map(_name, states))
    if all(starmap(lt, pairwise(names))):
        return states
    return sorted(dict(zip(names, states, strict=True)).values(), key=_name)
