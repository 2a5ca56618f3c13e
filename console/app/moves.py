"""Where the console is, and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from console.actions.keys import PANES
from recovery.model import TopicPartition

DEEPEST = 20


class Place(NamedTuple):
    """A pane, and the partition that it was opened for."""

    pane: str
    key: TopicPartition | None


@dataclass(frozen=True, slots=True)
class Moves:
    """``before`` are the places that Esc leads back to, the nearest last."""

    here: Place
    before: tuple[Place, ...] = ()

    def to(self, place: Place) -> Moves:
        """Elsewhere, by its number: Esc leads back to where one was."""
        if place.pane == self.here.pane:
            return Moves(place, self.before)
        return Moves(place, (*self.before, self.here)[-DEEPEST:])

    into = to

    def back(self) -> Moves:
        return Moves(self.before[-1], self.before[:-1]) if self.before else self

    def trail(self, cluster: str) -> tuple[str, ...]:
        """The breadcrumbs: the cluster, where one came from, and what is open."""
        names = [PANES[place.pane] for place in (*self.before[-2:], self.here)]
        if self.here.key is not None:
            names[-1] = f"{names[-1]}: {self.here.key}"
        return (cluster, *names)
