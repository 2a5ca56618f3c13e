"""Progress of a survey: which partitions still wait for a replica."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from recovery.model import PartitionState


class SurveyProgress:
    """Replicas are counted by their place: one after the other, partition by partition."""

    def __init__(self, states: Sequence[PartitionState], *, leaders_only: bool) -> None:
        sizes = [len(state.replicas) for state in states]
        self.firsts = list(accumulate(sizes, initial=0))
        """The place of each partition's first replica; at the end how many there are."""
        self._owners = [number for number, size in enumerate(sizes) for _ in range(size)]
        self._pending = [len(asked(state, leaders_only=leaders_only)) for state in states]
        self.total = len(states)
        self.left = sum(1 for several in self._pending if several)

    def owner(self, place: int) -> int:
        """The index of the partition of that replica."""
        return self._owners[place]

    def settled(self, places: Iterable[int]) -> None:
        """The survey no longer waits for these replicas."""
        pending = self._pending
        for number in map(self._owners.__getitem__, places):
            pending[number] -= 1
            if not pending[number]:
                self.left -= 1


def asked(state: PartitionState, *, leaders_only: bool) -> tuple[int, ...]:
    """The brokers that are asked about that partition: where it is led perhaps its leader only."""
    if leaders_only and not state.offline:
        return tuple(broker for broker in state.replicas if broker == state.leader)
    return state.replicas
