"""The open pane, and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from console.operations.registry import PANES
from recovery.model import TopicPartition

DEEPEST = 20


class Place(NamedTuple):
    """A pane, and the partition for which it was opened. ``drilled``: opened from the place before it, not by
    its number.
    """

    pane: str
    key: TopicPartition | None
    drilled: bool = False


@dataclass(frozen=True, slots=True)
class Moves:
    """``before`` are the places to which Esc leads back, the nearest last."""

    here: Place
    before: tuple[Place, ...] = ()

    def to(self, place: Place) -> Moves:
        """Opens another place; Esc leads back to this one."""
        if place.pane == self.here.pane:
            return Moves(place, self.before)
        return Moves(place, (*self.before, self.here)[-DEEPEST:])

    def back(self) -> Moves:
        return Moves(self.before[-1], self.before[:-1]) if self.before else self

    def trail(self, cluster: str) -> tuple[str, ...]:
        """The breadcrumbs: the cluster, the way to the open pane, and the open pane."""
        way = [self.here]
        for place in reversed(self.before):
            if not way[0].drilled:
                break
            way.insert(0, place)
        return (cluster, *(_name(place) for place in way))


def _name(place: Place) -> str:
    return PANES[place.pane] if place.key is None else f"{PANES[place.pane]}: {place.key}"
