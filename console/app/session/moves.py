"""Where the console is, and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from console.operations.registry import PANES
from recovery.model import TopicPartition

DEEPEST = 20


class Place(NamedTuple):
    """A pane, and the partition that it was opened for. ``drilled``: from the place before it, not by number."""

    pane: str
    key: TopicPartition | None
    drilled: bool = False


@dataclass(frozen=True, slots=True)
class Moves:
    """``before`` are the places that Esc leads back to, the nearest last."""

    here: Place
    before: tuple[Place, ...] = ()

    def to(self, place: Place) -> Moves:
        """Elsewhere: Esc leads back to where one was."""
        if place.pane == self.here.pane:
            return Moves(place, self.before)
        return Moves(place, (*self.before, self.here)[-DEEPEST:])

    def back(self) -> Moves:
        return Moves(self.before[-1], self.before[:-1]) if self.before else self

    def trail(self, cluster: str) -> tuple[str, ...]:
        """The breadcrumbs: the cluster, the way down, and what is open."""
        way = [self.here]
        for place in reversed(self.before):
            if not way[0].drilled:
                break
            way.insert(0, place)
        return (cluster, *(_name(place) for place in way))


def _name(place: Place) -> str:
    return PANES[place.pane] if place.key is None else f"{PANES[place.pane]}: {place.key}"
