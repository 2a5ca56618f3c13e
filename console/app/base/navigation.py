"""Which pane is open, for which partition, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from console.app.session.view import ViewRequest
from console.change.registry import DIRS, ELIGIBLE, OFFLINE, PANES, REPLICAS
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


class Navigation:
    """``cursor`` is the partition that the panes show. ``want`` is called with the data that the open pane
    needs, ``moved`` when another pane is open.
    """

    def __init__(self, want: Callable[[ViewRequest], None], moved: Callable[[], None]) -> None:
        self._want = want
        self._moved = moved
        self._moves = Moves(Place(OFFLINE, None))
        self.cursor: TopicPartition | None = None

    @property
    def pane(self) -> str:
        """The key of the open pane."""
        return self._moves.here.pane

    def trail(self, cluster: str) -> tuple[str, ...]:
        """The breadcrumbs."""
        return self._moves.trail(cluster)

    def go(self, pane: str, key: TopicPartition | None = None, *, drill: bool = False) -> None:
        """Opens another pane; ``drill``: Esc leads back to this one."""
        if key is not None:
            self.cursor = key
        self._moves = self._moves.to(Place(pane, key, drill))
        self._moved()
        self.request_data()

    def back(self) -> None:
        self._moves = self._moves.back()
        self._moved()
        self.request_data()

    def select(self, partition: TopicPartition) -> bool:
        """Moves the cursor to that partition; False if it was already there."""
        if partition == self.cursor:
            return False
        self.cursor = partition
        self.request_data()
        return True

    def request_data(self) -> None:
        """Requests the logs of the partition under the cursor, with their whole lineage if they are drawn."""
        shown = frozenset() if self.cursor is None else frozenset({self.cursor})
        deep = self.cursor if self.pane == REPLICAS else None
        self._want(ViewRequest(shown, deep, self.pane in (DIRS, ELIGIBLE)))
